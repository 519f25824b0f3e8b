package machine

import (
	"slices"

	"github.com/xdswatch/xdswatch/internal/wire"
)

// composeSotW makes the next DiscoveryRequest: it restates everything that is wanted. nil
// means that there is nothing to say.
func (l *link) composeSotW(a *answer, node []byte) [][]byte {
	first := !l.requested
	added, removed := l.flushNames()
	// STREAM-3, SOTW-1: the first request says everything.
	if first {
		added = l.allWanted()
	}
	form := l.nextForm()
	if form == wildLegacy {
		l.placeBeside(added)
		added, removed = nil, nil // what is wanted by name is among all
	} else if l.form == wildLegacy {
		added = l.allWanted()
	}
	if a == nil && form == l.form && len(added)+len(removed) == 0 && !l.owesNode() {
		return nil
	}
	l.subscribe(added)
	head := l.beginSotW(a, node)
	if form == wildExplicit {
		head = wire.AppendName(head, star, l.params(l.star))
	}
	l.starting = l.starting || form != wildNone && l.form == wildNone
	// WILD-6: what only the wildcard held is dropped.
	if form == wildNone && l.form != wildNone {
		l.dropWild()
	}
	l.form = form
	if form == wildLegacy {
		return [][]byte{head}
	}
	// SOTW-3, SOTW-4: each request restates all names, though there be none.
	return l.names.after(head)
}

// beginSotW makes a DiscoveryRequest without names.
func (l *link) beginSotW(a *answer, node []byte) []byte {
	version := l.version
	if l.answered == 0 {
		version = l.versionToClaim() // SOTW-2, ACK-7: none that was accepted on this stream
		l.claimsHeld = version != ""
	}
	var detail *wire.Status
	if a != nil {
		detail = a.detail
	}
	// ACK-2, ACK-3, ACK-8, SOTW-5: the accepted version, and the newest nonce.
	return wire.AppendSotW(nil, l.typ.URL, version, l.nonce, node, detail)
}

// versionToClaim is the version of requests before the first response on a new stream: none (SOTW-2), since
// a server that compares versions would stay silent where its own is equal by chance. With
// ResumeVersion it is the last accepted one, if everything that is requested is held or known to be
// absent. Otherwise the server would be silent about the rest; and about all of it where names
// stand by, for a response that makes the server active again (gRFC A71).
func (l *link) versionToClaim() string {
	if l.version == "" || l.lapsed {
		return ""
	}
	if l.stream.standsBy() {
		return "" // for a response that makes the server active again
	}
	for _, c := range l.collections(nil) {
		if c.wanted() && !c.self.complete {
			return ""
		}
	}
	for sub := range l.owned() {
		// SOTW-2, FALLBACK-3: no version, since something is waited for or another server's.
		if sub.foreign() || sub.wanted() && !sub.isCollection() && !sub.held() && !sub.absent() {
			return ""
		}
	}
	return l.version
}

// composeDelta makes the next DeltaDiscoveryRequest: the first of a stream says all that is
// wanted and held, later ones the difference. nil means that there is nothing to say.
func (l *link) composeDelta(a *answer, node []byte) []byte {
	if !l.requested {
		return l.composeFirstDelta(node)
	}
	added, removed := l.flushNames()
	added, back := l.takeBack(l.fitNames(added))
	form := l.nextForm()
	if a == nil && len(added)+len(back)+len(removed) == 0 && form == l.form && !l.owesNode() {
		return nil
	}
	l.subscribe(added)
	var nonce string
	var detail *wire.Status
	if a != nil {
		// ACK-8, DELTA-5, DELTA-6: a nonce is in its answer alone.
		nonce, detail = a.nonce, a.detail
	}
	msg := wire.AppendDelta(nil, l.typ.URL, nonce, node, detail)
	if form != wildNone && form != l.form {
		msg = l.appendSubscribe(msg, l.star.self)
		l.starting = l.form == wildNone
		form = wildExplicit
	}
	for _, sub := range added {
		msg = l.appendSubscribe(msg, sub)
	}
	// WILD-6: what only the wildcard held is dropped.
	if form == wildNone && l.form != wildNone {
		msg = wire.AppendUnsubscribe(msg, star, l.params(l.star))
		l.dropWild()
	}
	for _, c := range removed {
		msg = wire.AppendUnsubscribe(msg, c.name, c.params)
	}
	for _, sub := range back {
		msg = wire.AppendUnsubscribe(msg, l.spelled.onWire(sub), l.params(sub.of))
	}
	l.postpone(back)
	l.form = form
	return msg
}

