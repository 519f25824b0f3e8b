package load

import (
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
)

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
