package endpoint

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
)

// Config says how an assignment is read. Its zero value is Envoy's way.
type Config struct {
	// GRPC reads the assignment as gRPC does; see the package's comment.
	GRPC bool
	// DNS says that the assignment is that of a cluster that resolves host names (STRICT_DNS,
	// LOGICAL_DNS): an endpoint without a hostname of its own has the name and the port that it
	// is resolved from as its hostname (gRFC A81).
	DNS bool
	// Collection finds the endpoints of a locality that are a collection of their own (LEDS), by
	// its name. Until they are there, or if it is nil, the locality has no endpoints. The view's
	// Endpoints.Assignment has filled them in already.
	Collection func(name string) []*endpointv3.LbEndpoint
}

// Set is the endpoints of an assignment. It is immutable and safe for concurrent use.
type Set struct {
	priorities []Priority
	endpoints  []*Endpoint
	draining   []*Endpoint
	grpc       bool
	policy     *endpointv3.ClusterLoadAssignment_Policy
	total      int // endpoints, usable or not
	ignored    int // localities, for their weight
	drops      []Drop
	staleAfter time.Duration
	table      table
	err        error
}

// Priority is the localities of one priority.
type Priority struct {
	// Share is the part of all requests that the priority takes, from 0 to 1.
	Share float64
	// Usable and Total count its endpoints.
	Usable, Total int
	Localities    []Locality

	usable, total float64 // by weight, if the policy says so
}

// Locality is the endpoints of one place.
type Locality struct {
	Message *endpointv3.LocalityLbEndpoints
	// Share is the part of the priority's requests that the locality takes, from 0 to 1.
	Share float64
	// Endpoints are the usable ones.
	Endpoints []*Endpoint

	total  int
	weight float64 // of its usable endpoints together
}

// New reads an assignment, which is kept and must not change afterwards. It always returns a set;
// what is wrong with the assignment stands in [Set.Err].
func New(a *endpointv3.ClusterLoadAssignment, config Config) *Set {
	r := reader{config: config, set: &Set{}, seen: map[Address]bool{}, places: map[place]bool{}, weights: map[uint32]uint64{}}
	for i, l := range a.GetEndpoints() {
		r.where = fmt.Sprintf("endpoints[%d]", i)
		r.locality(l)
	}
	r.gaps()
	r.policy(a.GetPolicy())
	s := r.set
	s.err = errors.Join(r.errs...)
	s.grpc, s.policy = config.GRPC, a.GetPolicy()
	s.share()
	s.table = s.build()
	return s
}

// Pick chooses an endpoint by weight; random is any number, such as rand.Uint64() or that of a
// [Smooth]. It is nil if there is nothing to choose; [Set.Reason] says why. It takes constant time.
func (s *Set) Pick(random uint64) *Endpoint {
	i, ok := s.table.pick(random)
	if !ok {
		return nil
	}
	return s.endpoints[i]
}

// Endpoints lists the usable endpoints of all priorities, in their order. The slice must not be
// changed.
func (s *Set) Endpoints() []*Endpoint { return s.endpoints }

// Draining lists the endpoints that take no new requests, but keep the sessions that they have.
func (s *Set) Draining() []*Endpoint { return s.draining }

// Priorities are the priorities from 0. One without localities is empty.
func (s *Set) Priorities() []Priority { return s.priorities }

// StaleAfter is how long the assignment is good if the server sends no other
// (endpoint_stale_after); 0 is for ever.
func (s *Set) StaleAfter() time.Duration { return s.staleAfter }

// Err joins what is wrong with the assignment, or is nil.
func (s *Set) Err() error { return s.err }

// Reason says why there is nothing to pick, or is "".
func (s *Set) Reason() string {
	switch {
	case len(s.table.thresholds) > 0:
		return ""
	case s.ignored > 0 && len(s.endpoints) == 0:
		return fmt.Sprintf("gRPC ignores localities without a weight, and %d have none", s.ignored)
	case len(s.priorities) == 0:
		return "the assignment has no localities"
	case s.total == 0:
		return "no locality has endpoints"
	case len(s.endpoints) > 0:
		return "no locality with usable endpoints has a weight"
	default:
		return fmt.Sprintf("none of %d endpoints is healthy", s.total)
	}
}