// takeBack splits off the names that have to be unsubscribed first.
func (l *link) takeBack(added []*subscription) (now, back []*subscription) {
	for _, sub := range added {
		name := l.spelled.onWire(sub)
		if slices.ContainsFunc(l.stream.quirks, func(q quirk) bool { return q.takesBack(l, name) }) {
			back = append(back, sub)
		} else {
			now = append(now, sub)
		}
	}
	return now, back
}

func (l *link) composeFirstDelta(node []byte) []byte {
	l.flushNames()
	wanted := l.allWanted()
	form := l.nextForm()
	if form == wildNone && len(wanted) == 0 {
		return nil
	}
	msg := wire.AppendDelta(nil, l.typ.URL, "", node, nil)
	if form == wildExplicit {
		msg = l.appendSubscribe(msg, l.star.self)
	}
	l.starting = form != wildNone
	l.form = form
	l.unconfirmUnlisted()
	wanted, later, held := l.fit(len(msg), wanted, l.heldMembers())
	msg = slices.Grow(msg, l.sizeFirstDelta(wanted, held))
	if form == wildLegacy {
		l.postpone(slices.Concat(wanted, later))
	} else {
		l.postpone(later)
		l.subscribe(wanted)
		for _, sub := range wanted {
			msg = l.appendSubscribe(msg, sub)
		}
	}
	said := map[string]string{} // versions under names that are of others than who goes by them
	// DELTA-1: versions of all that is held, for collections too.
	for _, subs := range [][]*subscription{wanted, held} {
		for _, sub := range subs {
			if !l.lists(sub) {
				continue
			}
			switch {
			case form != wildLegacy:
			// P-1: without its version the server sends it then.
			case sub.wanted() || sub.of.isGlob(): // it is requested later, or its glob
				if !l.listsAsMember(sub) {
					l.unconfirm(sub)
				}
				continue
			}
			switch version, taken := l.versionUnder(sub, said); {
			case !taken:
				l.claimsHeld = true
				msg = wire.AppendInitialVersion(msg, sub.versionName(), sub.version)
			case version != sub.version && !sub.wanted():
				l.unconfirm(sub)
			}
		}
	}
	return msg
}

// versionUnder is the version that a first message tells under the name that a server gave an alias's value
// with: of the resource that has the name for its own, or of the first that was called so. If there is
// none, the alias's is noted.
func (l *link) versionUnder(sub *subscription, said map[string]string) (version string, taken bool) {
	if !sub.byAlias() {
		return "", false
	}
	name := sub.versionName()
	switch own := l.byWireName([]byte(name)); {
	case own == nil || own.byAlias():
	case own.listed():
		return own.version, true
	case own.wanted() && !own.held(): // DELTA-2: it is waited for
		return "", true
	}
	if version, taken = said[name]; !taken {
		said[name] = sub.version
	}
	return version, taken
}

// listsAsMember says that a first message in the legacy form tells the version of an alias's value all the
// same: that of the wildcard's member which it is an alias of.
func (l *link) listsAsMember(alias *subscription) bool {
	own := l.byWireName([]byte(alias.versionName()))
	return alias.byAlias() && own != nil && own.of == l.star && !own.byAlias() && !own.wanted() && l.lists(own) &&
		!own.unconfirmed && own.version == alias.version
}

func (l *link) appendSubscribe(msg []byte, sub *subscription) []byte {
	return wire.AppendSubscribe(msg, l.spelled.onWire(sub), l.params(sub.of))
}

// heldMembers lists what is held for collections alone, in order.
func (l *link) heldMembers() []*subscription {
	if l.subs.len() == l.watched {
		return nil // all are wanted by name
	}
	var subs []*subscription
	for sub := range l.owned() {
		if sub.listed() && !sub.wanted() {
			subs = append(subs, sub)
		}
	}
	sortSubs(subs)
	return subs
}

// sizeFirstDelta is how many bytes the names and versions of a first message take, or some
// more.
func (l *link) sizeFirstDelta(wanted, held []*subscription) (n int) {
	for _, sub := range wanted {
		n += l.sizeOfName(sub) + wire.SizeInitialVersion(sub.name, sub.version)
	}
	for _, sub := range held {
		n += wire.SizeInitialVersion(sub.name, sub.version)
	}
	return n
}
