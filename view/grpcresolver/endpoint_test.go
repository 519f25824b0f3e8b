package grpcresolver_test

import (
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/resolver"

	"github.com/xdswatch/xdswatch/internal/viewtest"
	"github.com/xdswatch/xdswatch/view/grpcresolver"
)

// ownPolicy is a load balancing policy of a program's that hands on the endpoints that it gets.
type ownPolicy chan []resolver.Endpoint

func (ownPolicy) Name() string { return "own_policy" }

func (p ownPolicy) Build(balancer.ClientConn, balancer.BuildOptions) balancer.Balancer { return p }

func (p ownPolicy) UpdateClientConnState(s balancer.ClientConnState) error {
	p <- s.ResolverState.Endpoints
	return nil
}

func (ownPolicy) ResolverError(error)                                        {}
func (ownPolicy) UpdateSubConnState(balancer.SubConn, balancer.SubConnState) {}
func (ownPolicy) ExitIdle()                                                  {}
func (ownPolicy) Close()                                                     {}

// A policy that a program brings itself reads weights and priorities of the endpoints.
func TestOwnPolicy(t *testing.T) {
	ctx, m := viewtest.Patience(t), viewtest.Management(t)
	viewtest.Set(t, m, "1", viewtest.Assignment("backend",
		viewtest.Locality(0, map[uint32]uint32{7001: 3}), viewtest.Locality(1, map[uint32]uint32{7002: 5})))
	own := make(ownPolicy, 1)
	balancer.Register(own)
	channel, err := grpc.NewClient("xdswatch-eds:///backend",
		grpc.WithResolvers(grpcresolver.NewEDSBuilder(viewtest.Client(t, m))),
		grpc.WithDisableServiceConfig(),
		grpc.WithDefaultServiceConfig(`{"loadBalancingConfig": [{"own_policy": {}}]}`),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer channel.Close()
	channel.Connect()
	var got []resolver.Endpoint
	select {
	case got = <-own:
	case <-ctx.Done():
		t.Fatal("the policy got no endpoints")
	}
	want := map[string][2]uint32{"127.0.0.1:7001": {0, 3}, "127.0.0.1:7002": {1, 5}}
	for _, e := range got {
		addr := e.Addresses[0].Addr
		found := grpcresolver.Endpoint(e)
		if is, ok := want[addr]; !ok || found == nil || found.Priority != is[0] || found.Weight != is[1] {
			t.Errorf("%s is %+v", addr, found)
		}
		delete(want, addr)
	}
	if len(want) > 0 {
		t.Errorf("of %v there is nothing", want)
	}
	if e := grpcresolver.Endpoint(resolver.Endpoint{}); e != nil {
		t.Errorf("another resolver's endpoint is %v", e)
	}
}
