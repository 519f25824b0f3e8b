package main

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/xdswatch/xdswatch/testutil"
)

// world is a management server and the backends of the clusters that it serves. Each push
// changes something.
type world struct {
	t          testing.TB
	management *testutil.ManagementServer
	network    *testutil.TCPProxy // before it
	acks       *acks
	onDemand   bool // the server has a cluster that only requests name

	push       int
	generation int                 // of the cluster that is replaced
	clusters   map[string]*cluster // what the next snapshot has
	leaving    sync.WaitGroup
	running    [workers]atomic.Int64 // the request of each worker; 0 between two

	mu    sync.Mutex
	alive *sync.Cond // the management server runs
	up    bool
	live  map[*backend]bool
}

type cluster struct {
	backends []*backend
	invalid  bool
}

// backend is an HTTP server on loopback.
type backend struct {
	server *http.Server
	addr   *net.TCPAddr
}

func (w *world) newBackend() *backend {
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		w.t.Error(err)
		return nil
	}
	b := &backend{&http.Server{Handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		fmt.Fprint(rw, "served")
	})}, lis.Addr().(*net.TCPAddr)}
	go b.server.Serve(lis)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.live[b] = true
	return b
}

func newWorld(t testing.TB, ads, onDemand bool) *world {
	w := &world{t: t, acks: newAcks(), onDemand: onDemand, clusters: map[string]*cluster{}, up: true, live: map[*backend]bool{}}
	w.alive = sync.NewCond(&w.mu)
	var err error
	w.management, err = testutil.NewManagementServer(testutil.ManagementConfig{ADS: ads, GRPC: w.acks.options()})
	if err != nil {
		t.Fatal(err)
	}
	w.network, err = testutil.NewTCPProxy(w.management.Addr())
	if err != nil {
		t.Fatal(err)
	}
	w.network.Delay(distance)
	t.Cleanup(func() {
		w.network.Close()
		w.management.Stop()
		w.leaving.Wait()
		for b := range w.live {
			b.server.Close()
		}
	})
	w.clusters["stable"] = &cluster{backends: []*backend{w.newBackend(), w.newBackend()}}
	w.clusters[w.current()] = &cluster{backends: []*backend{w.newBackend()}}
	if onDemand {
		w.clusters["demanded"] = &cluster{backends: []*backend{w.newBackend()}}
	}
	return w
}

func (w *world) current() string { return fmt.Sprint("current-", w.generation) }

// next makes the next push: each one has other weights, each third a cluster in another's
// place, each fourth another backend in one's place, and each tenth a cluster that is invalid.
func (w *world) next() {
	w.push++
	var gone []*backend
	switch {
	case w.push%10 == 0:
		w.clusters["stable"].invalid = true
	case w.push%3 == 0:
		gone = w.clusters[w.current()].backends
		delete(w.clusters, w.current())
		w.generation++
		w.clusters[w.current()] = &cluster{backends: []*backend{w.newBackend()}}
	case w.push%4 == 0:
		stable := w.clusters["stable"]
		gone = stable.backends[:1]
		stable.backends = append(slices.Clone(stable.backends[1:]), w.newBackend())
	}
	resources := w.resources()
	w.acks.expect(w.t, w.push, resources, func(name string) bool {
		return name != "proxy" && name != "demanded" && (name != "stable" || !w.clusters[name].invalid)
	})
	if err := w.management.Set(fmt.Sprint(w.push), resources...); err != nil {
		w.t.Error(err)
	}
	w.clusters["stable"].invalid = false
	if len(gone) > 0 {
		push := w.push
		w.leaving.Go(func() { w.retire(push, gone) })
	}
}

// distance is how long bytes are on their way to or from the management server.
const distance = 5 * time.Millisecond

// grace is how long a backend serves after the client acknowledged that it left.
const grace = 150 * time.Millisecond

// retire shuts backends down: 150 ms after the client acknowledged the push without them, and
// never while the management server is dead. Requests that began before then are awaited, since a
// busy machine may let a goroutine stand still for longer.
func (w *world) retire(push int, gone []*backend) {
	if !w.acks.await(w.t.Context(), push) {
		return // the test is over
	}
	time.Sleep(grace)
	w.settle()
	w.mu.Lock()
	defer w.mu.Unlock()
	for !w.up {
		w.alive.Wait()
	}
	for _, b := range gone {
		delete(w.live, b)
		go b.server.Shutdown(context.Background())
	}
}

