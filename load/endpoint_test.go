package load

import (
	"slices"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
)

func socketAddress(address string, port uint32) *corev3.Address {
	return &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
		Address: address, PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: port},
	}}}
}

// Endpoints are counted apart where anything of their addresses differs.
//
// spec: LRS-e
func TestEndpointsApart(t *testing.T) {
	socket := socketAddress
	pipe := func(path string) *corev3.Address {
		return &corev3.Address{Address: &corev3.Address_Pipe{Pipe: &corev3.Pipe{Path: path}}}
	}
	internal := func(listener, id string) *corev3.Address {
		return &corev3.Address{Address: &corev3.Address_EnvoyInternalAddress{EnvoyInternalAddress: &corev3.EnvoyInternalAddress{
			AddressNameSpecifier: &corev3.EnvoyInternalAddress_ServerListenerName{ServerListenerName: listener}, EndpointId: id,
		}}}
	}
	all := func() []*corev3.Address {
		return []*corev3.Address{
			socket("::1", 1), socket("::1", 2), socket("::2", 1), pipe("a"), pipe("b"), internal("a", ""), internal("a", "1"), internal("b", "1"),
		}
	}
	counts := &tally{}
	seen := map[*endpointTally]*corev3.Address{}
	for _, a := range all() {
		at := counts.endpoint(a)
		if other, ok := seen[at]; ok {
			t.Errorf("%v is counted as %v", a, other)
		}
		seen[at] = a
	}
	for _, a := range all() {
		if seen[counts.endpoint(a)] == nil {
			t.Errorf("%v is counted apart from itself", a)
		}
	}
}

// Endpoints are in order in a report, which costs no text of each for each comparison.
//
// spec: LRS-e
func TestEndpointsInOrder(t *testing.T) {
	counts := &tally{entry: &entry{}}
	counts.add(issued)
	for _, port := range []uint32{80, 9, 443} {
		counts.endpoint(socketAddress("192.0.2.1", port)).add(issued)
	}
	var got []uint32
	for _, at := range counts.compose(true).GetUpstreamEndpointStats() {
		got = append(got, at.GetAddress().GetSocketAddress().GetPortValue())
	}
	if want := []uint32{9, 80, 443}; !slices.Equal(got, want) {
		t.Errorf("ports are %v, want %v", got, want)
	}
}

// A report of ten thousand endpoints takes some milliseconds: meanwhile the server gets no other, and the end of a
// program waits for it.
func BenchmarkReportOfEndpoints(b *testing.B) {
	counts := &tally{entry: &entry{}}
	for port := range uint32(10_000) {
		counts.endpoint(socketAddress("192.0.2.1", port)).add(issued)
	}
	counts.add(issued)
	for b.Loop() {
		counts.compose(true)
	}
}

// A request finds what is counted of its endpoint just before a report forgets that, since nothing was sent there
// for a while: the request is in the next reports all the same.
//
// spec: LRS-e
func TestEndpointThatIsForgottenMeanwhile(t *testing.T) {
	e := &entry{}
	counts := &tally{entry: e}
	e.localities.Store(place{}, counts)
	found := counts.endpoint(&corev3.Address{})
	var issued, succeeded uint64
	report := func() {
		for _, at := range counts.compose(true).GetUpstreamEndpointStats() {
			issued += at.GetTotalIssuedRequests()
			succeeded += at.GetTotalSuccessfulRequests()
		}
		e.commit(e.since)
	}
	for range 2 {
		counts.add(0) // elsewhere, so that there is a report
		report()
	}
	if _, ok := counts.endpoints.Load(endpointKey{}); ok {
		t.Error("the endpoint is not forgotten")
	}
	for _, kind := range []int{0, 1} {
		counts.add(kind)
		found.add(kind)
		report()
		report()
	}
	if issued != 1 || succeeded != 1 {
		t.Errorf("reports have %d requests begun and %d ended, want one", issued, succeeded)
	}
	if report(); len(counts.leaving) > 0 {
		t.Error("the endpoint is kept for ever")
	}
}
