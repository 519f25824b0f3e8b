package main

import (
	"context"
	"net"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"github.com/envoyproxy/go-control-plane/pkg/server/sotw/v3"
	"google.golang.org/grpc"

	"github.com/xdswatch/xdswatch/examples/customtype/flagsv1"
)

// flagServer is a management server of one type: go-control-plane's linear cache, which
// takes resources of any type, behind the aggregated discovery service.
type flagServer struct {
	discoveryv3.UnimplementedAggregatedDiscoveryServiceServer
	cache *cache.LinearCache
	sotw  sotw.Server
	lis   net.Listener
	grpc  *grpc.Server
}

// serveFlags starts a server on loopback TCP. It lives until stop, or the end of ctx.
func serveFlags(ctx context.Context) (*flagServer, error) {
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &flagServer{cache: cache.NewLinearCache(Flags.TypeURL()), lis: lis, grpc: grpc.NewServer()}
	s.sotw = sotw.NewServer(ctx, s.cache, nil)
	discoveryv3.RegisterAggregatedDiscoveryServiceServer(s.grpc, s)
	go s.grpc.Serve(lis)
	return s, nil
}

// StreamAggregatedResources implements the aggregated discovery service.
func (s *flagServer) StreamAggregatedResources(stream discoveryv3.AggregatedDiscoveryService_StreamAggregatedResourcesServer) error {
	return s.sotw.StreamHandler(stream, resourcev3.AnyType)
}

// set makes flags what they are from now on.
func (s *flagServer) set(f *flagsv1.FeatureFlags) error {
	return s.cache.UpdateResources(map[string]types.Resource{f.GetName(): f}, nil)
}

func (s *flagServer) stop() { s.grpc.Stop() }
