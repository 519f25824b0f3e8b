package machine

import (
	"time"

	"github.com/xdswatch/xdswatch/internal/wire"
)

// receivedTTL sets the time to live anew with each entry that has one, a heartbeat too. An entry without one ends it.
func (m *Machine) receivedTTL(now time.Time, sub *subscription, r *wire.Resource) {
	// TTL-1: the time runs from each receipt.
	if r.HasTTL {
		m.lease(now, sub, leaseTTL, r.TTL)
	} else {
		sub.endLease(leaseTTL)
	}
}

// renewTTL sets the time to live of a value that was sent again, and has the store keep it.
func (m *Machine) renewTTL(now time.Time, sub *subscription, r *wire.Resource) {
	limited := r.HasTTL || sub.leaseOf(leaseTTL) != nil
	if m.receivedTTL(now, sub, r); limited {
		m.store(sub, expiry(now, r))
	}
}

// expiry is when the time to live of an entry is over, in Unix nanoseconds; 0 if the entry has none.
func expiry(now time.Time, r *wire.Resource) int64 {
	if !r.HasTTL {
		return 0
	}
	return now.Add(min(r.TTL, longest)).UnixNano()
}

// lease has a resource held for some time more, and no longer. The time is on the clock of the active server's stream, and
// goes on there when the stream ends, or when another server becomes active.
func (m *Machine) lease(now time.Time, sub *subscription, kind leaseKind, wait time.Duration) {
	l := sub.leaseOf(kind)
	if l == nil {
		l = &lease{sub: sub, kind: kind}
		sub.alter(func(x *extra) { x.leases[kind] = l })
	}
	l.stream, l.wait = sub.stream(), wait
	m.setAlarm(now, l.stream, l, wait)
}

func (l *lease) ring(m *Machine, now time.Time) {
	// The server that is active by now may have sent the resource again, in a response that the client has not read yet.
	if s := l.sub.stream(); s.clock.stopped() {
		m.lease(now, l.sub, l.kind, min(l.wait, s.clock.still(now))) // FC-1: for as long as the server was not read
		return
	}
	l.sub.endLease(l.kind)
	switch sub := l.sub; {
	case l.kind == leaseTTL:
		sub.link().resume = "" // SOTW-2: not everything of that version is held any more
		// TTL-1: the time to live is over.
		// TTL-2: as if the server had removed it, even where deletions are ignored, since the server itself set the time.
		m.noteAbsent(sub, ReasonTTL)
	case sub.keptDeleted():
		m.noteAbsent(sub, sub.reason)
	}
}
