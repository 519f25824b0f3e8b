package wire

import (
	"bytes"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
)

// Bounds of a response. Without them a server could make the client use many times the memory
// that the response takes on the wire.
const (
	// MaxOverhead is how many bytes of memory the entries of a response may take beside its own
	// bytes, however small it is; a response of more than twice that may take half its size. An
	// entry takes two bytes on the wire, and some hundred here.
	MaxOverhead = 96 << 20
	// MaxResources is how many resources a response may have, however small it is; a larger one
	// may have one for each resourceSize of its bytes, which is more from 128 MiB on. To decode,
	// keep and notify a resource takes up to a kilobyte, however small it is.
	MaxResources = 1 << 18
	resourceSize = 512
	// MaxText is how many bytes a version, a nonce, a type URL and the identifier of a control
	// plane may have. They are copied, kept, sent back and logged.
	MaxText = 64 << 10
	// MaxName is how many bytes the name may have that a Resource gives itself.
	MaxName = 1 << 20

	entryCost     = 136     // a Resource
	nameCost      = 48      // a name in a list that grows, with what it grew out of
	shortName     = 1 << 10 // bytes of a name that are not charged for
	nameFactor    = 8       // for each further byte: names are parsed, escaped, kept and printed
	fewParams     = 16      // context parameters of a name that are not charged for
	paramCost     = 256     // each further one: it is escaped and sorted
	errorCost     = 160     // a ResourceError, likewise
	attributeCost = 64      // Attributes, where there are any
	faultCost     = 320     // the text that says what is wrong with an entry
)

// OverheadError says that a response has more entries, or longer names, than it may have for its size.
type OverheadError struct {
	Size  int // of the response, in bytes
	Limit int // in bytes
}

func (e *OverheadError) Error() string {
	return fmt.Sprintf("a response of %d bytes has so many entries, or such long names, that to read them takes more than the limit of %d bytes", e.Size, e.Limit)
}

// CountError says that a response has more resources than it may have for its size.
type CountError struct {
	Size  int // of the response, in bytes
	Limit int // resources
}

func (e *CountError) Error() string {
	return fmt.Sprintf("a response of %d bytes has more resources than the limit of %d", e.Size, e.Limit)
}

// errText refuses a version, a nonce, a type URL or an identifier; errName a name.
var (
	errText = fmt.Errorf("it is longer than the limit of %d bytes", MaxText)
	errName = fmt.Errorf("the name is longer than the limit of %d bytes", MaxName)
)

// ResourcesIn is how many resources a response of a size may have.
func ResourcesIn(size int) int { return max(MaxResources, size/resourceSize) }

// overhead is what a response of a size may take.
func overhead(size int) int { return max(MaxOverhead, size/2) }

// charge counts what is taken, and says when it is too much.
func (r *Response) charge(cost int) error {
	if r.cost += cost; r.cost > overhead(r.Size) {
		return &OverheadError{r.Size, overhead(r.Size)}
	}
	return nil
}

// ChargeName counts what the name of a resource takes, and says when it is too much.
func (r *Response) ChargeName(name []byte) error {
	cost := nameFactor * max(0, len(name)-shortName)
	if bytes.HasPrefix(name, []byte("xdstp:")) {
		cost += paramCost * max(0, bytes.Count(name, []byte("&"))-fewParams)
	}
	return r.charge(cost)
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
				if entries++; entries > ResourcesIn(r.Size) {
					return 0, &CountError{r.Size, ResourcesIn(r.Size)}
				}
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
