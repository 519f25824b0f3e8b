package machine

import "slices"

// maxMentions is how often a response may speak of a resource by its own name until its aliases are not looked for any more,
// for each source. Four lists may speak of it: resources, removed names, errors, and errors without a code. After two entries
// of each list it is known to be named twice.
const maxMentions = 8

// aliasSubs are the subscriptions of the aliases of a resource. It returns none for a variant that nobody subscribed to,
// and none once the response has spoken of the resource too often: each alias is invalid by then.
func (r *reader) aliasSubs(name, constraints []byte) []*subscription {
	n := r.link.cache.aliases.target(name)
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
	// SOTW-9: not those of which another server's word counts.
	// ALIAS-2: nor those of which only another server said that they are aliases.
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

// findAliases finds the subscriptions of the aliases of the resources that the response holds.
func (r *reader) findAliases() {
	by := map[*subscription]int{} // the index of the entry that speaks of each by an alias
	for i := range r.Resources {
		// ALIAS-1: a resource is found by its aliases.
		if a := r.Resources[i].Attributes; a != nil && len(a.Aliases) > 0 {
			r.findListed(i, r.found[i], by)
		}
	}
	// ALIAS-2: a name that the response itself removes is no alias any more.
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
		r.findListedBefore(by)
	}
}

// notAlias ends that a name is an alias, unless the response says that it is one.
func (r *reader) notAlias(name, constraints []byte) {
	if sub, _ := r.link.lookup(name); sub != nil && sub.seen != r.serial && r.link.chose(sub, sub.name, constraints) {
		_ = r.setAlias(sub, nil) // cannot fail: nothing is added
	}
}

// setAlias notes that the name of a subscription is an alias of the resource that the server calls of; with nil, of none.
// [response.dropUntold] undoes that if the response is not taken.
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

// findListed finds the subscriptions of the aliases that the entry at index i lists; own is the subscription of the
// entry's own name, or nil.
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

// findListedBefore finds the subscriptions of aliases that earlier responses listed, for entries that do not list them.
func (r *reader) findListedBefore(by map[*subscription]int) {
	l := r.link
	for i := range r.Resources {
		name, _ := l.nameOf(&r.Resources[i])
		subs := r.aliasSubs(name, r.constraints(i))
		if len(subs) == 0 || !l.maySay(name) {
			continue
		}
		for _, sub := range subs {
			switch first, listed := by[sub]; {
			case listed && first == i, !l.chose(sub, sub.name, r.constraints(i)):
			case listed:
				r.namedTwice(i, sub)
			// ALIAS-1: an alias that an earlier response listed finds the resource too.
			default:
				r.seeAlias(i, sub, by)
			}
		}
	}
}

// seeAlias notes that the entry at index i speaks of a subscription by an alias.
func (r *reader) seeAlias(i int, sub *subscription, by map[*subscription]int) {
	sub.see(r.response)
	by[sub] = i
	a := r.aliasedAt(i)
	a.subs = append(a.subs, sub)
}

// aliasedAt finds or makes what is noted of the aliases of the entry at index i.
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
