package machine

import "slices"

// maxMentions is how many entries of a response that speak of a resource by its own name are looked at for its aliases, for
// each source. Four lists may speak of it: resources, removed names, errors, and errors without a code. After two of each
// it is known to be named twice.
const maxMentions = 8

// aliasSubs are the subscriptions of a resource's aliases. There are none for a variant that nobody subscribed to, and none
// once a response has named the resource too often: each alias is refused by then.
func (r *reader) aliasSubs(name, constraints []byte) []*subscription {
	n := r.link.cache.aliases.called(name)
	if n == nil {
		return nil
	}
	chosen := func(c *collection) bool { return r.link.params(c).Match(constraints) }
	if !slices.ContainsFunc(n.homes, chosen) {
		return nil
	}
	// H-2: each of many entries would look at all aliases of the resource.
	if r.aliasUse == nil {
		r.aliasUse = map[*aliasTarget]int{}
	}
	if r.aliasUse[n]++; r.aliasUse[n] > maxMentions*len(n.homes) {
		return nil
	}
	// SOTW-9: leave out names for which another server's word counts.
	// ALIAS-2: and what only another server calls so.
	return slices.DeleteFunc(slices.Clone(n.subs), func(sub *subscription) bool { return !r.link.owns(sub) || sub.foreign() })
}

// allOf are the subscriptions of a name as a server spells it: its own and those of its aliases.
func (r *reader) allOf(name, constraints []byte) []*subscription {
	subs := r.aliasSubs(name, constraints)
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
	// ALIAS-2: what is removed by itself is no alias any more.
	for _, name := range r.Removed {
		r.notAlias(name, nil)
	}
	for _, n := range r.RemovedNames {
		r.notAlias(n.Name, n.Constraints)
	}
	for i := range r.Errors {
		if r.Errors[i].Code == codeNotFound {
			r.notAlias(r.Errors[i].Name, r.Errors[i].Constraints)
		}
	}
	if len(r.link.cache.aliases.targets) > 0 {
		r.findLinked(by)
	}
}

// notAlias ends that a name is an alias, unless the response says that it is one.
func (r *reader) notAlias(name, constraints []byte) {
	if sub, _ := r.link.lookup(name); sub != nil && sub.seen != r.serial && r.link.chose(sub, sub.name, constraints) {
		_ = r.setAlias(sub, nil) // there is always room for less
	}
}

// setAlias makes a subscription that of an alias of what the server calls so, or with nil of none, if the
// response is taken.
func (r *reader) setAlias(sub *subscription, of []byte) error {
	all := &r.link.cache.aliases
	was := sub.target()
	if of == nil {
		all.remove(sub)
	} else if err := all.add(sub, of); err != nil {
		return err
	}
	if sub.target() != was {
		r.aliasesBefore = append(r.aliasesBefore, aliasBefore{sub, was})
	}
	return nil
}

// findListed notes what is watched under the aliases that the resource at index i lists; own is
// the subscription of its own name, or nil.
func (r *reader) findListed(i int, own *subscription, by map[*subscription]int) {
	l := r.link
	name, _ := l.nameOf(&r.Resources[i])
	if name == nil || !r.link.maySay(name) {
		return
	}
	for _, alias := range r.Resources[i].Attributes.Aliases {
		sub, _ := l.lookup(alias)
		switch {
		case sub == nil, sub == own, !sub.lives(), sub.isCollection(), !l.chose(sub, sub.name, r.constraints(i)):
		case sub.seen == r.serial:
			r.namedTwice(i, sub)
		default:
			if err := r.setAlias(sub, name); err != nil {
				r.aliasedAt(i).err = err
				return
			}
			r.seeAlias(i, sub, by)
		}
	}
}

// findLinked notes what the response speaks of by its own name alone, though it is watched under
// an alias that an earlier one told of.
func (r *reader) findLinked(by map[*subscription]int) {
	l := r.link
	for i := range r.Resources {
		name, _ := l.nameOf(&r.Resources[i])
		keys := r.aliasSubs(name, r.constraints(i))
		if len(keys) == 0 || !l.maySay(name) {
			continue
		}
		for _, sub := range keys {
			switch first, spoken := by[sub]; {
			case spoken && first == i, !l.chose(sub, sub.name, r.constraints(i)):
			case spoken:
				r.namedTwice(i, sub)
			default:
				r.seeAlias(i, sub, by)
			}
		}
	}
}

// seeAlias notes that the resource at index i is watched under an alias.
func (r *reader) seeAlias(i int, sub *subscription, by map[*subscription]int) {
	sub.see(r.response)
	by[sub] = i
	a := r.aliasedAt(i)
	a.keys = append(a.keys, sub)
}

// aliasedAt finds or makes what is noted of the aliases of the resource at index i.
func (r *reader) aliasedAt(i int) *aliased {
	a := r.aliased[i]
	if a == nil {
		a = &aliased{}
		if r.aliased == nil {
			r.aliased = map[int]*aliased{}
		}
		r.aliased[i] = a
	}
	return a
}