// share gives priorities and localities their parts of the requests.
func (s *Set) share() {
	policy, grpc := s.policy, s.grpc
	factor := 1.4
	if f := policy.GetOverprovisioningFactor().GetValue(); f > 0 { // with 0 nothing would take a request
		factor = float64(f) / 100
	}
	for i := range s.priorities {
		s.priorities[i].shareLocalities(grpc, factor)
	}
	left := 1.0
	if grpc {
		for i := range s.priorities {
			if p := &s.priorities[i]; p.takes() {
				p.Share = 1
				return
			}
		}
		return
	}
	var sum float64
	for i := range s.priorities {
		sum += s.priorities[i].health(factor, policy.GetWeightedPriorityHealth())
	}
	sum = min(sum, 1)
	for i := range s.priorities {
		p := &s.priorities[i]
		if sum > 0 {
			p.Share = min(left, p.health(factor, policy.GetWeightedPriorityHealth())/sum)
			left -= p.Share
		}
	}
}

// health is how much of the requests the priority can take, from 0 to 1.
func (p *Priority) health(factor float64, weighted bool) float64 {
	switch {
	case !p.takes():
		return 0
	case weighted:
		return min(1, factor*p.usable/p.total)
	default:
		return min(1, factor*float64(p.Usable)/float64(p.Total))
	}
}

// takes is whether a locality can take requests.
func (p *Priority) takes() bool {
	for i := range p.Localities {
		if p.Localities[i].Share > 0 {
			return true
		}
	}
	return false
}

// shareLocalities shares a priority by the weights of localities.
func (p *Priority) shareLocalities(grpc bool, factor float64) {
	weighted := grpc
	for i := range p.Localities {
		weighted = weighted || p.Localities[i].Message.GetLoadBalancingWeight().GetValue() > 0
	}
	var sum float64
	for i := range p.Localities {
		l := &p.Localities[i]
		switch {
		case len(l.Endpoints) == 0:
			continue
		case !weighted:
			l.Share = l.weight
		default:
			// VIEW-61: a locality without a weight, where others have one, takes nothing.
			l.Share = float64(l.Message.GetLoadBalancingWeight().GetValue())
			if !grpc {
				l.Share *= min(1, factor*float64(len(l.Endpoints))/float64(l.total))
			}
		}
		sum += l.Share
	}
	for i := range p.Localities {
		if sum > 0 {
			p.Localities[i].Share /= sum
		}
	}
}

// build makes the table of weights for Pick, in the order of s.endpoints.
func (s *Set) build() table {
	weights := make([]float64, 0, len(s.endpoints))
	var sum float64
	for i := range s.priorities {
		p := &s.priorities[i]
		for j := range p.Localities {
			l := &p.Localities[j]
			for _, e := range l.Endpoints {
				w := p.Share * l.Share * float64(e.Weight) / l.weight
				weights = append(weights, w)
				sum += w
			}
		}
	}
	if sum == 0 || math.IsNaN(sum) {
		return table{}
	}
	return newTable(weights, sum)
}

// Filter is the set with fewer usable endpoints: those for which keep is true, such as those that
// answer health checks. The others count as not healthy, so that priorities and localities are
// shared anew.
func (s *Set) Filter(keep func(*Endpoint) bool) *Set {
	f := *s
	f.priorities, f.endpoints = make([]Priority, len(s.priorities)), nil
	for i, p := range s.priorities {
		p.Usable, p.usable, p.Share = 0, 0, 0
		p.Localities = slices.Clone(p.Localities)
		for j := range p.Localities {
			l := &p.Localities[j]
			all := l.Endpoints
			l.Endpoints, l.weight, l.Share = nil, 0, 0
			for _, e := range all {
				if keep(e) {
					l.Endpoints = append(l.Endpoints, e)
					l.weight += float64(e.Weight)
				}
			}
			p.Usable, p.usable = p.Usable+len(l.Endpoints), p.usable+l.weight
			f.endpoints = append(f.endpoints, l.Endpoints...)
		}
		f.priorities[i] = p
	}
	f.share()
	f.table = f.build()
	return &f
}
