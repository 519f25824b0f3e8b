package machine

import "slices"

// Bounds of the refused payloads that are kept of a type on a stream, for who looks at them.
const (
	maxRefusals = 16      // the newest
	maxRefused  = 1 << 16 // bytes of each; a longer one is not kept
)

// refusals are the newest payloads that were refused. One is of a subscription for as long as the subscription
// has its fault.
type refusals []refusal

type refusal struct {
	fault *Fault
	raw   []byte
}

func (r *refusals) add(f *Fault, payload []byte) {
	if len(payload) > maxRefused {
		return
	}
	if len(*r) == maxRefusals {
		*r = slices.Delete(*r, 0, 1)
	}
	*r = append(*r, refusal{f, slices.Clone(payload)})
}

// of finds what a fault refused; nil if it is not kept.
func (r refusals) of(f *Fault) []byte {
	for _, it := range r {
		if it.fault == f {
			return it.raw
		}
	}
	return nil
}
