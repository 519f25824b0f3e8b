package wire

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
)

// Bounds of what reading a response takes, in bytes of memory beside its own. An entry takes two
// bytes on the wire, and some hundred here.
const (
	// MaxOverhead is what a response may take however small it is; one that is larger may take
	// twice its own size, so that small resources, however many, are no attack.
	MaxOverhead = 96 << 20

	entryCost     = 136 // a Resource
	nameCost      = 48  // a name in a list that grows, with what it grew out of
	errorCost     = 160 // a ResourceError, likewise
	attributeCost = 64  // Attributes, where there are any
	faultCost     = 320 // the text that says what is wrong with an entry
)

// OverheadError says that a response has more entries than it may have for its size.
type OverheadError struct {
	Size  int // of the response, in bytes
	Limit int // in bytes
}

func (e *OverheadError) Error() string {
	return fmt.Sprintf("a response of %d bytes has so many entries that to read them takes more than the limit of %d bytes", e.Size, e.Limit)
}

// MaxEntries is how many entries a response of a size may have.
func MaxEntries(size int) int { return overhead(size) / entryCost }

// overhead is what a response of a size may take.
func overhead(size int) int { return max(MaxOverhead, 2*size) }

// charge counts what is taken, and says when it is too much.
func (r *Response) charge(cost int) error {
	if r.cost += cost; r.cost > overhead(r.Size) {
		return &OverheadError{r.Size, overhead(r.Size)}
	}
	return nil
}

// admit counts the entries and charges for them, before there is room made for any. costs are
// those of the fields by their numbers.
func (r *Response) admit(frame [][]byte, costs []int) (entries int, err error) {
	for _, part := range frame {
		for len(part) > 0 {
			num, typ, tag := protowire.ConsumeTag(part)
			if tag < 0 {
				break // as the scan will say
			}
			size := protowire.ConsumeFieldValue(num, typ, part[tag:])
			if size < 0 {
				break
			}
			if num == resourcesField {
				entries++
			}
			if int(num) < len(costs) {
				if err := r.charge(costs[num]); err != nil {
					return 0, err
				}
			}
			part = part[tag+size:]
		}
	}
	return entries, nil
}

// resourcesField is the number of resources in either response.
const resourcesField = 2

var (
	sotwCosts  = []int{resourcesField: entryCost, 7: errorCost}
	deltaCosts = []int{resourcesField: entryCost, 6: nameCost, 8: 2 * nameCost, 9: errorCost}
)
