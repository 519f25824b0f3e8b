package machine

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/xdswatch/xdswatch/internal/wire"
	"github.com/xdswatch/xdswatch/xdstp"
)

// maxTypeAliases is how many aliases of a type's resources are kept in a cache. Of one resource they are
// [wire.MaxAliases].
const maxTypeAliases = 1 << 16

var (
	errAliases     = fmt.Errorf("more than %d aliases of the resource are watched", wire.MaxAliases)
	errTypeAliases = fmt.Errorf("the resources of the type have more than %d aliases that are watched", maxTypeAliases)
)

// aliases are the watched names of a type that are aliases of resources (xDS protocol, Resource.aliases), and not their
// own names. Such a name has a subscription of its own. Its bytes, its value and what stands beside the value are one copy,
// shared with the subscriptions of the resource's other names. It is no member of a collection. The zero value has none.
//
// A response finds subscriptions by aliases in reader_alias.go.
type aliases struct {
	targets map[string]*aliasTarget // by the canonical text of the name that the server gives the resource
	count   int                     // of the subscriptions of aliases
}

// aliasTarget is a resource of which aliases are watched, and the subscriptions of these.
type aliasTarget struct {
	name  string // the resource's own, canonical
	subs  []*subscription
	homes []*collection // for each source that one of subs belongs to, or did, one of its collections
}

// identical says that two payloads are the same bytes in the same place.
func identical(a, b []byte) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// add notes that the name of a subscription is an alias of the resource that the server calls name. It fails if there are
// too many aliases.
func (a *aliases) add(sub *subscription, name []byte) error {
	n, was := a.target(name), sub.target()
	switch {
	case n != nil && was == n:
		return nil
	// H-1: of one resource, and of a type.
	case n != nil && len(n.subs) >= wire.MaxAliases:
		return errAliases
	case was == nil && a.count >= maxTypeAliases:
		return errTypeAliases
	}
	a.remove(sub)
	if a.targets == nil {
		a.targets = map[string]*aliasTarget{}
	}
	if n == nil {
		n = &aliasTarget{name: canonicalOf(name)}
		a.targets[n.name] = n
	}
	sub.alter(func(x *extra) { x.target = n })
	a.count++
	n.subs = append(n.subs, sub)
	if !slices.ContainsFunc(n.homes, func(c *collection) bool { return c.source == sub.of.source }) {
		n.homes = append(n.homes, sub.of)
	}
	return nil
}

// remove notes that the name of a subscription is no alias any more.
func (a *aliases) remove(sub *subscription) {
	n := sub.target()
	if n == nil {
		return
	}
	sub.alter(func(x *extra) { x.target = nil })
	a.count--
	if n.subs = removeFrom(n.subs, sub); len(n.subs) == 0 {
		delete(a.targets, n.name)
	}
}

// byAlias says that a subscription is known by an alias alone, so that it is no member of a
// collection (ALIAS-2).
func (sub *subscription) byAlias() bool {
	if sub.held() {
		return sub.given().alias
	}
	return sub.target() != nil
}

// switchesAlias says that a resource was a member of a watched collection by its own name, and that the name is an alias
// according to the response that is being worked on; or the reverse.
func (sub *subscription) switchesAlias() bool {
	return sub.byAlias() != (sub.target() != nil) && len(sub.covering()) > 0
}

// target is the resource of which the name is an alias; nil if it is none.
func (sub *subscription) target() *aliasTarget { return sub.rare().target }

// resourceName is the name that the server gave the resource of a subscription last; heldResourceName is the name that it
// gave with the held value.
func (sub *subscription) resourceName() string {
	if n := sub.target(); n != nil {
		return n.name
	}
	return sub.name
}

func (sub *subscription) heldResourceName() string {
	if as := sub.given(); as.alias {
		return canonicalOf([]byte(as.name))
	}
	return sub.name
}

// target finds the resource that a server calls by a name, in any spelling; nil if no alias of it is watched.
func (a *aliases) target(name []byte) *aliasTarget {
	if len(a.targets) == 0 {
		return nil
	}
	return a.targets[canonicalOf(name)]
}

// wanted says that a resource is watched by an alias.
func (a *aliases) wanted(sub *subscription) bool {
	n := a.target([]byte(sub.name))
	return n != nil && slices.ContainsFunc(n.subs, (*subscription).wanted)
}

// canonicalOf is the one text for all spellings of a name.
func canonicalOf(name []byte) string {
	// XDSTP-4: structured names are equal by their parts.
	if bytes.HasPrefix(name, xdstpScheme) {
		if n, err := xdstp.ParseReceived(string(name)); err == nil {
			return n.String()
		}
	}
	return string(name)
}
