package machine

import (
	"time"

	"github.com/xdswatch/xdswatch/internal/wire"
)

// receivedTTL takes the time to live that an entry of a response has, or has not: each receipt sets
// it anew, a heartbeat too, and one without ends it.
func (m *Machine) receivedTTL(now time.Time, sub *subscription, r *wire.Resource) {
	s, key := sub.stream(), leaseKey{sub, alarmTTL}
	// TTL-1: it runs from each receipt.
	if r.HasTTL {
		m.lease(now, s, key, r.TTL)
	} else {
		s.leases.end(key)
	}
}

// renewTTL takes the time to live of what was sent again, and has the store keep it.
func (m *Machine) renewTTL(now time.Time, sub *subscription, r *wire.Resource) {
	limited := r.HasTTL || sub.stream().leases[leaseKey{sub, alarmTTL}] != nil
	if m.receivedTTL(now, sub, r); limited {
		m.store(sub, expiry(now, r))
	}
}

// expiry is when the time to live is over that an entry of a response has; zero if it has none.
func expiry(now time.Time, r *wire.Resource) time.Time {
	if !r.HasTTL {
		return time.Time{}
	}
	return now.Add(min(r.TTL, longest))
}

// lease has a resource held for some time more, and no longer.
func (m *Machine) lease(now time.Time, s *stream, key leaseKey, wait time.Duration) {
	l := s.leases[key]
	if l == nil {
		l = &lease{leaseKey: key}
		if s.leases == nil {
			s.leases = leases{}
		}
		s.leases[key] = l
	}
	l.until = s.clock.at(now) + min(wait, longest)
	m.setAlarm(now, s, l, wait)
}

// takeMoved takes the times of what came to a stream.
func (m *Machine) takeMoved(now time.Time, s *stream) {
	for _, it := range s.moved {
		if it.sub.gone {
			it.from.leases.endAll(it.sub)
			continue
		}
		// TTL-1: the time goes on.
		m.moveLeases(now, it.sub, it.from, s)
	}
	s.moved = nil
}

// moveLeases takes what is left of a subscription's times to another stream.
func (m *Machine) moveLeases(now time.Time, sub *subscription, from, to *stream) {
	for _, kind := range []alarmKind{alarmTTL, alarmGrace} {
		key := leaseKey{sub, kind}
		if l := from.leases[key]; l != nil {
			from.leases.end(key)
			m.lease(now, to, key, l.until-from.clock.at(now))
		}
	}
}

func (l *lease) alarm() *uint32 { return &l.timer }

func (l *lease) order() (alarmKind, string, string) {
	return l.kind, l.sub.of.cache.typ.URL, l.sub.name
}

func (l *lease) ring(m *Machine, _ time.Time, s *stream) {
	delete(s.leases, l.leaseKey)
	switch sub := l.sub; {
	case sub.gone:
	case l.kind == alarmTTL:
		// TTL-1: the time to live is over.
		m.expireTTL(sub)
	case sub.keptDeleted():
		m.noteAbsent(sub, sub.reason)
	}
}
