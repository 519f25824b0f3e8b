package endpoint_test

import (
	"math"
	"testing"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/proto"

	"github.com/xdswatch/xdswatch/view/endpoint"
)

// Whatever a server sends, the shares add up, and what is picked is usable and has a share.
func FuzzNew(f *testing.F) {
	for _, text := range []string{
		`endpoints: [{load_balancing_weight: 1, lb_endpoints: [{at: a}, {at: b, load_balancing_weight: 3, health_status: UNHEALTHY}]}, {priority: 1, lb_endpoints: [{at: c}]}]`,
		`endpoints: [{locality: {region: r}, lb_endpoints: [{at: a, health_status: DRAINING}]}]
policy: {overprovisioning_factor: 100, weighted_priority_health: true, drop_overloads: [{category: c, drop_percentage: {numerator: 5}}]}`,
	} {
		data, err := proto.Marshal(assignment(f, text))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data, uint64(1)<<63, false)
		f.Add(data, uint64(math.MaxUint64), true)
	}
	f.Fuzz(func(t *testing.T, data []byte, random uint64, grpc bool) {
		a := &endpointv3.ClusterLoadAssignment{}
		if proto.Unmarshal(data, a) != nil {
			return
		}
		s := endpoint.New(a, endpoint.Config{GRPC: grpc})
		s.Drop(func() uint64 { return random })
		var sum float64
		for _, p := range s.Priorities() {
			sum += p.Share
		}
		e := s.Pick(random)
		if (e != nil) != (sum > 0) || (e == nil) != (s.Reason() != "") || sum > 0 && math.Abs(sum-1) > 1e-6 {
			t.Fatalf("the shares are %v in all, picked %v, the reason is %q", sum, e, s.Reason())
		}
		if e != nil && s.Priorities()[e.Priority].Share == 0 {
			t.Errorf("picked %+v, whose priority has no share", e.Address)
		}
		if none := s.Filter(func(*endpoint.Endpoint) bool { return false }); none.Pick(random) != nil {
			t.Error("picked what was filtered out")
		}
	})
}
