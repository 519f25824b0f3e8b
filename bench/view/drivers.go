package main

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/resource/eds"
	"github.com/xdswatch/xdswatch/resource/lds"
	"github.com/xdswatch/xdswatch/resource/rds"
	"github.com/xdswatch/xdswatch/view"
)

// driver follows all of a world. It calls ready once when all is there, and changed with the number of
// each change that it sees.
type driver func(w world, addr string, ready func(), changed func(n int)) (keep any)

var drivers = map[string]driver{"nulldecode": nullDecode, "sets": sets, "view": viewed, "grpcgo": grpcGo}

func changeOfEndpoints(m *endpointv3.ClusterLoadAssignment) int {
	return int(m.GetEndpoints()[0].GetLbEndpoints()[0].GetEndpoint().GetAddress().GetSocketAddress().GetPortValue()) - firstPort
}

func changeOfRoutes(m *routev3.RouteConfiguration) (n int) {
	_, err := fmt.Sscanf(m.GetVirtualHosts()[0].GetName(), "change-%d", &n)
	check(err)
	return n
}

// nullDecode is the floor: it asks for the names, which it knows, unmarshals each resource once and
// keeps nothing.
func nullDecode(w world, addr string, ready func(), changed func(int)) any {
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(math.MaxInt32)))
	check(err)
	st, err := discoveryv3.NewAggregatedDiscoveryServiceClient(conn).StreamAggregatedResources(context.Background())
	check(err)
	asked := map[string][]string{ldsURL: {listenerName}, rdsURL: {routesName}, cdsURL: w.names(), edsURL: w.names()}
	left := 0
	for url, names := range asked {
		left += len(names)
		check(st.Send(&discoveryv3.DiscoveryRequest{TypeUrl: url, ResourceNames: names}))
	}
	go func() {
		for {
			r, err := st.Recv()
			check(err)
			for _, a := range r.GetResources() {
				m, err := a.UnmarshalNew()
				check(err)
				if left--; left == 0 {
					ready()
				}
				if left >= 0 {
					continue
				}
				switch m := m.(type) {
				case *endpointv3.ClusterLoadAssignment:
					changed(changeOfEndpoints(m))
				case *routev3.RouteConfiguration:
					changed(changeOfRoutes(m))
				}
			}
			check(st.Send(&discoveryv3.DiscoveryRequest{
				TypeUrl: r.GetTypeUrl(), ResourceNames: asked[r.GetTypeUrl()], VersionInfo: r.GetVersionInfo(), ResponseNonce: r.GetNonce(),
			}))
		}
	}()
	return conn
}

func newClient(addr string) *client.Client {
	boot, err := bootstrap.Server(addr)
	check(err)
	c, err := client.New(client.Config{Bootstrap: boot})
	check(err)
	return c
}

// sets watch the names, which are known, and keep the messages. All handlers are of one authority, so
// they are called one at a time.
func sets(w world, addr string, ready func(), changed func(int)) any {
	c := newClient(addr)
	held := map[string]map[string]proto.Message{}
	left := 2 + 2*w.clusters
	follow := func(kind resource.AnyType, names ...string) {
		mine := map[string]proto.Message{}
		held[kind.TypeURL()] = mine
		s, err := c.NewSet(context.Background(), kind, func(b client.Batch[any]) {
			for _, ev := range b.Events {
				mine[ev.Name] = ev.Value.(proto.Message)
				if left--; left == 0 {
					ready()
				}
				if left >= 0 {
					continue
				}
				switch m := ev.Value.(type) {
				case *endpointv3.ClusterLoadAssignment:
					changed(changeOfEndpoints(m))
				case *routev3.RouteConfiguration:
					changed(changeOfRoutes(m))
				}
			}
		})
		check(err)
		check(s.Add(names...))
	}
	follow(lds.Type, listenerName)
	follow(rds.Type, routesName)
	follow(cds.Type, w.names()...)
	follow(eds.Type, w.names()...)
	return []any{c, held}
}

// viewed follows the listener. Of each value it sees that the clusters of its routes are there.
func viewed(w world, addr string, ready func(), changed func(int)) any {
	c := newClient(addr)
	name := w.cluster(w.changed())
	var routes *routev3.RouteConfiguration // nil before all is there
	ofRoutes, last := 0, 0                 // the newest change of routes; the newest that was told
	v, err := view.New(context.Background(), c, view.Root{Type: view.RootListener, Name: listenerName}, view.Config{
		OnSnapshot: func(s *view.Snapshot) {
			check(s.Err)
			newest := s.Routes[0].Message
			if routes == nil {
				if s.Complete && s.Len() == w.clusters {
					routes = newest
					ready()
				}
				return
			}
			if routes != newest {
				routes, ofRoutes = newest, changeOfRoutes(newest)
			}
			n := ofRoutes
			if n == 0 {
				n = changeOfEndpoints(s.Cluster(name).Endpoints.Message)
			} else {
				w.consistent(s)
			}
			if n != last {
				last = n
				changed(n)
			}
		},
	})
	check(err)
	return []any{c, v}
}

// consistent fails if a route leads to a cluster that is not there with its endpoints.
func (w world) consistent(s *view.Snapshot) {
	missing := map[string]bool{}
	for _, r := range s.Routes[0].Message.GetVirtualHosts()[0].GetRoutes() {
		for _, c := range r.GetRoute().GetWeightedClusters().GetClusters() {
			if e := s.Cluster(c.GetName()); e == nil || e.Status() != view.StatusOK || e.Endpoints == nil {
				missing[c.GetName()] = true
			}
		}
	}
	if len(missing) > 0 {
		check(fmt.Errorf("a value lacks clusters of its routes: %v", slices.Sorted(maps.Keys(missing))))
	}
}
