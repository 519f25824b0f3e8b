package endpoint_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/wrapperspb"
	"sigs.k8s.io/yaml"

	"github.com/xdswatch/xdswatch/view/endpoint"
)

// assignment reads one written as YAML, where "at: host" stands for an address with port 80.
func assignment(t testing.TB, text string) *endpointv3.ClusterLoadAssignment {
	t.Helper()
	for {
		before, rest, ok := strings.Cut(text, "at: ")
		if !ok {
			break
		}
		end := strings.IndexAny(rest, ",}")
		text = before + "endpoint: {address: {socket_address: {address: " + rest[:end] + ", port_value: 80}}}" + rest[end:]
	}
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	a := &endpointv3.ClusterLoadAssignment{}
	if err := protojson.Unmarshal(data, a); err != nil {
		t.Fatalf("%v\n%s", err, data)
	}
	return a
}

// level is a locality of a priority with that many endpoints, so many of them healthy.
func level(priority, healthy, total int) *endpointv3.LocalityLbEndpoints {
	l := &endpointv3.LocalityLbEndpoints{
		Priority: uint32(priority), Locality: &corev3.Locality{Region: fmt.Sprint("r", priority)},
	}
	for i := range total {
		e := &endpointv3.LbEndpoint{HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{
			Address: &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
				Address: fmt.Sprintf("10.%d.%d.%d", priority, i/256, i%256), PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: 80},
			}}},
		}}}
		if i >= healthy {
			e.HealthStatus = corev3.HealthStatus_UNHEALTHY
		}
		l.LbEndpoints = append(l.LbEndpoints, e)
	}
	return l
}

// addresses of the usable endpoints.
func addresses(s *endpoint.Set) (all []string) {
	for _, e := range s.Endpoints() {
		all = append(all, e.Address.Addr)
	}
	return all
}

// spec: VIEW-61
func TestHealth(t *testing.T) {
	s := endpoint.New(assignment(t, `endpoints: [{locality: {}, lb_endpoints: [
		{at: unknown}, {at: healthy, health_status: HEALTHY}, {at: unhealthy, health_status: UNHEALTHY},
		{at: draining, health_status: DRAINING}, {at: timeout, health_status: TIMEOUT}, {at: degraded, health_status: DEGRADED}]}]`), endpoint.Config{})
	if diff := cmp.Diff([]string{"unknown:80", "healthy:80"}, addresses(s)); diff != "" {
		t.Errorf("usable (-want +got):\n%s", diff)
	}
	if d := s.Draining(); len(d) != 1 || d[0].Address.Addr != "draining:80" {
		t.Errorf("draining are %v", d)
	}
	if s.Err() != nil || s.Reason() != "" {
		t.Errorf("Err %v, Reason %q", s.Err(), s.Reason())
	}
}

