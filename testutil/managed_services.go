package testutil

import (
	"context"
	"errors"
	"fmt"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"github.com/envoyproxy/go-control-plane/pkg/server/config"
	"github.com/envoyproxy/go-control-plane/pkg/server/delta/v3"
	"github.com/envoyproxy/go-control-plane/pkg/server/sotw/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/xdswatch/xdswatch/resource"
)

// ErrUnsupportedType is the error of a resource that go-control-plane cannot serve.
var ErrUnsupportedType = errors.New("type is not supported by the snapshot cache")

// newSnapshot sorts resources by type. Every type gets the version, so that the last
// resource of a type can go.
func newSnapshot(version string, resources []proto.Message) (*cache.Snapshot, error) {
	byType := make(map[resourcev3.Type][]types.Resource)
	for t := range types.UnknownType {
		url, err := cache.GetResponseTypeURL(t)
		if err != nil {
			return nil, err
		}
		byType[url] = nil
	}
	for _, r := range resources {
		url := resource.TypePrefix + string(r.ProtoReflect().Descriptor().FullName())
		if _, ok := byType[url]; !ok {
			return nil, fmt.Errorf("%s: %w", url, ErrUnsupportedType)
		}
		byType[url] = append(byType[url], r)
	}
	return cache.NewSnapshot(version, byType)
}

// service is one discovery service. It is described here, and not taken from
// go-control-plane's server package, because that one needs the module of the rate limit
// service; the servers behind are the same.
type service struct {
	name    string // without the package prefix
	methods string // what follows "Stream" and "Delta" in the names of its methods
	typeURL string // empty for the aggregated service
	sotw    bool   // has a state-of-the-world method
}

func services() []service {
	return []service{
		{"discovery.v3.AggregatedDiscoveryService", "AggregatedResources", resourcev3.AnyType, true},
		{"listener.v3.ListenerDiscoveryService", "Listeners", resourcev3.ListenerType, true},
		{"route.v3.RouteDiscoveryService", "Routes", resourcev3.RouteType, true},
		{"route.v3.ScopedRoutesDiscoveryService", "ScopedRoutes", resourcev3.ScopedRouteType, true},
		{"route.v3.VirtualHostDiscoveryService", "VirtualHosts", resourcev3.VirtualHostType, false},
		{"cluster.v3.ClusterDiscoveryService", "Clusters", resourcev3.ClusterType, true},
		{"endpoint.v3.EndpointDiscoveryService", "Endpoints", resourcev3.EndpointType, true},
		{"secret.v3.SecretDiscoveryService", "Secrets", resourcev3.SecretType, true},
		{"runtime.v3.RuntimeDiscoveryService", "Runtime", resourcev3.RuntimeType, true},
		{"extension.v3.ExtensionConfigDiscoveryService", "ExtensionConfigs", resourcev3.ExtensionConfigType, true},
	}
}

type (
	sotwStream  = grpc.GenericServerStream[discoveryv3.DiscoveryRequest, discoveryv3.DiscoveryResponse]
	deltaStream = grpc.GenericServerStream[discoveryv3.DeltaDiscoveryRequest, discoveryv3.DeltaDiscoveryResponse]
)

// registerServices makes a grpc server serve a cache, until ctx ends.
func registerServices(ctx context.Context, g *grpc.Server, c cache.Cache, ordered bool) {
	var opts []config.XDSOption
	if ordered {
		opts = append(opts, sotw.WithOrderedADS())
	}
	full := sotw.NewServer(ctx, c, nil, opts...)
	incremental := delta.NewServer(ctx, c, nil, opts...)
	for _, s := range services() {
		g.RegisterService(s.describe(full, incremental), nil)
	}
}

func (s service) describe(full sotw.Server, incremental delta.Server) *grpc.ServiceDesc {
	desc := &grpc.ServiceDesc{ServiceName: "envoy.service." + s.name}
	add := func(method string, h grpc.StreamHandler) {
		desc.Streams = append(desc.Streams, grpc.StreamDesc{
			StreamName: method, Handler: h, ServerStreams: true, ClientStreams: true,
		})
	}
	add("Delta"+s.methods, func(_ any, gs grpc.ServerStream) error {
		return incremental.DeltaStreamHandler(&deltaStream{ServerStream: gs}, s.typeURL)
	})
	if s.sotw {
		add("Stream"+s.methods, func(_ any, gs grpc.ServerStream) error {
			return full.StreamHandler(&sotwStream{ServerStream: gs}, s.typeURL)
		})
	}
	return desc
}
