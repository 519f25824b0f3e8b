package machine

import (
	"slices"
	"time"

	"github.com/xdswatch/xdswatch/internal/wire"
)

// composeSotW makes the next DiscoveryRequest: it restates everything that is wanted. nil
// means that there is nothing to say.
func (ts *typeState) composeSotW(a *answer, node []byte) [][]byte {
	if ts.form == wildLegacy && !ts.star.wanted() && ts.stream.watches > 0 && !ts.legacyOnly() && !ts.stream.Polled {
		// Old servers know no way out of the legacy form but by naming it.
		ts.named, ts.form, ts.farewell = true, wildExplicit, true
		return [][]byte{wire.AppendName(ts.beginSotW(a, node), star, nil)}
	}
	first := !ts.asked
	added, removed := ts.applyChanges()
	if first {
		added = ts.allWanted()
	}
	form := ts.nextForm()
	if a == nil && form == ts.form && len(added)+len(removed) == 0 && !ts.owesNode() {
		return nil
	}
	ts.ask(added)
	head := ts.beginSotW(a, node)
	ts.name(ts.star.self, form == wildExplicit)
	if form != wildNone && ts.form == wildNone {
		ts.starting, ts.lateStar = true, !first && !ts.answered
	}
	if form == wildNone && ts.form != wildNone {
		ts.leaveWild()
	}
	ts.form, ts.farewell = form, ts.farewell && ts.outdated()
	if form == wildLegacy {
		return [][]byte{head} // what is wanted by name is among all
	}
	msg := ts.names.after(head)
	ts.named = ts.named || ts.names.count > 0
	return msg
}

// beginSotW makes a DiscoveryRequest without names.
func (ts *typeState) beginSotW(a *answer, node []byte) []byte {
	version := ts.version
	if !ts.answered {
		version = ts.carry() // SOTW-2, ACK-7: none that was accepted on this stream
		ts.resumes = version != ""
	}
	var detail *wire.Status
	if a != nil {
		detail = a.detail
	}
	return wire.AppendSotW(nil, ts.typ.URL, version, ts.nonce, node, detail)
}

// nextForm is how the wildcard is to be asked for: by the legacy form, which all servers
// know, where it stands alone and no name was sent yet. Those that know no other are asked so
// by the first request of a type, or not at all. Each poll is a first request; names beside the
// wildcard would add nothing to it, unless they are structured.
func (ts *typeState) nextForm() wildForm {
	switch {
	case ts.stream.watches == 0, ts.asked && ts.legacyOnly(), ts.outdated(): // as it was
		return ts.form
	case !ts.star.wanted():
		return wildNone
	case ts.legacyOnly(), !ts.star.explicitly() && (ts.watched == 0 && !ts.named || ts.stream.Polled && !ts.structured()):
		return wildLegacy
	}
	return wildExplicit
}

// legacyOnly says that the wildcard can be asked for by the first request of a stream alone.
func (ts *typeState) legacyOnly() bool {
	return (ts.stream.LegacyWildcard || ts.literal) && !ts.star.explicitly()
}

// spelled says that the server was asked for everything by the name `*`, which it may not know, and
// that the legacy form asks for as much: structured names are none of what that stands for.
func (ts *typeState) spelled() bool {
	return !ts.stream.Delta && ts.form == wildExplicit && !ts.legacyOnly() && !ts.star.explicitly() && !ts.structured()
}

// structured says that structured names are wanted.
func (ts *typeState) structured() bool {
	for e := range ts.entries.all() {
		if e.wanted() && structured(e.name) {
			return true
		}
	}
	return false
}

// renewedAt is when a stream that is outdated is begun anew: a second after the first request,
// or after the wildcard was left, lest a program that watches and stops renews it without end.
func (ts *typeState) renewedAt(now time.Time) time.Time {
	at := ts.firstAt
	if !ts.star.wanted() {
		if ts.leftAt.IsZero() {
			ts.leftAt = now
		}
		at = ts.leftAt
	}
	return at.Add(time.Second)
}

// outdated says that what is wanted takes a new stream: a server that knows the legacy wildcard
// alone has to begin or end it, or one that may remember what it sent for a wildcard of delta has
// to send it again. In state of the world any may know no other form, so the wildcard has that one
// if it begins alone.
func (ts *typeState) outdated() bool {
	begins, ends := ts.star.wanted() && ts.form == wildNone, !ts.star.wanted() && ts.form != wildNone
	switch {
	case !ts.asked:
		return false
	case ts.legacyOnly():
		return begins || ends || ts.literal && ts.form == wildExplicit
	case ts.stream.Delta:
		return begins && ts.starLeft
	case ts.stream.Polled:
		return false
	}
	return (begins || ts.farewell && ts.star.wanted()) && ts.watched == 0 && !ts.star.explicitly()
}

// carry is the version of requests before the first response on a new stream: none (SOTW-2), since
// a server that compares versions would stay silent where its own is equal by chance. With
// ResumeVersion it is the last accepted one, if everything that is asked for is held or known to be
// absent. Otherwise the server would be silent about the rest; and about all of it where names
// stand by, for a response that makes the server active again (gRFC A71).
func (ts *typeState) carry() string {
	if ts.version == "" || ts.lapsed {
		return ""
	}
	for _, c := range ts.collectionsOf(nil) {
		if c.wanted() && (c.standby || !c.synced) {
			return ""
		}
	}
	for e := range ts.entries.all() {
		if e.foreign() || e.wanted() && !e.isGlob() && (e.pinned || !e.held() && !e.absent()) {
			return ""
		}
	}
	return ts.version
}