// spec: VIEW-61
func TestFaults(t *testing.T) {
	tests := []struct {
		assignment string
		grpc       bool
		want       string
		usable     []string
	}{
		{`endpoints: [{lb_endpoints: [{at: a}]}]`, false, "", []string{"a:80"}},
		{`endpoints: [{load_balancing_weight: 1, lb_endpoints: [{at: a}]}]`, true, "endpoints[0]: no locality", []string{"a:80"}},
		{`endpoints: [{locality: {region: r, zone: z}, lb_endpoints: [{at: a}]}, {locality: {region: r, zone: z}, lb_endpoints: [{at: b}]}]`, false,
			`endpoints[1]: locality "r/z" stands twice in priority 0`, []string{"a:80", "b:80"}},
		{`endpoints: [{locality: {region: r}, lb_endpoints: [{at: a}]}, {priority: 1, locality: {region: r}, lb_endpoints: [{at: b}]}]`, false, "", []string{"a:80", "b:80"}},
		{`endpoints: [{locality: {region: r}, load_balancing_weight: 4294967295, lb_endpoints: [{at: a}]}, {locality: {region: s}, load_balancing_weight: 1, lb_endpoints: [{at: b}]}]`, false,
			"endpoints[1]: the weights of localities in priority 0 are over 4294967295 together", []string{"a:80", "b:80"}},
		{`endpoints: [{lb_endpoints: [{at: a, load_balancing_weight: 0}, {at: b}]}]`, false, "endpoints[0]: lb_endpoints[0]: the weight is 0", []string{"b:80"}},
		{`endpoints: [{lb_endpoints: [{at: a, load_balancing_weight: 4294967295}, {at: b}]}]`, false,
			"endpoints[0]: the weights of endpoints are over 4294967295 together", []string{"a:80", "b:80"}},
		{`endpoints: [{priority: 1, lb_endpoints: [{at: a}]}]`, false, "endpoints: there is a priority 1 and no priority 0", []string{"a:80"}},
		{`endpoints: [{priority: 129, lb_endpoints: [{at: a}]}]`, false, "endpoints[0]: priority 129 is over 128", nil},
		{`endpoints: [{locality: {region: r}, lb_endpoints: [{at: a}]}, {priority: 1, locality: {region: r}, load_balancing_weight: 1, lb_endpoints: [{at: b}]}]`, true,
			"endpoints: there is a priority 1 and no priority 0", []string{"b:80"}},
		{`endpoints: [{locality: {region: r}, load_balancing_weight: 1, lb_endpoints: [{at: a}]}, {locality: {region: r}, lb_endpoints: [{at: a}]}, {priority: 129, locality: {region: r}}]`, true, "", []string{"a:80"}},
		{`endpoints: [{lb_endpoints: [{at: a}, {at: a, load_balancing_weight: 7}]}]`, false, "endpoints[0]: lb_endpoints[1]: address a:80 stands twice", []string{"a:80"}},
		{`endpoints: [{lb_endpoints: [{at: a}]}, {priority: 1, lb_endpoints: [{endpoint: {address: {socket_address: {address: b, port_value: 80}}, additional_addresses: [{address: {socket_address: {address: a, port_value: 80}}}]}}]}]`, false,
			"endpoints[1]: lb_endpoints[0]: address a:80 stands twice", []string{"a:80"}},
		{`endpoints: [{lb_endpoints: [{}, {at: a}]}]`, false, "endpoints[0]: lb_endpoints[0]: no address", []string{"a:80"}},
		{`endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: a}}}}]}]`, false, "endpoints[0]: lb_endpoints[0]: port 0 is not between 1 and 65535", nil},
		{`endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: a, named_port: http}}}}]}]`, false, "endpoints[0]: lb_endpoints[0]: named ports are not supported", nil},
		{`endpoints: [{lb_endpoints: [{endpoint: {address: {envoy_internal_address: {server_listener_name: l}}}}]}]`, false, "endpoints[0]: lb_endpoints[0]: internal addresses are not supported", nil},
		{`endpoints: [{lb_endpoints: [{at: a}]}]
policy: {drop_overloads: [{category: c, drop_percentage: {numerator: 1, denominator: 9}}]}`, false, "policy.drop_overloads[0]: unknown denominator 9", []string{"a:80"}},
		{`endpoints: [{lb_endpoints: [{at: a}]}]
policy: {overprovisioning_factor: 0}`, false, "policy: the overprovisioning factor is 0", []string{"a:80"}},
		{`endpoints: [{locality: {region: r}, load_balancing_weight: 1, lb_endpoints: [{at: a}]}]
policy: {overprovisioning_factor: 0}`, true, "", []string{"a:80"}},
	}
	for _, tt := range tests {
		s := endpoint.New(assignment(t, tt.assignment), endpoint.Config{GRPC: tt.grpc})
		got := ""
		if s.Err() != nil {
			got = s.Err().Error()
		}
		if got != tt.want {
			t.Errorf("%s\nhas the error %q\nwant %q", tt.assignment, got, tt.want)
		}
		if diff := cmp.Diff(tt.usable, addresses(s)); diff != "" {
			t.Errorf("%s\nusable (-want +got):\n%s", tt.assignment, diff)
		}
		if len(tt.usable) > 0 && s.Pick(1) == nil {
			t.Errorf("%s\nnothing is picked: %s", tt.assignment, s.Reason())
		}
	}
}

