package grpcresolver

import (
	"context"
	"fmt"
	"net/url"
	"testing"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/serviceconfig"
	"google.golang.org/protobuf/proto"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

	"github.com/xdswatch/xdswatch/internal/viewtest"
	"github.com/xdswatch/xdswatch/view/endpoint"
)

// channel takes states of a resolver.
type channel struct {
	resolver.ClientConn
	states chan resolver.State
}

func (c channel) UpdateState(s resolver.State) error {
	c.states <- s
	return nil
}

func (c channel) ParseServiceConfig(string) *serviceconfig.ParseResult {
	return &serviceconfig.ParseResult{}
}

// connected is the picker of a connection.
type connected struct{}

func (connected) Pick(balancer.PickInfo) (balancer.PickResult, error) {
	return balancer.PickResult{}, nil
}

// benchPicker is a picker of a listener with so many clusters of ten endpoints each.
func benchPicker(b testing.TB, clusters int) *picker {
	ctx, m := viewtest.Patience(b), viewtest.Management(b)
	var resources []proto.Message
	var routes []string
	for i := range clusters {
		name := fmt.Sprintf("cluster-%d", i)
		routes = append(routes, fmt.Sprintf("{match: {prefix: /service-%d/}, route: {cluster: %s}}", i, name))
		localities := []*endpointv3.LocalityLbEndpoints{viewtest.Locality(0, map[uint32]uint32{})}
		for j := range 10 {
			localities[0].LbEndpoints = append(localities[0].LbEndpoints, viewtest.At(uint32(1000+10*i+j)).LbEndpoints...)
		}
		resources = append(resources, viewtest.Cluster(name), viewtest.Assignment(name, localities...))
	}
	viewtest.Set(b, m, "1", append(viewtest.Listener(b, "listener", routes...), resources...)...)
	states := make(chan resolver.State, 100)
	r, err := NewBuilder(viewtest.Client(b, m)).Build(resolver.Target{URL: url.URL{Path: "/listener"}}, channel{states: states}, resolver.BuildOptions{Authority: "listener"})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(r.Close)
	select {
	case s := <-states:
		all := &connections{}
		for _, e := range s.Endpoints {
			all.move(&connection{state: balancer.State{ConnectivityState: connectivity.Ready, Picker: connected{}}}, e.Addresses[0].Addr)
		}
		return newPicker(s.Attributes.Value(planKey{}).(*plan), &endpoint.Smooth{}, all)
	case <-ctx.Done():
		b.Fatal("no state")
		return nil
	}
}

// An RPC takes no memory and no lock of the view: its cluster is held already.
func TestPickAllocatesNothing(t *testing.T) {
	p := benchPicker(t, 3)
	info := balancer.PickInfo{FullMethodName: "/service-2/method", Ctx: context.Background()}
	if n := testing.AllocsPerRun(100, func() {
		result, err := p.Pick(info)
		if err != nil {
			t.Fatal(err)
		}
		result.Done(balancer.DoneInfo{})
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// What an RPC costs beside gRPC: route, cluster, endpoint, and the hold of its cluster.
func BenchmarkPick(b *testing.B) {
	p := benchPicker(b, 10)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		info := balancer.PickInfo{FullMethodName: "/service-7/method", Ctx: context.Background()}
		for pb.Next() {
			result, err := p.Pick(info)
			if err != nil {
				b.Error(err)
				return
			}
			if result.Done != nil {
				result.Done(balancer.DoneInfo{})
			}
		}
	})
}

// What the change of a connection costs, among many, with the first RPC after it.
func BenchmarkConnectionChange(b *testing.B) {
	for _, clusters := range []int{10, 1000} {
		b.Run(fmt.Sprint(clusters), func(b *testing.B) {
			p := benchPicker(b, clusters)
			info := balancer.PickInfo{FullMethodName: "/service-7/method", Ctx: context.Background()}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := newPicker(p.plan, p.next, p.connections).Pick(info); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
