package machine

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/xdswatch/xdswatch/internal/wire"
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
	of  map[string]*named        // by that name
}

// named is a resource as the server calls it, and the subscriptions of its aliases.
type named struct {
	name  string
	keys  []*subscription
	homes []*collection // one of each source that a key is or was of
}

// aliased is a resource of a response with the subscriptions of its aliases.
type aliased struct {
	index int
	keys  []*subscription
	err   error // what is wrong with its aliases

	task *Task // that has it decoded, for all; nil until one does
	item int   // in the task

	raw  []byte // that its payload was last compared with; nil for none
	same bool   // they are equal
	hash uint64 // of it; 0 until it is looked for
}

// mention is one way in which a response speaks of a resource that has aliases.
type mention struct {
	of *named
	as mentionKind
}

type mentionKind uint8

const (
	asResource mentionKind = iota
	asRemoved
	asFailed
	asFine // an error that is none
)

// keys are the subscriptions of the aliases of what a server calls so. A response that speaks of it
// more than twice is told none, since by then each is known to be named twice; so is one that
// speaks of a variant that nobody asks for.
func (r *reader) keys(name, constraints []byte, as mentionKind) []*subscription {
	n := r.link.aliases.of[string(name)]
	if n == nil {
		return nil
	}
	chosen := func(c *collection) bool { return r.link.params(c).Match(constraints) }
	if constraints != nil && !slices.ContainsFunc(n.homes, chosen) {
		return nil
	}
	if r.mentions == nil {
		r.mentions = map[mention]int{}
	}
	if r.mentions[mention{n, as}]++; r.mentions[mention{n, as}] > 2 {
		return nil
	}
	// SOTW-9: what another server answers for is none of this one's.
	return slices.DeleteFunc(slices.Clone(n.keys), func(sub *subscription) bool { return !r.link.owns(sub) })
}

// allOf are the subscriptions of a name as a server spells it: its own and those of its aliases.
func (r *reader) allOf(name []byte, as mentionKind) []*subscription {
	subs := r.keys(name, nil, as)
	if sub, _ := r.link.lookup(name); sub != nil {
		subs = slices.Insert(subs, 0, sub)
	}
	return subs
}

// findAliases notes what is watched under aliases of the resources.
func (r *reader) findAliases() {
	by := map[*subscription]int{} // the index of the resource that speaks of it
	for i := range r.Resources {
		// ALIAS-1: a resource is found by its aliases.
		if a := r.Resources[i].Attributes; a != nil && len(a.Aliases) > 0 {
			r.findListed(i, r.found[i], by)
		}
	}
	if len(r.link.aliases.of) > 0 {
		r.findLinked(by)
	}
}

// findListed notes what is watched under the aliases that the resource at index i lists; own is
// the subscription of its own name, or nil.
func (r *reader) findListed(i int, own *subscription, by map[*subscription]int) {
	l := r.link
	name, _ := l.nameOf(&r.Resources[i])
	if name == nil {
		return
	}
	for _, alias := range r.Resources[i].Attributes.Aliases {
		sub, _ := l.lookup(alias)
		switch {
		case sub == nil, sub == own, !l.aliases.follows(sub), sub.isCollection(), !l.chose(sub, sub.name, r.constraints(i)):
		case sub.seen == r.serial:
			r.namedTwice(i, sub)
		default:
			if err := l.aliases.link(sub, string(name)); err != nil {
				r.spoil(i, err)
				return
			}
			r.speaks(i, sub, by)
		}
	}
}

// spoil has the resource at index i refused for the aliases that it lists.
func (r *reader) spoil(i int, err error) {
	if entry := &r.Resources[i]; r.found[i] == nil && r.byIndex[i] == nil {
		r.invalid++
		r.line(i, string(entry.Name), cmp.Or(entry.Fault, err))
	}
	r.aliasedAt(i).err = err
}

// findLinked notes what the response speaks of by its own name alone, though it is watched under
// an alias that an earlier one told of.
func (r *reader) findLinked(by map[*subscription]int) {
	l := r.link
	for i := range r.Resources {
		name, _ := l.nameOf(&r.Resources[i])
		for _, sub := range r.keys(name, r.constraints(i), asResource) {
			switch first, spoken := by[sub]; {
			case spoken && first == i, !l.chose(sub, sub.name, r.constraints(i)):
			case spoken:
				r.namedTwice(i, sub)
			default:
				r.speaks(i, sub, by)
			}
		}
	}
}

// speaks notes that the resource at index i is watched under an alias.
func (r *reader) speaks(i int, sub *subscription, by map[*subscription]int) {
	sub.mark(r.response)
	by[sub] = i
	a := r.aliasedAt(i)
	a.keys = append(a.keys, sub)
}

// aliasedAt finds or makes what is noted of the resource at index i.
func (r *reader) aliasedAt(i int) *aliased {
	a := r.byIndex[i]
	if a == nil {
		if r.byIndex == nil {
			r.byIndex = map[int]*aliased{}
		}
		a = &aliased{index: i}
		r.byIndex[i] = a
		r.aliased = append(r.aliased, a)
	}
	return a
}

// equals says whether the payload of an entry of the response is what is held. The names of one
// resource share their bytes, which are compared once.
func (r *reader) equals(i int, sub *subscription) bool {
	payload, a := r.Resources[i].Payload, r.byIndex[i]
	if a == nil {
		return string(sub.raw) == string(payload)
	}
	if a.raw == nil || !identical(a.raw, sub.raw) {
		a.raw, a.same = sub.raw, string(sub.raw) == string(payload)
	}
	return a.same
}

// identical says that two payloads are the same bytes in the same place.
func identical(a, b []byte) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// hashOf is that of an entry of the response, which is worked out once for all its names.
func (r *reader) hashOf(i int, locator bool) uint64 {
	entry, a := &r.Resources[i], r.byIndex[i]
	if a == nil {
		return hashOfEntry(entry.Payload, locator, entry.Attributes)
	}
	if a.hash == 0 {
		a.hash = hashOfEntry(entry.Payload, locator, entry.Attributes)
	}
	return a.hash
}

// follows says that a subscription may be an alias: it is watched, or was one until now and the server
// was not told yet that it is watched no more.
func (a *aliases) follows(sub *subscription) bool { return sub.wanted() || a.own[sub] != nil }

// link notes what the server calls a subscription. It fails if there are too many.
func (a *aliases) link(sub *subscription, name string) error {
	n := a.of[name]
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
	if n = a.of[name]; n == nil {
		n = &named{name: name}
		a.of[name] = n
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

// turns says that what a response speaks of was a member of a watched collection by its own name
// and becomes an alias, or the reverse.
func (sub *subscription) turns() bool {
	return sub.held() && sub.byAlias() != (sub.of.cache.aliases.own[sub] != nil) && len(sub.covering()) > 0
}
