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
// Resource.aliases). The entry of such a name holds the interest in it; the bytes, the value and
// what stands beside it are one copy, shared with the entries of the resource's other names. It is
// no member of a collection. The zero value has none.
type aliases struct {
	own map[*entry]*named // what the server calls an entry
	of  map[string]*named // by that name

	// given is what a server called an entry that is held when it gave the version, where it
	// has called it something else since, or another server is asked.
	given map[*entry]string

	shared map[*entry]bool // whose bytes are counted with another entry of the resource
}

// named is a resource as the server calls it, and the entries of its aliases.
type named struct {
	name  string
	keys  []*entry
	homes []*collection // one of each chain that a key is or was of
}

// aliased is a resource of a response with the entries of its aliases.
type aliased struct {
	index int
	keys  []*entry
	said  *wire.Attributes // what is kept for all; nil until it is copied

	task *Task // that has it decoded, for all; nil until one does
	item int   // in the task

	raw  []byte // that its payload was last compared with; nil for none
	same bool   // they are equal
	hash uint64 // of it; 0 until it is asked for
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

// keys are the entries of the aliases of what a server calls so. A response that speaks of it
// more than twice is told none, since by then each is known to be named twice; so is one that
// speaks of a variant that nobody asks for.
func (resp *response) keys(name, constraints []byte, as mentionKind) []*entry {
	n := resp.ts.aliases.of[string(name)]
	if n == nil {
		return nil
	}
	chosen := func(c *collection) bool { return resp.ts.params(c).Match(constraints) }
	if constraints != nil && !slices.ContainsFunc(n.homes, chosen) {
		return nil
	}
	if resp.mentions == nil {
		resp.mentions = map[mention]int{}
	}
	if resp.mentions[mention{n, as}]++; resp.mentions[mention{n, as}] > 2 {
		return nil
	}
	return slices.Clone(n.keys) // since they may be unlinked meanwhile
}

// findAliases notes what is watched under aliases of the resources; own are the entries of
// their own names.
func (resp *response) findAliases(own []*entry) {
	by := map[*entry]int{} // the index of the resource that speaks of it
	for i := range resp.Resources {
		if a := resp.Resources[i].Attributes; a != nil && len(a.Aliases) > 0 {
			resp.findListed(i, own[i], by)
		}
	}
	if len(resp.ts.aliases.of) > 0 {
		resp.findLinked(by)
	}
}

// findListed notes what is watched under the aliases that the resource at index i lists; own is
// the entry of its own name, or nil.
func (resp *response) findListed(i int, own *entry, by map[*entry]int) {
	ts := resp.ts
	name, _ := ts.nameOf(&resp.Resources[i])
	if name == nil {
		return
	}
	for _, alias := range resp.Resources[i].Attributes.Aliases {
		e, _ := ts.lookup(alias)
		switch {
		case e == nil, e == own, !ts.aliases.follows(e), e.isGlob(), !ts.chose(e, e.name, resp.constraints(i)):
		case e.seen == resp.serial:
			resp.namedTwice(i, e)
		default:
			if err := ts.aliases.link(e, string(name)); err != nil {
				resp.spoil(i, own, err)
				return
			}
			resp.speaks(i, e, by)
		}
	}
}

// spoil has a resource refused for what it lists; own is the entry of its own name, or nil.
func (resp *response) spoil(i int, own *entry, err error) {
	r := &resp.Resources[i]
	r.Fault = cmp.Or(r.Fault, err)
	if own == nil && resp.byIndex[i] == nil {
		resp.invalid++
		resp.line(i, string(r.Name), err)
	}
}

// findLinked notes what the response speaks of by its own name alone, though it is watched under
// an alias that an earlier one told of.
func (resp *response) findLinked(by map[*entry]int) {
	ts := resp.ts
	for i := range resp.Resources {
		name, _ := ts.nameOf(&resp.Resources[i])
		for _, e := range resp.keys(name, resp.constraints(i), asResource) {
			switch first, spoken := by[e]; {
			case spoken && first == i, !ts.chose(e, e.name, resp.constraints(i)):
			case spoken:
				resp.namedTwice(i, e)
			default:
				resp.speaks(i, e, by)
			}
		}
	}
}

// speaks notes that the resource at index i is watched under an alias.
func (resp *response) speaks(i int, e *entry, by map[*entry]int) {
	e.mark(resp)
	by[e] = i
	a := resp.byIndex[i]
	if a == nil {
		if resp.byIndex == nil {
			resp.byIndex = map[int]*aliased{}
		}
		a = &aliased{index: i}
		resp.byIndex[i] = a
		resp.aliased = append(resp.aliased, a)
	}
	a.keys = append(a.keys, e)
}

// equals says whether the payload of an entry of the response is what is held. The names of one
// resource share their bytes, which are compared once.
func (resp *response) equals(i int, e *entry) bool {
	payload, a := resp.Resources[i].Payload, resp.byIndex[i]
	if a == nil {
		return string(e.raw) == string(payload)
	}
	if a.raw == nil || !identical(a.raw, e.raw) {
		a.raw, a.same = e.raw, string(e.raw) == string(payload)
	}
	return a.same
}

// identical says that two payloads are the same bytes in the same place.
func identical(a, b []byte) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// hashOf is that of an entry of the response, which is worked out once for all its names.
func (resp *response) hashOf(i int, locator bool) uint64 {
	r, a := &resp.Resources[i], resp.byIndex[i]
	if a == nil {
		return hashOfEntry(r.Payload, locator, r.Attributes)
	}
	if a.hash == 0 {
		a.hash = hashOfEntry(r.Payload, locator, r.Attributes)
	}
	return a.hash
}

// describe keeps what a resource of the response says beside its value: one copy for all its
// names.
func (resp *response) describe(i int, e *entry) {
	said, a := resp.Resources[i].Attributes, resp.byIndex[i]
	if a == nil || said == nil {
		e.describe(said)
		return
	}
	if a.said == nil {
		a.said = said.Clone()
	}
	e.of.ts.stream.attributes.put(e, a.said)
}

// follows says that an entry may be an alias: it is watched, or was one until now and the server
// was not told yet that it is watched no more.
func (a *aliases) follows(e *entry) bool { return e.wanted() || a.own[e] != nil }

// link notes what the server calls an entry. It fails if there are too many.
func (a *aliases) link(e *entry, name string) error {
	n := a.of[name]
	switch {
	case n != nil && a.own[e] == n:
		return nil
	case n != nil && len(n.keys) >= wire.MaxAliases:
		return errAliases
	case a.own[e] == nil && len(a.own) >= maxTypeAliases:
		return errTypeAliases
	}
	a.rename(e)
	if a.own == nil {
		a.own, a.of = map[*entry]*named{}, map[string]*named{}
	}
	if n = a.of[name]; n == nil {
		n = &named{name: name}
		a.of[name] = n
	}
	a.own[e] = n
	n.keys = append(n.keys, e)
	if !slices.ContainsFunc(n.homes, func(c *collection) bool { return c.chain == e.of.chain }) {
		n.homes = append(n.homes, e.of)
	}
	return nil
}

// rename ends what the server called an entry. The version that is held goes by it until another
// is.
func (a *aliases) rename(e *entry) {
	given := a.versionOf(e)
	a.unlink(e)
	a.give(e, given)
}

// give notes what a server called an entry when it gave the version that is held.
func (a *aliases) give(e *entry, name string) {
	switch {
	case !e.held():
	case a.given == nil:
		a.given = map[*entry]string{e: name}
	default:
		a.given[e] = name
	}
}

// unlink forgets an entry.
func (a *aliases) unlink(e *entry) {
	delete(a.given, e)
	n := a.own[e]
	if n == nil {
		return
	}
	delete(a.own, e)
	if n.keys = without(n.keys, e); len(n.keys) == 0 {
		delete(a.of, n.name)
	}
}

// versionOf is what the server called an entry when it gave the version that is held.
func (a *aliases) versionOf(e *entry) string {
	if name, ok := a.given[e]; ok {
		return name
	}
	if n := a.own[e]; n != nil {
		return n.name
	}
	return e.name
}

// byAlias says that an entry is known by an alias alone, so that it is no member of a
// collection (ALIAS-2).
func (e *entry) byAlias() bool {
	a := &e.of.ts.aliases
	switch {
	case len(a.own) == 0 && len(a.given) == 0:
		return false
	case e.held():
		return a.versionOf(e) != e.name
	}
	return a.own[e] != nil
}

// turns says that what a response speaks of was a member of a watched collection by its own name
// and becomes an alias, or the reverse.
func (e *entry) turns() bool {
	a := &e.of.ts.aliases
	return e.held() && e.byAlias() != (a.own[e] != nil) && len(e.covering()) > 0
}
