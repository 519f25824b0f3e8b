package machine

import (
	"slices"

	"github.com/xdswatch/xdswatch/internal/wire"
)

// composeSotW makes the next DiscoveryRequest: it restates everything that is wanted. nil
// means that there is nothing to say.
func (ts *typeState) composeSotW(a *answer, node []byte) [][]byte {
	first := !ts.asked
	added, removed := ts.applyChanges()
	if first {
		added = ts.allWanted()
	}
	form := ts.nextForm()
	if form == wildLegacy {
		ts.standBeside(added)
		added, removed = nil, nil // what is wanted by name is among all
	} else if ts.form == wildLegacy {
		added = ts.allWanted()
	}
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
	ts.form = form
	if form == wildLegacy {
		return [][]byte{head}
	}
	return ts.names.after(head)
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
	added, removed := ts.applyChanges()
	added = ts.fitNames(added)
	form := ts.nextForm()
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
	}
	for _, c := range removed {
		msg = wire.AppendUnsubscribe(msg, c.name, c.params)
	}
	ts.form = form
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
			switch {
			case form != wildLegacy:
			case e.wanted(): // it is asked for later, and sent then or with the wildcard's
				e.withheld = true
				continue
			case e.of.isGlob(): // a version of a member means nothing without its glob, which comes later
				ts.withhold(e)
				continue
			}
			under := ts.aliases.versionOf(e)
			switch version, taken := ts.saidUnder(under, e, said); {
			case !taken:
				if ts.resumes = true; under == e.name {
					under = ts.spelled.ofServer(e)
				}
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
	return wire.AppendSubscribe(msg, ts.onWire(e.name), ts.params(e.of))
}

// sizeOfName is what it takes to name an entry.
func (ts *typeState) sizeOfName(e *entry) int {
	return wire.SizeName(ts.onWire(e.name), ts.params(e.of))
}

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
