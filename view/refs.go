package view

import "slices"

// refs says who names a cluster, other clusters left out.
type refs uint8

const (
	refRoot     refs = 1 << iota
	refListener      // a filter of the listener, as a TCP proxy
	refRoute
	refMirror
	refHold
	refHost // a route of a virtual host on demand
	refHook
	refHint // of a hook, not waited for
)

// static are the references that a snapshot waits for.
const static = refRoot | refListener | refRoute | refHook

var refNames = []struct {
	ref  refs
	name string
}{{refRoot, "root"}, {refListener, "listener"}, {refRoute, "route"}, {refHost, "route"}, {refMirror, "mirror"}, {refHook, "hook"}, {refHint, "hook"}}

// refs is how a cluster is named by a hook.
func (n Need) refs() refs {
	if n == Optional {
		return refHint
	}
	return refHook
}

func (r refs) names(parents []string) (all []string) {
	for _, n := range refNames {
		if r&n.ref != 0 && !slices.Contains(all, n.name) {
			all = append(all, n.name)
		}
	}
	for _, p := range parents {
		all = append(all, "aggregate:"+p)
	}
	if r&refHold != 0 {
		all = append(all, "hold")
	}
	return all
}
