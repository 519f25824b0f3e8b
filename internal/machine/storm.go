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
	stormNacks  = 3
	stormSame   = 10
	stormWindow = time.Second
	stormPause  = time.Second / 4
)

type storm struct {
	last     string // what the repeated response looks like; "" if it is worth something
	count    int
	since    time.Time
	heardAt  time.Time
	sentAt   time.Time
	raging   bool
	earliest time.Time // when the next answer may leave
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
	if st.raging {
		st.earliest = st.sentAt.Add(stormPause)
	}
	return began
}

// answered notes that an answer left. Of several that are owed the next has to wait too.
func (st *storm) answered(now time.Time) {
	st.sentAt = now
	if st.raging {
		st.earliest = now.Add(stormPause)
	}
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
	if sum += resp.siftSum; resp.siftSum == 0 {
		for _, name := range resp.Removed {
			sum += 7 * hashOf(name)
		}
	}
	for i := range resp.RemovedNames { // those that are for others too
		sum += 11 * hashOf(resp.RemovedNames[i].Name)
	}
	for _, e := range resp.Errors {
		sum += 3 * hashOf(e.Name)
	}
	return sum + uint64(len(resp.Resources)+resp.removes)
}
