package machine

import "github.com/xdswatch/xdswatch/internal/wire"

// fit chooses what a first delta message of so many bytes may list, under the budget:
// members of the wildcard, whose removal would not be heard of otherwise, before names.
// The other names are left for later messages, without their versions.
func (l *link) fit(size int, wanted, members []*subscription) (names, later, listed []*subscription) {
	budget := l.stream.limit()
	if budget == 0 {
		return wanted, nil, members
	}
	globs, wanted := globsFirst(wanted)
	for _, sub := range wanted[:globs] {
		size += l.sizeOfName(sub)
	}
	n := 0
	for n < len(members) && size+members[n].sizeOfVersion() <= budget {
		size += members[n].sizeOfVersion()
		n++
	}
	for _, sub := range members[n:] {
		l.unconfirm(sub)
	}
	k := globs
	if l.form == wildNone && k == 0 {
		k = 1 // no names at all would ask for everything
		size += l.sizeOfName(wanted[0]) + wanted[0].sizeOfVersion()
	}
	for k < len(wanted) {
		size += l.sizeOfName(wanted[k]) + wanted[k].sizeOfVersion()
		if size > budget {
			break
		}
		k++
	}
	for _, sub := range wanted[k:] {
		if l.lists(sub) {
			l.unconfirm(sub)
		}
	}
	return wanted[:k], wanted[k:], members[:n]
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
	if !sub.listed() {
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
		l.names.set(l.spelled.onWire(sub), nil, false)
	}
	l.names.flush()
	for _, sub := range subs {
		sub.interestChanged = l.owns(sub)
		l.names.set(l.spelled.onWire(sub), l.params(sub.of), true)
	}
}

// sizeOfName is what it takes to name a subscription.
func (l *link) sizeOfName(sub *subscription) int {
	return wire.SizeName(l.spelled.onWire(sub), l.params(sub.of))
}