// The figures are those of Envoy's documentation of priority levels.
//
// spec: VIEW-61
func TestPriorities(t *testing.T) {
	tests := []struct {
		healthy []int // of 100, by priority
		factor  int
		want    []float64
	}{
		{[]int{100, 100}, 140, []float64{100, 0}},
		{[]int{72, 72}, 140, []float64{100, 0}},
		{[]int{71, 71}, 140, []float64{99.4, 0.6}},
		{[]int{50, 50}, 140, []float64{70, 30}},
		{[]int{25, 100}, 140, []float64{35, 65}},
		{[]int{0, 100}, 140, []float64{0, 100}},
		{[]int{25, 25}, 140, []float64{50, 50}},
		{[]int{25, 25, 100}, 140, []float64{35, 35, 30}},
		{[]int{25, 25, 20}, 140, []float64{35. / .98, 35. / .98, 28. / .98}},
		{[]int{0, 0}, 140, []float64{0, 0}},
		{[]int{50, 100}, 100, []float64{50, 50}},
		{[]int{50, 100}, 200, []float64{100, 0}},
	}
	for _, tt := range tests {
		a := assignment(t, fmt.Sprintf(`policy: {overprovisioning_factor: %d}`, tt.factor))
		if tt.factor == 140 {
			a.Policy = nil // by default
		}
		for p, n := range tt.healthy {
			a.Endpoints = append(a.Endpoints, level(p, n, 100))
		}
		for p, got := range endpoint.New(a, endpoint.Config{}).Priorities() {
			if math.Abs(100*got.Share-tt.want[p]) > 1e-9 || got.Usable != tt.healthy[p] || got.Total != 100 {
				t.Errorf("%v healthy: priority %d is %+v, want a share of %v %%", tt.healthy, p, got.Share, tt.want[p])
			}
		}
		for _, l := range a.Endpoints {
			l.LoadBalancingWeight = wrapperspb.UInt32(1)
		}
		first := true // of those with a usable endpoint: gRPC gives it everything
		for p, got := range endpoint.New(a, endpoint.Config{GRPC: true}).Priorities() {
			want := 0.0
			if first && tt.healthy[p] > 0 {
				want, first = 1, false
			}
			if got.Share != want {
				t.Errorf("%v healthy: gRPC gives priority %d %v, want %v", tt.healthy, p, got.Share, want)
			}
		}
	}
}

func TestPriorityHealthByWeight(t *testing.T) {
	a := assignment(t, `
policy: {weighted_priority_health: true}
endpoints:
- lb_endpoints: [{at: a, load_balancing_weight: 1}, {at: b, load_balancing_weight: 3, health_status: UNHEALTHY}]
- {priority: 1, lb_endpoints: [{at: c}]}`)
	if got := endpoint.New(a, endpoint.Config{}).Priorities()[0].Share; math.Abs(got-0.35) > 1e-9 {
		t.Errorf("the first priority takes %v, want 0.35", got)
	}
}

