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

// answered notes that an answer left.
func (st *storm) answered(now time.Time) { st.sentAt = now }

// look tells repetitions by their looks.
func (resp *response) look(detail *wire.Status) (look string, limit int) {
	switch {
	case resp.changed && detail == nil:
		return "", 0
	case detail != nil:
		return "nack " + resp.Version + " " + detail.Message, stormNacks
	}
	return fmt.Sprintf("same %s %x", resp.Version, resp.fingerprint()), stormSame
}

// fingerprint tells apart unchanged responses with different resources: an answer that
// comes in many parts is no storm.
func (resp *response) fingerprint() (sum uint64) {
	add := func(b []byte) { sum = sum*31 + hashOf(b) }
	if n := len(resp.Resources); n > 0 {
		for _, r := range []*wire.Resource{&resp.Resources[0], &resp.Resources[n-1]} {
			add(r.Name)
			add(r.Payload)
		}
	}
	if n := len(resp.Removed); n > 0 {
		add(resp.Removed[0])
		add(resp.Removed[n-1])
	}
	for _, e := range resp.Errors {
		add(e.Name)
	}
	return sum + uint64(len(resp.Resources)+len(resp.Removed))
}
