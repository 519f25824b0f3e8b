package machine

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// verdict is what becomes of a response: what is wrong with it, and with a guard what is done once that
// has judged.
type verdict struct {
	lines          []string     // what is wrong, for the NACK: as many as that has room for
	length         int          // of them, in bytes
	valid, invalid int          // entries, as [Exchange] counts them
	ready          []sorted     // entries that need no decoding; empty without a guard
	plan           []conclusion // that is judged; nil without a guard
}

// full says that the NACK has no room for more: there may be a million that is wrong.
func (v *verdict) full() bool { return v.length > maxMessage }

// line adds what is wrong with an entry of the response.
func (v *verdict) line(i int, name string, err error) {
	if v.full() {
		return
	}
	line := fmt.Sprintf("%s: %v", name, err)
	switch {
	case i >= 0 && name == "":
		line = fmt.Sprintf("resource index %d: %v", i, err)
	case i >= 0:
		line = fmt.Sprintf("resource index %d: %s", i, line)
	}
	v.lines = append(v.lines, line)
	v.length += len(line)
}

// taken notes that an entry is used, but for its flaws.
func (v *verdict) taken(i int, sub *subscription, flaws []error) {
	if len(flaws) == 0 {
		v.valid++
		return
	}
	v.invalid++
	for _, err := range flaws {
		v.line(i, sub.name, err)
	}
}

// maxMessage is how long the text of a NACK may be; headers of 8 KiB are a common limit,
// and some servers put it there.
const (
	maxMessage = 4096
	truncated  = "...(truncated)"
)

// message is the text of a NACK: everything that is wrong, cut where it gets too long.
func (v *verdict) message() string {
	text := strings.ToValidUTF8(strings.Join(v.lines, "; "), "\uFFFD")
	if len(text) <= maxMessage {
		return text
	}
	// ACK-5: the text is bounded.
	return strings.ToValidUTF8(text[:maxMessage-len(truncated)], "") + truncated
}

// finish draws a response's conclusions; then the answer is owed.
func (m *Machine) finish(now time.Time, resp *response) {
	l, s := resp.link, resp.link.stream
	live := m.current(resp.ref) == s && s.state == up && s.types[l.typ.URL] == l
	told := len(m.fx.Notify)
	for _, c := range resp.conclusions(now) {
		m.draw(now, resp, c, live)
	}
	resp.changed = resp.changed || len(m.fx.Notify) > told
	m.heal(resp)
	if resp.unusable() {
		resp.invalid++
	} else if len(resp.lines) == 0 {
		l.accepted = now
	}
	// ACK-7: a refused version is not taken.
	if len(resp.lines) == 0 && !s.Delta && (live || s.ResumeVersion && !resp.missed) {
		l.version, l.lapsed = resp.Version, l.lapsed && !resp.tellsAll()
	}
	m.finishCollections(now, resp, live)
	m.end(now, resp)
}

// heal ends the errors of collections that the response speaks of, but not by an error. Of
// the wildcard each response speaks.
func (m *Machine) heal(resp *response) {
	if c := resp.link.star; c.self.fault != nil && c.self.seen != resp.serial {
		resp.healed = append(resp.healed, healed{c, c.self.fault})
	}
	for _, h := range resp.healed {
		switch sub := h.self; {
		case sub.fault != h.fault:
		case sub.complete:
			m.absolve(sub)
		case sub.fault.Kind != FaultTimeout:
			sub.status, sub.fault = StatusRequested, nil
		}
	}
}

// finishCollections does what a response means for collections, and if it is live, for the stream that it
// came on.
func (m *Machine) finishCollections(now time.Time, resp *response, live bool) {
	s := resp.link.stream
	if live && s.troubled() {
		m.recovered(s)
	}
	for _, c := range resp.completes() {
		f := c.self.fault
		if f == nil || f.Kind == FaultTimeout || f.Kind == FaultRejected && c.self.seen != resp.serial {
			m.complete(c.self, resp.Version)
		}
	}
	if live {
		m.resumed(resp)
		resp.link.complete = resp.link.complete || resp.link.form == wildLegacy && resp.tellsAll() && !resp.nameless
		m.answerBeside(now, resp.link)
		m.settling(now, resp)
		// ACK-1: each response is answered once.
		m.owe(now, resp)
	}
}

// completes lists the collections of which a response holds the first state.
func (resp *response) completes() (cs []*collection) {
	// WILD-5: any response makes it ready.
	if c := resp.link.star; resp.awaited(c) && !c.self.complete {
		cs = append(cs, c)
	}
	for _, c := range resp.answered() {
		if resp.link.waiting[c] && resp.awaited(c) {
			cs = append(cs, c)
		}
	}
	return cs
}

// answered lists the globs of which a response holds the first state: it speaks of them or
// of a member, or else of everything, or of nothing at all.
func (resp *response) answered() []*collection {
	cs := resp.heard
	// DELTA-14: an empty response makes all complete.
	if resp.link.fullState() || len(resp.Resources)+len(resp.Removed)+len(resp.RemovedNames)+len(resp.Errors) == 0 {
		cs = nil
		for c := range resp.link.waiting {
			cs = append(cs, c)
		}
	}
	slices.SortFunc(cs, byName)
	return cs
}