// settle waits for the requests that run now.
func (w *world) settle() {
	for i := range w.running {
		for n := w.running[i].Load(); n != 0 && w.running[i].Load() == n; {
			time.Sleep(time.Millisecond)
		}
	}
}

// kill kills the management server for a while.
func (w *world) kill(pause time.Duration) {
	w.mu.Lock()
	w.up = false
	w.mu.Unlock()
	w.management.Stop()
	time.Sleep(pause)
	if err := w.management.Restart(true); err != nil {
		w.t.Error(err)
	}
	w.mu.Lock()
	w.up = true
	w.alive.Broadcast()
	w.mu.Unlock()
}

// resources are those of the next snapshot.
func (w *world) resources() []proto.Message {
	all := []proto.Message{w.listener(), w.routes()}
	for _, name := range slices.Sorted(maps.Keys(w.clusters)) {
		c := w.clusters[name]
		m := &clusterv3.Cluster{
			Name: name, ConnectTimeout: durationpb.New(time.Second),
			ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS},
			EdsClusterConfig:     &clusterv3.Cluster_EdsClusterConfig{EdsConfig: ads()},
		}
		if c.invalid {
			m.ConnectTimeout = durationpb.New(-time.Second)
		}
		all = append(all, m, w.assignment(name, c.backends))
	}
	return all
}

func ads() *corev3.ConfigSource {
	return &corev3.ConfigSource{
		ResourceApiVersion:    corev3.ApiVersion_V3,
		ConfigSourceSpecifier: &corev3.ConfigSource_Ads{Ads: &corev3.AggregatedConfigSource{}},
	}
}

func (w *world) listener() *listenerv3.Listener {
	packed, err := anypb.New(&hcmv3.HttpConnectionManager{
		StatPrefix:     "proxy",
		RouteSpecifier: &hcmv3.HttpConnectionManager_Rds{Rds: &hcmv3.Rds{ConfigSource: ads(), RouteConfigName: "routes"}},
	})
	if err != nil {
		w.t.Error(err)
	}
	return &listenerv3.Listener{Name: "proxy", ApiListener: &listenerv3.ApiListener{ApiListener: packed}}
}

func (w *world) routes() *routev3.RouteConfiguration {
	prefix := func(path string, action *routev3.RouteAction) *routev3.Route {
		return &routev3.Route{
			Match:  &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: path}},
			Action: &routev3.Route_Route{Route: action},
		}
	}
	weighted := &routev3.WeightedCluster{}
	for i, name := range []string{"stable", w.current()} {
		weighted.Clusters = append(weighted.Clusters, &routev3.WeightedCluster_ClusterWeight{
			Name: name, Weight: wrapperspb.UInt32(uint32(1 + (w.push+i)%5)),
		})
	}
	return &routev3.RouteConfiguration{Name: "routes", VirtualHosts: []*routev3.VirtualHost{{
		Name: "all", Domains: []string{"*"}, Routes: []*routev3.Route{
			prefix("/demand", &routev3.RouteAction{ClusterSpecifier: &routev3.RouteAction_ClusterHeader{ClusterHeader: "x-cluster"}}),
			prefix("/", &routev3.RouteAction{ClusterSpecifier: &routev3.RouteAction_WeightedClusters{WeightedClusters: weighted}}),
		},
	}}}
}

func (w *world) assignment(name string, backends []*backend) *endpointv3.ClusterLoadAssignment {
	l := &endpointv3.LocalityLbEndpoints{Locality: &corev3.Locality{Region: "here"}, LoadBalancingWeight: wrapperspb.UInt32(1)}
	for i, b := range backends {
		l.LbEndpoints = append(l.LbEndpoints, &endpointv3.LbEndpoint{
			LoadBalancingWeight: wrapperspb.UInt32(uint32(1 + (w.push+i)%3)),
			HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{Address: &corev3.Address{
				Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
					Address: b.addr.IP.String(), PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: uint32(b.addr.Port)},
				}},
			}}},
		})
	}
	return &endpointv3.ClusterLoadAssignment{ClusterName: name, Endpoints: []*endpointv3.LocalityLbEndpoints{l}}
}
