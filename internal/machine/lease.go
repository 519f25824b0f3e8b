package machine

// lease is a time for which a resource is held that has a time to live (xDS protocol, "TTL"), or that the
// server deleted and that is kept for a while. The time runs while the stream is down too.
type lease struct {
	sub    *subscription
	kind   leaseKind
	stream *stream // whose alarm it is
	timer
}

type leaseKind uint8

const (
	leaseTTL   leaseKind = iota
	leaseGrace           // what the server deleted is kept
	leaseKinds           // how many there are
)

// endLease ends a lease, if there is one.
func (sub *subscription) endLease(kind leaseKind) {
	if l := sub.extras().leases[kind]; l != nil {
		l.timer = 0
		l.stream.agenda.touch(l.stream) // the resource may be of another one by now
		sub.alter(func(x *extra) { x.leases[kind] = nil })
	}
}
