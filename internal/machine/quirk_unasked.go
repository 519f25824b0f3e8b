package machine

import "github.com/xdswatch/xdswatch/internal/wire"

// unasked are names that a delta server sent though nobody had subscribed to them. istiod sends all
// clusters to a client that subscribes to one, takes them for subscribed from then on, and does not answer
// who subscribes to another of them later. So such a name is unsubscribed first, and subscribed to with the
// next message.
type unasked struct {
	noQuirk
	of nameHashes
}

func (q *unasked) forget() { clear(q.of) }

// passed notes a name, unless the entry has aliases or other attributes: the client may have subscribed to an alias of it.
func (q *unasked) passed(l *link, name []byte, r *wire.Resource) {
	if r != nil && l.stream.Delta && l.form == wildNone && r.Attributes == nil {
		q.of.add(l, name)
	}
}

func (q *unasked) takesBack(l *link, name string) bool { return q.of.take(l, name) }
