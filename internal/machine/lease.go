package machine

// lease is a time for which a resource is held that has a time to live (xDS protocol, "TTL"), or that the
// server deleted and that is kept for a while. The time runs while the stream is down too.
type lease struct {
	leaseKey
	stream *stream // whose alarm it is
	timer  uint32
}

type leaseKey struct {
	sub  *subscription
	kind leaseKind
}

type leaseKind uint8

const (
	leaseTTL   leaseKind = iota
	leaseGrace           // what the server deleted is kept
)

// leases are those of a type's resources. Few have one.
type leases map[leaseKey]*lease

// end ends a lease, if there is one.
func (ls leases) end(key leaseKey) {
	if l := ls[key]; l != nil {
		l.timer = 0
		l.stream.agenda.touch(l.stream) // the resource may be of another one by now
		delete(ls, key)
	}
}

func (ls leases) endAll(sub *subscription) {
	ls.end(leaseKey{sub, leaseTTL})
	ls.end(leaseKey{sub, leaseGrace})
}
