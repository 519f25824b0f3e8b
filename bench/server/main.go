// Command server is an ADS server that sends canned frames: everything is marshalled
// before the first stream, and what a client sends is scanned and not unmarshalled.
//
// It listens on three ports: plaintext gRPC at -addr, the control connection at the port
// after it, and gRPC over TLS, with a certificate of its own making, at the one after that.
package main

import (
	"flag"
	"log"
	"math"
	"net"
	"runtime/debug"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/mem"

	"github.com/xdswatch/xdswatch/bench/kit"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:18000", "address of gRPC; control and TLS are on the next ports")
	flag.Parse()
	debug.SetGCPercent(400)
	log.Fatal(run(*addr))
}

func run(addr string) error {
	cert, pem, err := certificate()
	if err != nil {
		return err
	}
	s := newServer(pem)
	errs := make(chan error)
	if err := listen(addr, kit.ControlAddr, func(l net.Listener) { errs <- s.acceptControl(l) }); err != nil {
		return err
	}
	if err := listen(addr, same, func(l net.Listener) { errs <- s.grpc().Serve(l) }); err != nil {
		return err
	}
	secure := s.grpc(grpc.Creds(credentials.NewServerTLSFromCert(cert)))
	if err := listen(addr, kit.TLSAddr, func(l net.Listener) { errs <- secure.Serve(l) }); err != nil {
		return err
	}
	return <-errs
}

func same(addr string) (string, error) { return addr, nil }

func listen(addr string, port func(string) (string, error), serve func(net.Listener)) error {
	addr, err := port(addr)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	go serve(l)
	return nil
}

// rawCodec sends slices as they are and receives bytes.
type rawCodec struct{}

func (rawCodec) Name() string                             { return "proto" }
func (rawCodec) Marshal(v any) (mem.BufferSlice, error)   { return v.(mem.BufferSlice), nil }
func (rawCodec) Unmarshal(d mem.BufferSlice, v any) error { *v.(*[]byte) = d.Materialize(); return nil }

func (s *server) grpc(opts ...grpc.ServerOption) *grpc.Server {
	opts = append(opts, grpc.ForceServerCodecV2(rawCodec{}), grpc.MaxRecvMsgSize(math.MaxInt32), grpc.MaxSendMsgSize(math.MaxInt32))
	g := grpc.NewServer(opts...)
	method := func(name string, delta bool) grpc.StreamDesc {
		return grpc.StreamDesc{
			StreamName: name, ServerStreams: true, ClientStreams: true,
			Handler: func(_ any, ss grpc.ServerStream) error { return s.serve(ss, delta) },
		}
	}
	g.RegisterService(&grpc.ServiceDesc{
		ServiceName: "envoy.service.discovery.v3.AggregatedDiscoveryService",
		HandlerType: (*any)(nil),
		Streams:     []grpc.StreamDesc{method("StreamAggregatedResources", false), method("DeltaAggregatedResources", true)},
	}, s)
	return g
}
