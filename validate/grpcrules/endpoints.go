package grpcrules

import (
	"fmt"
	"math"
	"net"
	"net/netip"
	"strconv"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	gcpauthnv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/gcp_authn/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
)

// assignment judges endpoints (xDS client of gRPC: gRFC A27, A42, A52, A86).
func (j *judge) assignment(a *endpointv3.ClusterLoadAssignment) {
	for i, d := range a.GetPolicy().GetDropOverloads() {
		if _, known := typev3.FractionalPercent_DenominatorType_name[int32(d.GetDropPercentage().GetDenominator())]; !known {
			j.refuses(RuleDropDenominator, at("policy", "dropOverloads", i)+".dropPercentage.denominator", "the denominator is not known")
		}
	}
	seen := assigned{map[uint32]map[place]bool{}, map[uint32]uint64{}, map[string]bool{}}
	for i, l := range a.GetEndpoints() {
		j.locality(at("", "endpoints", i), l, seen)
	}
	for p := range uint32(len(seen.places)) {
		if seen.places[p] == nil {
			j.refuses(RulePriorityGap, "endpoints", fmt.Sprintf("there is no locality of priority %d, but of a later one", p))
			return
		}
	}
}

// assigned is what an assignment had so far.
type assigned struct {
	places    map[uint32]map[place]bool // by priority
	weights   map[uint32]uint64         // sums, by priority
	addresses map[string]bool
}

type place struct{ region, zone, subZone string }

func (j *judge) locality(path string, l *endpointv3.LocalityLbEndpoints, seen assigned) {
	if l.GetLocality() == nil {
		j.refuses(RuleLocalityID, path, "there is no locality")
		return
	}
	weight, p := l.GetLoadBalancingWeight().GetValue(), l.GetPriority()
	if weight == 0 {
		j.ignores(RuleLocalityIgnored, path, "the locality has no weight, and is ignored with its endpoints and its priority")
		return
	}
	if seen.weights[p] += uint64(weight); seen.weights[p] > math.MaxUint32 {
		j.refuses(RuleLocalityWeights, path+".loadBalancingWeight", "the weights of the priority sum up to more than 4294967295")
	}
	if seen.places[p] == nil {
		seen.places[p] = map[place]bool{}
	}
	id := place{l.GetLocality().GetRegion(), l.GetLocality().GetZone(), l.GetLocality().GetSubZone()}
	if seen.places[p][id] {
		j.refuses(RuleLocalityDuplicate, path+".locality", "the locality is in the priority before")
	}
	seen.places[p][id] = true
	var sum uint64
	for i, e := range l.GetLbEndpoints() {
		sum += j.endpoint(at(path, "lbEndpoints", i), e, seen)
	}
	if sum > math.MaxUint32 {
		j.refuses(RuleEndpointWeights, path+".lbEndpoints", "the weights of the locality sum up to more than 4294967295")
	}
	if j.HTTPConnect {
		j.metadata(path, l.GetMetadata())
	}
}

// endpoint judges an endpoint and returns its weight.
func (j *judge) endpoint(path string, e *endpointv3.LbEndpoint, seen assigned) uint64 {
	weight := uint64(1)
	if w := e.GetLoadBalancingWeight(); w != nil {
		if weight = uint64(w.GetValue()); weight == 0 {
			j.refuses(RuleEndpointWeight, path+".loadBalancingWeight", "the weight is 0")
		}
	}
	address := func(path string, a *corev3.Address) {
		s := a.GetSocketAddress()
		text := net.JoinHostPort(s.GetAddress(), strconv.Itoa(int(s.GetPortValue())))
		if seen.addresses[text] {
			j.refuses(RuleEndpointDuplicate, path, "the address is in the assignment before")
		}
		seen.addresses[text] = true
	}
	address(path+".endpoint.address", e.GetEndpoint().GetAddress())
	for i, more := range e.GetEndpoint().GetAdditionalAddresses() {
		address(at(path, "endpoint.additionalAddresses", i)+".address", more.GetAddress())
	}
	j.metadata(path, e.GetMetadata())
	return weight
}

// metadata judges what gRPC converts: addresses of proxies (gRFC A86) and audiences (gRFC A83).
func (j *judge) metadata(path string, m *corev3.Metadata) {
	for key, a := range m.GetTypedFilterMetadata() {
		path := atKey(path, "metadata.typedFilterMetadata", key)
		address, audience := &corev3.Address{}, &gcpauthnv3.Audience{}
		switch {
		case j.HTTPConnect && isA(a, address) && j.read(path, a, address):
			s := address.GetSocketAddress()
			if _, err := netip.ParseAddr(s.GetAddress()); err != nil || s.GetPortValue() == 0 {
				j.refuses(RuleMetadata, path, "the address is no IP address with a port")
			}
		case j.GCPAuthentication && isA(a, audience) && j.read(path, a, audience):
			if audience.GetUrl() == "" {
				j.refuses(RuleMetadata, path+".url", "the audience has no URL")
			}
		}
	}
}
