package machine

import "github.com/xdswatch/xdswatch/internal/wire"

// fit says how many names, and how many versions of members, fit into a first delta request that has so many bytes
// already, and in which order the names go. Versions of members go before names: of a
// member that is not listed the server would not tell the removal. Names that do not fit follow in later requests.
func (l *link) fit(size int, names, members []*subscription) (ordered []*subscription, named, listed int) {
	budget := l.stream.limit()
	if budget == 0 {
		return names, len(names), len(members)
	}
	named, names = globsFirst(names)
	for _, sub := range names[:named] {
		size += l.sizeOfName(sub)
	}
	for listed < len(members) && size+members[listed].sizeOfVersion() <= budget {
		size += members[listed].sizeOfVersion()
		listed++
	}
	if l.form == wildNone && named == 0 {
		named = 1 // a first request without names is the wildcard's
		size += l.sizeOfName(names[0]) + names[0].sizeOfVersion()
	}
	for named < len(names) {
		size += l.sizeOfName(names[named]) + names[named].sizeOfVersion()
		if size > budget {
			break
		}
		named++
	}
	return names, named, listed
}

// globsFirst puts globs before other names: versions of their members mean nothing without
// them.
func globsFirst(subs []*subscription) (globs int, ordered []*subscription) {
	var rest []*subscription
	for _, sub := range subs {
		if sub.isCollection() {
			ordered = append(ordered, sub)
		} else {
			rest = append(rest, sub)
		}
	}
	return len(ordered), append(ordered, rest...)
}

// sizeOfVersion is what an initial version takes; 0 if nothing is held.
func (sub *subscription) sizeOfVersion() int {
	if !sub.listable() {
		return 0
	}
	return wire.SizeInitialVersion(sub.name, sub.version)
}

// fitNames chooses the names of a later delta message, at least one.
func (l *link) fitNames(added []*subscription) []*subscription {
	budget, size := l.stream.limit(), 0
	if budget == 0 {
		return added
	}
	for i, sub := range added {
		if size += l.sizeOfName(sub); size > budget && i > 0 {
			l.postpone(added[i:])
			return added[:i]
		}
	}
	return added
}

// postpone leaves names for the next message, though the set of those that the server knows of has them.
func (l *link) postpone(subs []*subscription) {
	if len(subs) == 0 {
		return
	}
	for _, sub := range subs {
		l.names.Set(sub.onWire(), nil, false)
	}
	l.names.Flush()
	for _, sub := range subs {
		l.names.Set(sub.onWire(), l.params(sub.of), true)
	}
}

// sizeOfNames is what it takes to name subscriptions.
func (l *link) sizeOfNames(subs []*subscription) (size int) {
	for _, sub := range subs {
		size += l.sizeOfName(sub)
	}
	return size
}

// sizeOfName is what it takes to name a subscription.
func (l *link) sizeOfName(sub *subscription) int {
	return wire.SizeName(sub.onWire(), l.params(sub.of))
}
