package main

import (
	"encoding/json"
	"errors"
	"net"
	"strconv"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/serviceconfig"
	"google.golang.org/grpc/xds"
)

// grpcGo follows the listener with a channel, which takes it as far as balancers: each cluster has one
// that takes its endpoints and connects to none. It does not see changes of routes.
func grpcGo(w world, addr string, ready func(), changed func(int)) any {
	boot, err := json.Marshal(map[string]any{
		"xds_servers": []any{map[string]any{
			"server_uri": addr, "channel_creds": []any{map[string]any{"type": "insecure"}}, "server_features": []string{"xds_v3"},
		}},
		"node": map[string]any{"id": "bench"},
	})
	check(err)
	builder, err := xds.NewXDSResolverWithConfigForTesting(boot)
	check(err)
	balancer.Register(&sinks{clusters: w.clusters, ready: ready, changed: changed})
	conn, err := grpc.NewClient("xds:///"+listenerName, grpc.WithResolvers(builder), grpc.WithTransportCredentials(insecure.NewCredentials()))
	check(err)
	conn.Connect()
	return conn
}

// sinks builds balancers that take endpoints.
type sinks struct {
	clusters int
	ready    func()
	changed  func(int)
	mu       sync.Mutex
	begun    int // balancers with endpoints
	newest   int
}

// Name is that of the policy.
func (s *sinks) Name() string { return sinkPolicy }

// ParseConfig takes any.
func (s *sinks) ParseConfig(json.RawMessage) (serviceconfig.LoadBalancingConfig, error) {
	return struct {
		serviceconfig.LoadBalancingConfig
	}{}, nil
}

// Build makes a balancer.
func (s *sinks) Build(cc balancer.ClientConn, _ balancer.BuildOptions) balancer.Balancer {
	return &sink{sinks: s, cc: cc}
}

type sink struct {
	*sinks
	cc    balancer.ClientConn
	begun bool
}

// UpdateClientConnState takes endpoints.
func (s *sink) UpdateClientConnState(state balancer.ClientConnState) error {
	s.cc.UpdateState(balancer.State{ConnectivityState: connectivity.Ready, Picker: noPicker{}})
	if len(state.ResolverState.Endpoints) != endpointsEach {
		return nil
	}
	n := portOf(state.ResolverState.Endpoints[0]) - firstPort
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !s.begun:
		s.begun = true
		if s.sinks.begun++; s.sinks.begun == s.clusters {
			s.ready()
		}
	case n != s.newest:
		s.newest = n
		s.changed(n)
	}
	return nil
}

// ResolverError changes nothing.
func (s *sink) ResolverError(error) {}

// UpdateSubConnState is of no balancer without connections.
func (s *sink) UpdateSubConnState(balancer.SubConn, balancer.SubConnState) {}

// Close has nothing to close.
func (s *sink) Close() {}

// ExitIdle has nothing to connect.
func (s *sink) ExitIdle() {}

type noPicker struct{}

// Pick finds none.
func (noPicker) Pick(balancer.PickInfo) (balancer.PickResult, error) {
	return balancer.PickResult{}, errors.New("nothing is connected")
}

func portOf(e resolver.Endpoint) int {
	_, text, err := net.SplitHostPort(e.Addresses[0].Addr)
	check(err)
	port, err := strconv.Atoi(text)
	check(err)
	return port
}