// absent says that the server has no such resource, as far as is known. Of one whose time to
// live ran out nothing is.
func (e *entry) absent() bool { return e.status == StatusDoesNotExist && e.reason != ReasonTTL }

// composeDelta makes the next DeltaDiscoveryRequest: the first of a stream says all that is
// wanted and held, later ones the difference. nil means that there is nothing to say.
func (ts *typeState) composeDelta(a *answer, node []byte) []byte {
	if !ts.asked {
		return ts.composeFirstDelta(node)
	}
	again := ts.takeBack()
	added, removed := ts.applyChanges()
	added = ts.fitNames(added)
	for _, e := range again {
		removed = append(removed, change{name: e.name, params: ts.params(e.of)})
	}
	ts.postpone(again)
	form := ts.nextForm()
	if ts.form == wildLegacy && form == wildExplicit && !ts.star.explicitly() {
		form = wildLegacy // names beside it do not end it
	}
	if a == nil && len(added)+len(removed) == 0 && form == ts.form && !ts.owesNode() {
		return nil
	}
	ts.ask(added)
	var nonce string
	var detail *wire.Status
	if a != nil {
		nonce, detail = a.nonce, a.detail
	}
	msg := wire.AppendDelta(nil, ts.typ.URL, nonce, node, detail)
	if form != wildNone && form != ts.form {
		msg = ts.appendSubscribe(msg, ts.star.self)
		ts.starting = ts.form == wildNone
		form = wildExplicit
	}
	for _, e := range added {
		msg = ts.appendSubscribe(msg, e)
	}
	if form == wildNone && ts.form != wildNone {
		msg = wire.AppendUnsubscribe(msg, star, ts.params(ts.star))
		ts.leaveWild()
		ts.starLeft = true
	}
	for _, c := range removed {
		msg = wire.AppendUnsubscribe(msg, c.name, c.params)
	}
	ts.form = form
	ts.named = ts.named || len(added) > 0 || form == wildExplicit
	return msg
}

func (ts *typeState) composeFirstDelta(node []byte) []byte {
	ts.applyChanges()
	wanted := ts.allWanted()
	form := ts.nextForm()
	if form == wildNone && len(wanted) == 0 {
		return nil
	}
	msg := wire.AppendDelta(nil, ts.typ.URL, "", node, nil)
	if form == wildExplicit {
		msg = ts.appendSubscribe(msg, ts.star.self)
	}
	ts.starting = form != wildNone
	ts.form = form
	ts.withholdForeign()
	wanted, held := ts.fit(len(msg), wanted, ts.heldMembers())
	msg = slices.Grow(msg, ts.sizeFirstDelta(wanted, held))
	if form == wildLegacy {
		ts.postpone(wanted)
	} else {
		ts.ask(wanted)
		ts.named = form == wildExplicit || len(wanted) > 0
		for _, e := range wanted {
			msg = ts.appendSubscribe(msg, e)
		}
	}
	said := map[string]string{} // versions under names that are of others than who goes by them
	for _, es := range [][]*entry{wanted, held} {
		for _, e := range es {
			if !e.listed() {
				continue
			}
			if form == wildLegacy && e.of.isGlob() {
				ts.withhold(e) // a version of a member means nothing without its glob, which comes later
				continue
			}
			under := ts.aliases.versionOf(e)
			switch version, taken := ts.saidUnder(under, e, said); {
			case !taken:
				ts.resumes = true
				msg = wire.AppendInitialVersion(msg, under, e.version)
			case version != e.version && !e.wanted():
				ts.withhold(e)
			}
		}
	}
	return msg
}

// saidUnder is the version that a first message tells under a name, if that is not an entry's: of
// the resource that has the name for its own, or of the first that was called so. If it is, it is
// noted.
func (ts *typeState) saidUnder(name string, e *entry, said map[string]string) (version string, taken bool) {
	if name == e.name {
		return "", false
	}
	if own := ts.entries.get(name); own != nil && own.listed() && ts.aliases.versionOf(own) == name {
		return own.version, true
	}
	if version, taken = said[name]; !taken {
		said[name] = e.version
	}
	return version, taken
}

func (ts *typeState) appendSubscribe(msg []byte, e *entry) []byte {
	return wire.AppendSubscribe(msg, e.name, ts.params(e.of))
}

// sizeOfName is what it takes to name an entry.
func (ts *typeState) sizeOfName(e *entry) int { return wire.SizeName(e.name, ts.params(e.of)) }

// listed says whether the server is told the version that is held.
func (e *entry) listed() bool { return e.held() && !e.foreign() }

// heldMembers lists what is held for collections alone, in order.
func (ts *typeState) heldMembers() []*entry {
	if ts.entries.len() == ts.watched {
		return nil // all are wanted by name
	}
	var es []*entry
	for e := range ts.entries.all() {
		if e.listed() && !e.wanted() {
			es = append(es, e)
		}
	}
	sortEntries(es)
	return es
}

// sizeFirstDelta is how many bytes the names and versions of a first message take, or some
// more.
func (ts *typeState) sizeFirstDelta(wanted, held []*entry) (n int) {
	for _, e := range wanted {
		n += ts.sizeOfName(e) + wire.SizeInitialVersion(e.name, e.version)
	}
	for _, e := range held {
		n += wire.SizeInitialVersion(e.name, e.version)
	}
	return n
}
