package machine

import "github.com/xdswatch/xdswatch/internal/wire"

// unasked are names that a delta server sent though nobody had subscribed to them. istiod sends all
// clusters to a client that subscribes to one, takes them for subscribed from then on, and does not answer
// who subscribes to another of them later. So such a name is unsubscribed first, and subscribed to with the
// next message.
type unasked struct {
	noQuirk
	of map[*link]map[uint64]bool // hashes of names
}

// maxUnasked is how many names of a type are remembered so; the others wait for their timers.
const maxUnasked = 1 << 16

func (q *unasked) forget() { clear(q.of) }

// passed notes a name. What has other names may have been subscribed to by one of them.
func (q *unasked) passed(l *link, r *wire.Resource, name []byte) {
	if !l.stream.Delta || l.form != wildNone || r.Attributes != nil {
		return
	}
	names := q.of[l]
	if names == nil {
		names = map[uint64]bool{}
		q.of[l] = names
	}
	if len(names) < maxUnasked {
		names[hashOf(name)] = true
	}
}

func (q *unasked) takesBack(l *link, name string) bool {
	names := q.of[l]
	if len(names) == 0 {
		return false
	}
	hash := hashOf([]byte(name))
	taken := names[hash]
	delete(names, hash)
	return taken
}
