package machine

import (
	"fmt"
	"time"

	"github.com/xdswatch/xdswatch/internal/wire"
)

// Some servers answer an answer at once with the same response again: a NACK with the
// refused version, an ACK with another empty or unchanged response. That is thousands of
// round trips a second; such answers are slowed down until something else comes.
const (
	stormNacks  = 3  // S-1
	stormSame   = 10 // S-2
	stormWindow = time.Second
	stormPause  = time.Second / 4
)

// storms are those of a stream's types.
type storms struct {
	noQuirk
	of byType[storm]
}

// storm is a response that a server repeats.
type storm struct {
	last    string // what the repeated response looks like; "" if it is worth something
	count   int
	since   time.Time
	heardAt time.Time
	sentAt  time.Time // of the last answer
	raging  bool
}

func (q *storms) forget() { clear(q.of) }

// answering looks for the beginning of a storm.
func (q *storms) answering(m *Machine, now time.Time, resp *response, detail *wire.Status) {
	l := resp.link
	st := q.of.on(l)
	if st.heard(now, resp, detail) {
		m.logType(l, warning, "the server repeats one response without end; answers to it are slowed down")
	}
	if st.raging && detail == nil && resp.takesStarForName() {
		m.warnStar(l)
	}
}

// before holds answers back that have nothing else to say: a change of interest may bring
// something new.
func (q *storms) before(l *link, what debt) (at time.Time, doubts int) {
	if st := q.of[l]; st != nil && st.raging && what == oweAnswer {
		at = st.sentAt.Add(stormPause)
	}
	return at, 0
}

func (q *storms) requested(now time.Time, l *link, what debt, _ int) {
	if st := q.of[l]; st != nil && what != oweInterest {
		st.sentAt = now
	}
}

// heard looks at a response and says whether a storm began with it.
func (st *storm) heard(now time.Time, resp *response, detail *wire.Status) bool {
	look, limit := resp.look(detail)
	gap := now.Sub(st.heardAt)
	st.heardAt = now
	if look == "" || look != st.last || gap > stormWindow {
		*st = storm{last: look, count: 1, since: now, heardAt: now, sentAt: st.sentAt}
		return false
	}
	if !st.raging && now.Sub(st.since) > stormWindow {
		st.count, st.since = 0, now
	}
	st.count++
	began := !st.raging && st.count >= limit
	st.raging = st.raging || began
	return began
}

// look tells repetitions by their looks.
func (resp *response) look(detail *wire.Status) (look string, limit int) {
	switch {
	case resp.changed && detail == nil:
		return "", 0
	case detail != nil:
		return fmt.Sprintf("nack %s %x", resp.Version, resp.fingerprint()), stormNacks
	}
	return fmt.Sprintf("same %s %x", resp.Version, resp.fingerprint()), stormSame
}

// fingerprint tells apart responses with different resources, since an answer that comes in
// many parts is no storm, and not those with the same in another order, which servers that
// keep their resources in a map send.
func (resp *response) fingerprint() (sum uint64) {
	for i := range resp.Resources {
		r := &resp.Resources[i]
		sum += hashOf(r.Name) + 31*hashOf(r.Payload)
	}
	if sum += resp.removedSum; resp.removedSum == 0 {
		for _, name := range resp.Removed {
			sum += 7 * hashOf(name)
		}
	}
	for i := range resp.RemovedNames { // those that are for others too
		sum += 11 * hashOf(resp.RemovedNames[i].Name)
	}
	for i := range resp.Errors {
		sum += 3 * hashOf(resp.Errors[i].Name)
	}
	return sum + uint64(len(resp.Resources)+len(resp.Removed))
}

// takesStarForName says whether a response to an explicit wildcard, that comes over and over, holds
// nothing but what was subscribed to by name.
func (resp *response) takesStarForName() bool {
	// P-3: only an explicit wildcard can be taken for a name.
	if resp.link.form != wildExplicit {
		return false
	}
	for sub := range resp.link.owned() {
		if sub.seen == resp.serial && !sub.wanted() {
			return false
		}
	}
	return true
}
