package machine

import (
	"cmp"
	"maps"
	"slices"
)

// called is what a server may call a resource that was asked for by an alias.
type called struct {
	names map[string]bool
	vague bool   // which of them it is, or whether it is one
	under string // the name that the version was given for that is held; "" for its own
	dim   bool   // under is not known
}

// surely is the name that it certainly has; "" for its own, or if that is not known.
func (c called) surely() string {
	if c.vague {
		return ""
	}
	for name := range c.names {
		return name
	}
	return ""
}

// alias says that the resource is known by an alias, for certain, or that it may be: then it is no
// member of a collection.
func (c called) alias() (sure, perhaps bool) {
	sure = c.under != "" && !c.dim
	return sure, sure || c.dim || len(c.names) > 0
}

// blur says that the name may be another by now.
func (c *called) blur() { c.vague = len(c.names) > 0 }

// may adds a name.
func (c *called) may(name string) {
	if c.names = maps.Clone(c.names); c.names == nil {
		c.names = map[string]bool{}
	}
	c.names[name], c.vague = true, true
}

// alias has an entry list aliases.
func (w *world) alias(en *simEntry) {
	if en.outer == "" && !w.policy.delta {
		return // only what is wrapped lists any
	}
	for range max(0, w.next(6)-3) {
		if name := w.anyName(); !isGlobURL(name) {
			en.aliases = append(en.aliases, name)
		}
	}
}

// spread has a response that the machine takes now speak of aliases as if they were named too,
// and notes those of which that is not certain.
func (r *simResponse) spread(w *world) {
	if r.said == nil {
		said := *r
		r.said = &said
	}
	md, own, spoken, maybe := r.md, r.said.entries, map[string]int{}, []string(nil)
	call := func(name string, names map[string]bool) {
		if word := md.word(name); w.active(w.stream(r.ref.Stream), md.typ.URL, name) {
			word.called = called{names: names, under: word.under, dim: word.dim || word.vague}
		}
	}
	for _, en := range own {
		call(en.name(md.typ), nil)
		spoken[en.name(md.typ)] = -1
	}
	tell := func(i int, name string) {
		en := own[i]
		en.alias = name
		r.entries = append(r.entries, en)
		if _, ok := spoken[name]; !ok {
			spoken[name] = i
		}
	}
	r.entries, r.removed, r.errors = slices.Clone(own), slices.Clone(r.said.removed), slices.Clone(r.said.errors)
	for i, en := range own {
		name := en.name(md.typ)
		for _, alias := range en.aliases {
			switch {
			case name == "" || alias == name:
			case md.live[alias] > 0:
				if _, ok := spoken[alias]; !ok {
					call(alias, map[string]bool{name: true})
				}
				tell(i, alias)
			case len(md.word(alias).names) > 0: // it was one, and may not have been taken back yet
				maybe = append(maybe, alias)
				md.word(alias).may(name)
			}
		}
	}
	for i, en := range own {
		linked, unsure := md.calledSo(en.name(md.typ))
		maybe = append(maybe, unsure...)
		for _, alias := range linked {
			if first, ok := spoken[alias]; !ok || first != i {
				tell(i, alias)
			}
		}
	}
	for _, name := range r.said.removed {
		linked, unsure := md.calledSo(name)
		r.removed, maybe = append(r.removed, linked...), append(maybe, unsure...)
	}
	for _, e := range r.said.errors {
		linked, unsure := md.calledSo(e.name)
		maybe = append(maybe, unsure...)
		for _, name := range linked {
			r.errors = append(r.errors, simError{name, e.code})
		}
	}
	r.maybe = maybe
}

// calledSo lists what was asked for by an alias of a name, and what may have been.
func (md *model) calledSo(name string) (linked, unsure []string) {
	for _, alias := range slices.Sorted(maps.Keys(md.words)) {
		switch word := md.words[alias]; {
		case name == "" || !word.names[name]:
		case word.vague || md.live[alias] == 0:
			unsure = append(unsure, alias)
		default:
			linked = append(linked, alias)
		}
	}
	return linked, unsure
}

// mayCall is for a response that is taken at a time that is not known.
func (r *simResponse) mayCall() {
	for _, en := range r.entries {
		if own := r.md.word(en.name(r.md.typ)); len(own.names) > 0 {
			own.blur()
		}
		for _, alias := range en.aliases {
			r.md.word(alias).may(en.name(r.md.typ))
		}
	}
}

// servesAs says whether a stream is the one that counts for a name, or for what may have been
// asked for by another.
func (w *world) servesAs(s *simStream, md *model, name string) bool {
	for alias, word := range md.words {
		if (word.dim || word.under == name || word.names[name]) && w.active(s, md.typ.URL, alias) {
			return true
		}
	}
	return w.active(s, md.typ.URL, name)
}

// tells says whether a version may be told under a name.
func (md *model) tells(name, version string) bool {
	for own, word := range md.words {
		held := cmp.Or(word.under, own) == name
		if (held || word.names[name]) && (word.unsure || word.vague) || (held || word.dim) && word.held && word.version == version {
			return true
		}
	}
	return false
}