// spec: VIEW-61, VIEW-62
func TestLocalities(t *testing.T) {
	tests := []struct {
		name, assignment string
		want, grpc       map[string]float64
	}{
		{"endpoints by weight", `endpoints: [{load_balancing_weight: 1, lb_endpoints: [{at: a}, {at: b, load_balancing_weight: 3}]}]`,
			map[string]float64{"a": .25, "b": .75}, map[string]float64{"a": .25, "b": .75}},
		{"localities by weight", `endpoints: [
			{locality: {region: r}, load_balancing_weight: 1, lb_endpoints: [{at: a}, {at: b}]},
			{locality: {region: s}, load_balancing_weight: 3, lb_endpoints: [{at: c}]}]`,
			map[string]float64{"a": .125, "b": .125, "c": .75}, map[string]float64{"a": .125, "b": .125, "c": .75}},
		{"no locality has a weight", `endpoints: [
			{locality: {region: r}, lb_endpoints: [{at: a}, {at: b}]}, {locality: {region: s}, lb_endpoints: [{at: c, load_balancing_weight: 2}]}]`,
			map[string]float64{"a": .25, "b": .25, "c": .5}, nil},
		{"one locality has no weight", `endpoints: [
			{locality: {region: r}, lb_endpoints: [{at: a}]}, {locality: {region: s}, load_balancing_weight: 5, lb_endpoints: [{at: b}]}]`,
			map[string]float64{"b": 1}, map[string]float64{"b": 1}},
		{"half of a locality is not healthy", `endpoints: [
			{locality: {region: r}, load_balancing_weight: 1, lb_endpoints: [{at: a}]},
			{locality: {region: s}, load_balancing_weight: 2, lb_endpoints: [{at: b}, {at: c, health_status: UNHEALTHY}]}]`,
			map[string]float64{"a": 1 / 2.4, "b": 1.4 / 2.4}, map[string]float64{"a": 1. / 3, "b": 2. / 3}},
		{"a locality is not healthy", `endpoints: [
			{locality: {region: r}, load_balancing_weight: 1, lb_endpoints: [{at: a}]},
			{locality: {region: s}, load_balancing_weight: 9, lb_endpoints: [{at: b, health_status: UNHEALTHY}]}]`,
			map[string]float64{"a": 1}, map[string]float64{"a": 1}},
		{"priorities", `endpoints: [
			{load_balancing_weight: 1, lb_endpoints: [{at: a}, {at: b, health_status: UNHEALTHY}]},
			{priority: 1, load_balancing_weight: 1, lb_endpoints: [{at: c}]}]`,
			map[string]float64{"a": .7, "c": .3}, map[string]float64{"a": 1}},
	}
	for _, tt := range tests {
		for _, config := range []endpoint.Config{{}, {GRPC: true}} {
			want := tt.want
			if config.GRPC {
				want = tt.grpc
			}
			s := endpoint.New(assignment(t, tt.assignment), config)
			for name, source := range map[string]func() uint64{
				"random": rand.New(rand.NewPCG(1, 2)).Uint64, "smooth": new(endpoint.Smooth).Next,
			} {
				const picks = 20_000
				got := map[string]float64{}
				for range picks {
					if e := s.Pick(source()); e != nil {
						got[strings.TrimSuffix(e.Address.Addr, ":80")] += 1. / picks
					}
				}
				near := cmp.Comparer(func(x, y float64) bool { return math.Abs(x-y) < .015 })
				if len(want)+len(got) > 0 && !cmp.Equal(want, got, near) {
					t.Errorf("%s, %+v, %s: picked %v, want %v", tt.name, config, name, got, want)
				}
			}
		}
	}
}

// Any hundred picks in a row are spread by weight.
func TestSmooth(t *testing.T) {
	s := endpoint.New(assignment(t, `endpoints: [{lb_endpoints: [{at: a}, {at: b}, {at: c, load_balancing_weight: 2}]}]`), endpoint.Config{})
	var source endpoint.Smooth
	for range 50 {
		got := map[string]int{}
		for range 100 {
			got[s.Pick(source.Next()).Address.Addr]++
		}
		for name, want := range map[string]int{"a:80": 25, "b:80": 25, "c:80": 50} {
			if n := got[name]; n < want-3 || n > want+3 {
				t.Fatalf("100 picks had %v", got)
			}
		}
	}
}

func TestReason(t *testing.T) {
	for text, want := range map[string]string{
		`{}`:                                   "the assignment has no localities",
		`endpoints: [{locality: {region: r}}]`: "no locality has endpoints",
		`endpoints: [{lb_endpoints: [{at: a, health_status: UNHEALTHY}]}]`:                          "none of 1 endpoints is healthy",
		`endpoints: [{locality: {region: r}, load_balancing_weight: 1}, {lb_endpoints: [{at: a}]}]`: "no locality with usable endpoints has a weight",
	} {
		s := endpoint.New(assignment(t, text), endpoint.Config{})
		if s.Pick(1) != nil || s.Reason() != want {
			t.Errorf("%s: picked %v, the reason is %q, want %q", text, s.Pick(1), s.Reason(), want)
		}
	}
}

