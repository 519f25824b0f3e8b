package machine

import (
	"cmp"
	"slices"
)

// aliases are the resources that were asked for by another name than their own (xDS
// protocol, Resource.aliases). Each is kept under the name it was asked for by; here is
// what the server calls it. The zero value has none.
type aliases struct {
	own map[*entry]string   // what the server calls an entry
	of  map[string][]*entry // the entries of what the server calls so

	// given is what a server called an entry that is held when it gave the version, where it
	// has called it something else since, or another server is asked.
	given map[*entry]string
}

// aliased is an entry that a response speaks of by an alias.
type aliased struct {
	index int // of the resource in the response
	entry *entry
}

// findAliases notes what is asked for by other names of the resources than their own; own are
// the entries of those.
func (resp *response) findAliases(own []*entry) {
	for i, e := range own {
		if a := resp.Resources[i].Attributes; a != nil && len(a.Aliases) > 0 {
			resp.findListed(i, e)
		}
	}
	resp.findLinked()
}

// findListed notes what is asked for by the aliases that the resource at index i lists; own is
// the entry of its own name, or nil.
func (resp *response) findListed(i int, own *entry) {
	ts := resp.ts
	name, _ := ts.nameOf(&resp.Resources[i])
	if name == nil {
		return
	}
	for _, alias := range resp.Resources[i].Attributes.Aliases {
		e, _ := ts.lookup(alias)
		switch {
		case e == nil, e == own, !ts.chose(e, e.name, resp.constraints(i)):
		case e.seen == resp.serial:
			resp.namedTwice(i, e)
		default:
			e.see(resp)
			ts.aliases.link(e, string(name))
			resp.aliased = append(resp.aliased, aliased{i, e})
		}
	}
}

// findLinked notes what the response speaks of by its own name alone, though it was asked for
// by an alias that an earlier one told of.
func (resp *response) findLinked() {
	ts := resp.ts
	if len(ts.aliases.of) == 0 {
		return
	}
	by := map[*entry]int{} // the index of the resource that speaks of it
	for _, a := range resp.aliased {
		by[a.entry] = a.index
	}
	for i := range resp.Resources {
		name, _ := ts.nameOf(&resp.Resources[i])
		for _, e := range ts.linked(name) {
			switch first, spoken := by[e]; {
			case spoken && first == i, !ts.chose(e, e.name, resp.constraints(i)):
			case spoken:
				resp.namedTwice(i, e)
			default:
				e.see(resp)
				by[e] = i
				resp.aliased = append(resp.aliased, aliased{i, e})
			}
		}
	}
}

// linked are the entries that were asked for by an alias of what a server calls so.
func (ts *typeState) linked(name []byte) []*entry {
	return slices.Clone(ts.aliases.of[string(name)]) // since they may be unlinked meanwhile
}

func (a *aliases) link(e *entry, name string) {
	if a.own[e] == name {
		return
	}
	a.rename(e)
	if a.own == nil {
		a.own, a.of = map[*entry]string{}, map[string][]*entry{}
	}
	a.own[e] = name
	a.of[name] = append(a.of[name], e)
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
	name, ok := a.own[e]
	if !ok {
		return
	}
	delete(a.own, e)
	if i := slices.Index(a.of[name], e); i >= 0 {
		a.of[name] = slices.Delete(a.of[name], i, i+1)
	}
	if len(a.of[name]) == 0 {
		delete(a.of, name)
	}
}

// versionOf is what the server called an entry when it gave the version that is held.
func (a *aliases) versionOf(e *entry) string {
	if name, ok := a.given[e]; ok {
		return name
	}
	return cmp.Or(a.own[e], e.name)
}
