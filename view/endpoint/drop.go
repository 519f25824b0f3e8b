package endpoint

import (
	"fmt"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
)

// Drop is a share of requests that are refused, to protect the endpoints.
type Drop struct {
	Category string
	// Numerator of Denominator requests are dropped.
	Numerator, Denominator uint32
}

func readDrop(d *endpointv3.ClusterLoadAssignment_Policy_DropOverload) (Drop, error) {
	drop := Drop{Category: d.GetCategory(), Numerator: d.GetDropPercentage().GetNumerator()}
	switch d.GetDropPercentage().GetDenominator() {
	case typev3.FractionalPercent_HUNDRED:
		drop.Denominator = 100
	case typev3.FractionalPercent_TEN_THOUSAND:
		drop.Denominator = 10_000
	case typev3.FractionalPercent_MILLION:
		drop.Denominator = 1_000_000
	default:
		return drop, fmt.Errorf("unknown denominator %v", d.GetDropPercentage().GetDenominator())
	}
	drop.Numerator = min(drop.Numerator, drop.Denominator)
	return drop, nil
}

// Drops are the categories, in their order. The slice must not be changed.
func (s *Set) Drops() []Drop { return s.drops }

// Drop decides whether a request is dropped, and for which category. Each category takes its share
// of what those before it left. Random gives any numbers, such as rand.Uint64.
func (s *Set) Drop(random func() uint64) (category string, dropped bool) {
	for i := range s.drops {
		d := &s.drops[i]
		if random()%uint64(d.Denominator) < uint64(d.Numerator) {
			return d.Category, true
		}
	}
	return "", false
}
