package machine

import "time"

// lease is until when a resource is held that has a time to live (xDS protocol, "TTL"), or that the
// server deleted and that is kept for a while. The time runs while the stream is down too.
type lease struct {
	leaseKey
	timer uint32
	until time.Duration // on the stream's clock
}

type leaseKey struct {
	sub  *subscription
	kind alarmKind // alarmTTL or alarmGrace
}

// leases are those of a stream's resources; nil without any. Few have one.
type leases map[leaseKey]*lease

func (ls leases) end(key leaseKey) {
	if l := ls[key]; l != nil {
		l.timer = 0
		delete(ls, key)
	}
}

func (ls leases) endAll(sub *subscription) {
	ls.end(leaseKey{sub, alarmTTL})
	ls.end(leaseKey{sub, alarmGrace})
}

// moved is a subscription that came from another stream in this step, for a collection of another source.
type moved struct {
	sub  *subscription
	from *stream
}
