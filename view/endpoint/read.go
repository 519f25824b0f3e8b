package endpoint

import (
	"fmt"
	"math"
	"strings"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
)

// reader fills a set, and collects what is wrong.
type reader struct {
	config  Config
	set     *Set
	where   string // the part that is read
	errs    []error
	seen    map[Address]bool
	places  map[place]bool
	weights map[uint32]uint64 // of localities, by priority
}

// place is a locality within a priority.
type place struct {
	priority              uint32
	region, zone, subZone string
}

func (p place) String() string {
	return strings.TrimRight(p.region+"/"+p.zone+"/"+p.subZone, "/")
}

// maxPriority is Envoy's bound of priorities.
const maxPriority = 128

func (r *reader) addf(format string, args ...any) {
	r.errs = append(r.errs, fmt.Errorf(r.where+": "+format, args...))
}

func (r *reader) locality(l *endpointv3.LocalityLbEndpoints) {
	if l.GetLocality() == nil && r.config.GRPC {
		r.addf("no locality")
	}
	// VIEW-61: gRPC ignores a locality without weight, and does not count its priority and its place.
	if r.config.GRPC && l.GetLoadBalancingWeight().GetValue() == 0 {
		r.set.ignored++
		return
	}
	if l.GetPriority() > maxPriority {
		r.addf("priority %d is over %d", l.GetPriority(), maxPriority)
		return
	}
	r.checkPlace(l)
	for int(l.GetPriority()) >= len(r.set.priorities) {
		r.set.priorities = append(r.set.priorities, Priority{})
	}
	p := &r.set.priorities[l.GetPriority()]
	p.Localities = append(p.Localities, r.endpoints(l, p))
}

// checkPlace follows VIEW-61 about localities and their weights.
func (r *reader) checkPlace(l *endpointv3.LocalityLbEndpoints) {
	at := place{l.GetPriority(), l.GetLocality().GetRegion(), l.GetLocality().GetZone(), l.GetLocality().GetSubZone()}
	if r.places[at] {
		r.addf("locality %q stands twice in priority %d", at, at.priority)
	}
	r.places[at] = true
	sum := r.weights[at.priority]
	r.weights[at.priority] += uint64(l.GetLoadBalancingWeight().GetValue())
	if sum <= math.MaxUint32 && r.weights[at.priority] > math.MaxUint32 {
		r.addf("the weights of localities in priority %d are over 4294967295 together", at.priority)
	}
}

func (r *reader) endpoints(l *endpointv3.LocalityLbEndpoints, p *Priority) Locality {
	c := Locality{Message: l}
	messages := l.GetLbEndpoints()
	if leds := l.GetLedsClusterLocalityConfig(); leds != nil && r.config.Collection != nil {
		messages = r.config.Collection(leds.GetLedsCollectionName())
	}
	var sum uint64
	for i, m := range messages {
		e, err := read(m, l)
		if r.config.DNS && e.Hostname == "" { // VIEW-17
			e.Hostname = e.Address.Addr
		}
		if err == nil {
			err = r.unique(&e)
		}
		if err != nil {
			r.addf("lb_endpoints[%d]: %w", i, err)
			continue
		}
		sum += uint64(e.Weight)
		c.total++
		p.total += float64(e.Weight)
		switch healthOf(m) {
		case usable:
			c.Endpoints = append(c.Endpoints, &e)
			c.weight += float64(e.Weight)
		case draining:
			r.set.draining = append(r.set.draining, &e)
		case unusable:
		}
	}
	if sum > math.MaxUint32 {
		r.addf("the weights of endpoints are over 4294967295 together")
	}
	p.Usable, p.Total, p.usable = p.Usable+len(c.Endpoints), p.Total+c.total, p.usable+c.weight
	r.set.total += c.total
	return c
}

// VIEW-61: an address is used once; the first endpoint that has it keeps it.
func (r *reader) unique(e *Endpoint) error {
	all := append([]Address{e.Address}, e.More...)
	for _, a := range all {
		if r.seen[a] {
			return fmt.Errorf("address %s stands twice", a.Addr)
		}
	}
	for _, a := range all {
		r.seen[a] = true
	}
	return nil
}

// gaps looks for priorities without localities, and lists the usable endpoints in the order of
// their priorities.
func (r *reader) gaps() {
	r.where = "endpoints"
	for i := range r.set.priorities {
		p := &r.set.priorities[i]
		if len(p.Localities) == 0 {
			r.addf("there is a priority %d and no priority %d", len(r.set.priorities)-1, i)
		}
		for j := range p.Localities {
			r.set.endpoints = append(r.set.endpoints, p.Localities[j].Endpoints...)
		}
	}
}

func (r *reader) policy(p *endpointv3.ClusterLoadAssignment_Policy) {
	r.set.staleAfter = p.GetEndpointStaleAfter().AsDuration()
	if f := p.GetOverprovisioningFactor(); f != nil && f.GetValue() == 0 && !r.config.GRPC {
		r.where = "policy"
		r.addf("the overprovisioning factor is 0")
	}
	for i, d := range p.GetDropOverloads() {
		r.where = fmt.Sprintf("policy.drop_overloads[%d]", i)
		drop, err := readDrop(d)
		if err != nil {
			r.addf("%w", err)
			continue
		}
		r.set.drops = append(r.set.drops, drop)
	}
}
