package main

import (
	"net"
	"slices"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// backend is a server on loopback TCP whose only service is gRPC's health service.
type backend struct {
	addr *net.TCPAddr
	grpc *grpc.Server
}

func newBackend() (*backend, error) {
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	b := &backend{addr: lis.Addr().(*net.TCPAddr), grpc: grpc.NewServer()}
	healthpb.RegisterHealthServer(b.grpc, health.NewServer())
	go b.grpc.Serve(lis)
	return b, nil
}

func (b *backend) stop() { b.grpc.Stop() }

// addresses of backends, sorted.
func addresses(bs []*backend) []string {
	var as []string
	for _, b := range bs {
		as = append(as, b.addr.String())
	}
	slices.Sort(as)
	return as
}

// assignment is what EDS says of backends.
func assignment(name string, bs []*backend) *endpointv3.ClusterLoadAssignment {
	// gRPC ignores a locality without a weight.
	locality := &endpointv3.LocalityLbEndpoints{Locality: &corev3.Locality{}, LoadBalancingWeight: wrapperspb.UInt32(1)}
	for _, b := range bs {
		address := &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
			Address:       b.addr.IP.String(),
			PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: uint32(b.addr.Port)},
		}}}
		locality.LbEndpoints = append(locality.LbEndpoints, &endpointv3.LbEndpoint{
			HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{Address: address}},
		})
	}
	return &endpointv3.ClusterLoadAssignment{ClusterName: name, Endpoints: []*endpointv3.LocalityLbEndpoints{locality}}
}
