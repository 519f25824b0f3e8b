package machine

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/xdswatch/xdswatch/internal/wire"
	"github.com/xdswatch/xdswatch/xdstp"
)

// maxTypeAliases is how many aliases of a type's resources are kept on one stream. Of one resource
// they are [wire.MaxAliases].
const maxTypeAliases = 1 << 16

var (
	errAliases     = fmt.Errorf("more than %d aliases of the resource are watched", wire.MaxAliases)
	errTypeAliases = fmt.Errorf("the resources of the type have more than %d aliases that are watched", maxTypeAliases)
)

// aliases are the names of a type that are watched and are not the resources' own (xDS protocol,
// Resource.aliases). The subscription of such a name holds the interest in it; the bytes, the value and
// what stands beside it are one copy, shared with the subscriptions of the resource's other names. It is
// no member of a collection. The zero value has none.
type aliases struct {
	own map[*subscription]*named // what the server calls an entry
	of  map[string]*named        // by the canonical text of that name
}

// named is a resource as the server calls it, and the subscriptions of its aliases.
type named struct {
	name  string // canonical
	keys  []*subscription
	homes []*collection // one of each source that a key is or was of
}

// identical says that two payloads are the same bytes in the same place.
func identical(a, b []byte) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// follows says that a subscription may be an alias: it is watched, or was one until now and the server
// was not told yet that it is watched no more.
func (a *aliases) follows(sub *subscription) bool { return sub.wanted() || a.own[sub] != nil }

// link notes what the server calls a subscription. It fails if there are too many.
func (a *aliases) link(sub *subscription, name []byte) error {
	n := a.called(name)
	switch {
	case n != nil && a.own[sub] == n:
		return nil
	case n != nil && len(n.keys) >= wire.MaxAliases:
		return errAliases
	case a.own[sub] == nil && len(a.own) >= maxTypeAliases:
		return errTypeAliases
	}
	a.unlink(sub)
	if a.own == nil {
		a.own, a.of = map[*subscription]*named{}, map[string]*named{}
	}
	if n == nil {
		n = &named{name: canonicalOf(name)}
		a.of[n.name] = n
	}
	a.own[sub] = n
	n.keys = append(n.keys, sub)
	if !slices.ContainsFunc(n.homes, func(c *collection) bool { return c.source == sub.of.source }) {
		n.homes = append(n.homes, sub.of)
	}
	return nil
}

// unlink forgets a subscription.
func (a *aliases) unlink(sub *subscription) {
	n := a.own[sub]
	if n == nil {
		return
	}
	delete(a.own, sub)
	if n.keys = without(n.keys, sub); len(n.keys) == 0 {
		delete(a.of, n.name)
	}
}

// byAlias says that a subscription is known by an alias alone, so that it is no member of a
// collection (ALIAS-2).
func (sub *subscription) byAlias() bool {
	c := sub.of.cache
	if sub.held() {
		return c.given[sub].alias
	}
	return c.aliases.own[sub] != nil
}

// switchesAlias says that what a response speaks of was a member of a watched collection by its own name
// and becomes an alias, or the reverse.
func (sub *subscription) switchesAlias() bool {
	return sub.held() && sub.byAlias() != (sub.of.cache.aliases.own[sub] != nil) && len(sub.covering()) > 0
}

// called finds what a server calls so, however it spells that; nil if it has no alias.
func (a *aliases) called(name []byte) *named {
	if len(a.of) == 0 {
		return nil
	}
	return a.of[canonicalOf(name)]
}

// canonicalOf is the text that all spellings of a name have in common.
func canonicalOf(name []byte) string {
	// XDSTP-4: structured names are equal by their parts.
	if bytes.HasPrefix(name, xdstpScheme) {
		if n, err := xdstp.ParseReceived(string(name)); err == nil {
			return n.String()
		}
	}
	return string(name)
}

// keysOf are the subscriptions of the aliases of a resource.
func (l *link) keysOf(canonical string) []*subscription {
	if n := l.aliases.of[canonical]; n != nil {
		return n.keys
	}
	return nil
}
