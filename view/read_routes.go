package view

import (
	"cmp"
	"fmt"
	"slices"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
)

// name is a cluster that a message names.
type name struct {
	name string
	refs refs
}

// names are sorted by compact.
type names []name

// add ignores names that come with requests only.
func (ns *names) add(n string, by refs) {
	if n != "" {
		*ns = append(*ns, name{n, by})
	}
}

// hint has no snapshot wait for names.
func (ns names) hint() {
	for i, n := range ns {
		if n.refs&refRoute != 0 {
			n.refs = n.refs&^refRoute | refHost
		}
		if n.refs&refHook != 0 {
			n.refs = n.refs&^refHook | refHint
		}
		ns[i] = n
	}
}

// sorted says whether compact would change nothing.
func (ns names) sorted() bool {
	for i := 1; i < len(ns); i++ {
		if ns[i-1].name >= ns[i].name {
			return false
		}
	}
	return true
}

// compact sorts and joins equal names.
func (ns *names) compact() {
	slices.SortFunc(*ns, func(a, b name) int { return cmp.Compare(a.name, b.name) })
	out := (*ns)[:0]
	for _, n := range *ns {
		if last := len(out) - 1; last >= 0 && out[last].name == n.name {
			out[last].refs |= n.refs
			continue
		}
		out = append(out, n)
	}
	clear((*ns)[len(out):])
	*ns = out
}

// routesRead is what a RouteConfiguration names.
type routesRead struct {
	host  *routev3.VirtualHost // the chosen one, if there is a host to look for
	names names
	needs []Dependency
	err   error // it cannot be used
	note  error

	finder finder
}

// readRoutes reads a route configuration, with a host only the virtual host that it chooses.
func readRoutes(rc *routev3.RouteConfiguration, host string, h *hooks) *routesRead {
	r := &routesRead{}
	hosts := rc.GetVirtualHosts()
	if host != "" {
		if r.host = matchHost(rc, host); r.host == nil { // VIEW-22
			r.err = fmt.Errorf("no virtual host of the route configuration matches %q", host)
			return r
		}
		hosts = []*routev3.VirtualHost{r.host} // VIEW-3
	}
	r.mirrors(rc.GetRequestMirrorPolicies())
	for _, vh := range hosts {
		r.virtualHost(vh)
	}
	found := h.walk(rc)
	r.needs, r.note = found.needs, found.err
	r.names = append(r.names, found.clusters...)
	r.names.compact()
	return r
}

func (r *routesRead) virtualHost(vh *routev3.VirtualHost) {
	r.mirrors(vh.GetRequestMirrorPolicies())
	for _, route := range vh.GetRoutes() {
		action := route.GetRoute()
		r.names.add(action.GetCluster(), refRoute)
		for _, c := range action.GetWeightedClusters().GetClusters() {
			r.names.add(c.GetName(), refRoute)
		}
		r.mirrors(action.GetRequestMirrorPolicies())
	}
}

func (r *routesRead) mirrors(all []*routev3.RouteAction_RequestMirrorPolicy) { // VIEW-42
	for _, m := range all {
		r.names.add(m.GetCluster(), refMirror)
	}
}