func TestReasonOfGRPC(t *testing.T) {
	s := endpoint.New(assignment(t, `endpoints: [{locality: {region: r}, lb_endpoints: [{at: a}]}]`), endpoint.Config{GRPC: true})
	if want := "gRPC ignores localities without a weight, and 1 have none"; s.Pick(1) != nil || s.Reason() != want {
		t.Errorf("the reason is %q, want %q", s.Reason(), want)
	}
}

func TestFilter(t *testing.T) {
	s := endpoint.New(assignment(t, `endpoints: [
		{locality: {region: r}, load_balancing_weight: 1, lb_endpoints: [{at: a}, {at: b}]},
		{locality: {region: s}, load_balancing_weight: 1, lb_endpoints: [{at: c}]},
		{priority: 1, lb_endpoints: [{at: d}]}]`), endpoint.Config{})
	f := s.Filter(func(e *endpoint.Endpoint) bool { return e.Address.Addr == "a:80" || e.Address.Addr == "d:80" })
	if diff := cmp.Diff([]string{"a:80", "d:80"}, addresses(f)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	// One endpoint of three is left: 1.4/3 of the requests.
	if got := f.Priorities()[0].Share; math.Abs(got-1.4/3) > 1e-9 {
		t.Errorf("the first priority takes %v", got)
	}
	if len(s.Endpoints()) != 4 || s.Priorities()[0].Share != 1 {
		t.Error("the set itself has changed")
	}
}

// spec: VIEW-62, VIEW-63
func TestExtras(t *testing.T) {
	const proxy = `{"@type": type.googleapis.com/envoy.config.core.v3.Address, socket_address: {address: PROXY, port_value: 3128}}`
	at := func(name string) string {
		return `{typed_filter_metadata: {envoy.http11_proxy_transport_socket.proxy_address: ` + strings.Replace(proxy, "PROXY", name, 1) + `}`
	}
	s := endpoint.New(assignment(t, `
policy: {endpoint_stale_after: 30s}
endpoints:
- load_balancing_weight: 5
  metadata: `+at("locality")+`}
  lb_endpoints:
  - metadata: `+at("own")+`, filter_metadata: {envoy.lb: {hash_key: k}}}
    load_balancing_weight: 3
    endpoint:
      hostname: h.example
      address: {socket_address: {address: "10.0.0.1", port_value: 80}}
      additional_addresses: [{address: {socket_address: {address: "::1", port_value: 81}}}]
  - {endpoint: {address: {pipe: {path: /run/s}}}}
  - {endpoint: {address: {socket_address: {protocol: UDP, address: u, port_value: 53}}}}
`), endpoint.Config{})
	if s.Err() != nil || s.StaleAfter() != 30*time.Second {
		t.Fatalf("Err %v, StaleAfter %v", s.Err(), s.StaleAfter())
	}
	var got []endpoint.Endpoint
	for _, e := range s.Endpoints() {
		if e.RingWeight() != 5*uint64(e.Weight) {
			t.Errorf("%s has the ring weight %d", e.Address.Addr, e.RingWeight())
		}
		bare := *e
		bare.Locality, bare.Message = nil, nil
		got = append(got, bare)
	}
	local := &endpoint.Address{Network: "tcp", Addr: "locality:3128"}
	want := []endpoint.Endpoint{
		{
			Address: endpoint.Address{Network: "tcp", Addr: "10.0.0.1:80"}, More: []endpoint.Address{{Network: "tcp", Addr: "[::1]:81"}},
			Hostname: "h.example", HashKey: "k", Proxy: &endpoint.Address{Network: "tcp", Addr: "own:3128"}, Weight: 3,
		},
		{Address: endpoint.Address{Network: "unix", Addr: "/run/s"}, Proxy: local, Weight: 1},
		{Address: endpoint.Address{Network: "udp", Addr: "u:53"}, Proxy: local, Weight: 1},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestCollections(t *testing.T) {
	a := assignment(t, `endpoints: [{leds_cluster_locality_config: {leds_collection_name: xdstp://a/l}, lb_endpoints: [{at: ignored}]}]`)
	other := assignment(t, `endpoints: [{lb_endpoints: [{at: member}]}]`).Endpoints[0].LbEndpoints
	s := endpoint.New(a, endpoint.Config{Collection: func(name string) []*endpointv3.LbEndpoint {
		if name != "xdstp://a/l" {
			t.Errorf("asked for %q", name)
		}
		return other
	}})
	if diff := cmp.Diff([]string{"member:80"}, addresses(s)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// spec: VIEW-61
func TestDrop(t *testing.T) {
	s := endpoint.New(assignment(t, `policy: {drop_overloads: [
		{category: throttle, drop_percentage: {numerator: 60}}, {category: lb, drop_percentage: {numerator: 5000, denominator: TEN_THOUSAND}}]}`), endpoint.Config{})
	random := rand.New(rand.NewPCG(1, 2)).Uint64
	got := map[string]float64{}
	const requests = 20_000
	for range requests {
		category, dropped := s.Drop(random)
		if dropped != (category != "") {
			t.Fatalf("dropped %v for %q", dropped, category)
		}
		got[category] += 1. / requests
	}
	want := map[string]float64{"throttle": .6, "lb": .2, "": .2}
	if !cmp.Equal(want, got, cmp.Comparer(func(x, y float64) bool { return math.Abs(x-y) < .02 })) {
		t.Errorf("dropped %v, want %v", got, want)
	}
	if d := s.Drops(); len(d) != 2 || d[1] != (endpoint.Drop{Category: "lb", Numerator: 5000, Denominator: 10_000}) {
		t.Errorf("Drops are %v", d)
	}
	all := endpoint.New(assignment(t, `policy: {drop_overloads: [{category: c, drop_percentage: {numerator: 300}}]}`), endpoint.Config{})
	if _, dropped := all.Drop(func() uint64 { return math.MaxUint64 }); !dropped {
		t.Error("over 100 % is not all")
	}
}

func TestPickAllocatesNothing(t *testing.T) {
	s := endpoint.New(&endpointv3.ClusterLoadAssignment{Endpoints: []*endpointv3.LocalityLbEndpoints{level(0, 60, 100), level(1, 100, 100)}}, endpoint.Config{})
	var source endpoint.Smooth
	if n := testing.AllocsPerRun(100, func() { s.Drop(rand.Uint64); s.Pick(source.Next()) }); n != 0 {
		t.Errorf("a pick allocates %v times", n)
	}
}

func BenchmarkPick(b *testing.B) {
	for _, n := range []int{10, 10_000} {
		s := endpoint.New(&endpointv3.ClusterLoadAssignment{Endpoints: []*endpointv3.LocalityLbEndpoints{level(0, n, n)}}, endpoint.Config{})
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s.Pick(rand.Uint64())
			}
		})
	}
}

func BenchmarkNew(b *testing.B) {
	a := &endpointv3.ClusterLoadAssignment{Endpoints: []*endpointv3.LocalityLbEndpoints{level(0, 10, 10)}}
	b.ReportAllocs()
	for b.Loop() {
		endpoint.New(a, endpoint.Config{})
	}
}

// spec: VIEW-17
func TestHostnamesOfDNS(t *testing.T) {
	a := assignment(t, `endpoints: [{lb_endpoints: [{at: db.example}, {endpoint: {hostname: own.example, address: {socket_address: {address: "::1", port_value: 81}}}}, {endpoint: {address: {socket_address: {address: "::2", port_value: 82}}}}]}]`)
	for dns, want := range map[bool][]string{true: {"db.example:80", "own.example", "[::2]:82"}, false: {"", "own.example", ""}} {
		var got []string
		for _, e := range endpoint.New(a, endpoint.Config{DNS: dns}).Endpoints() {
			got = append(got, e.Hostname)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("DNS %v: -want +got:\n%s", dns, diff)
		}
	}
}
