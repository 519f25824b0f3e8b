package machine

import "slices"

// Bounds of the refused payloads that are kept of a type on a stream, for who looks at them.
const (
	maxRefusals = 16      // the newest
	maxRefused  = 1 << 16 // bytes of each; a longer one is not kept
)

// refusals are the newest payloads that were refused. One is of a subscription for as long as the subscription
// has its fault.
type refusals struct {
	list []refusal
	next int // the place of the next
}

type refusal struct {
	fault *Fault
	raw   []byte
}

func (r *refusals) add(f *Fault, payload []byte) {
	if len(payload) > maxRefused {
		return
	}
	it := refusal{f, slices.Clone(payload)}
	if len(r.list) < maxRefusals {
		r.list = append(r.list, it)
		return
	}
	r.list[r.next] = it
	r.next = (r.next + 1) % maxRefusals
}

// of finds what a fault refused; nil if it is not kept.
func (r *refusals) of(f *Fault) []byte {
	for _, it := range r.list {
		if it.fault == f {
			return it.raw
		}
	}
	return nil
}
