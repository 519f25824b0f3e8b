// Command server is an ADS server that sends canned frames: everything is marshalled
// before the first stream, and what a client sends is scanned and not unmarshalled.
//
// It listens on three ports: plaintext gRPC at -addr, the control connection at the port
// after it, and gRPC over TLS, with a certificate of its own making, at the one after that.
// Nine ports more are those of further servers, which have the authorities of a scenario
// that is about several.
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
	addr := flag.String("addr", "127.0.0.1:18000", "address of gRPC; the eleven ports after it are used too")
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
	for number := range kit.MaxServers {
		at := func(addr string) (string, error) { return kit.ServerAddr(addr, number) }
		if err := listen(addr, at, func(l net.Listener) { errs <- s.grpc(number).Serve(counted{l, s}) }); err != nil {
			return err
		}
	}
	secure := s.grpc(0, grpc.Creds(credentials.NewServerTLSFromCert(cert)))
	if err := listen(addr, kit.TLSAddr, func(l net.Listener) { errs <- secure.Serve(counted{l, s}) }); err != nil {
		return err
	}
	return <-errs
}

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

// counted counts connections.
type counted struct {
	net.Listener
	s *server
}

func (l counted) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err == nil {
		l.s.mu.Lock()
		l.s.stats.Conns++
		l.s.mu.Unlock()
	}
	return c, err
}

// rawCodec sends slices as they are and receives bytes.
type rawCodec struct{}

func (rawCodec) Name() string                             { return "proto" }
func (rawCodec) Marshal(v any) (mem.BufferSlice, error)   { return v.(mem.BufferSlice), nil }
func (rawCodec) Unmarshal(d mem.BufferSlice, v any) error { *v.(*[]byte) = d.Materialize(); return nil }

// grpc makes the server of a number.
func (s *server) grpc(number int, opts ...grpc.ServerOption) *grpc.Server {
	opts = append(opts, grpc.ForceServerCodecV2(rawCodec{}), grpc.MaxRecvMsgSize(math.MaxInt32), grpc.MaxSendMsgSize(math.MaxInt32))
	g := grpc.NewServer(opts...)
	method := func(name string, delta bool) grpc.StreamDesc {
		return grpc.StreamDesc{
			StreamName: name, ServerStreams: true, ClientStreams: true,
			Handler: func(_ any, ss grpc.ServerStream) error { return s.serve(ss, number, delta) },
		}
	}
	for service, what := range map[string]string{
		"discovery.v3.Aggregated": "AggregatedResources",
		"cluster.v3.Cluster":      "Clusters",
		"endpoint.v3.Endpoint":    "Endpoints",
	} {
		g.RegisterService(&grpc.ServiceDesc{
			ServiceName: "envoy.service." + service + "DiscoveryService",
			HandlerType: (*any)(nil),
			Streams:     []grpc.StreamDesc{method("Stream"+what, false), method("Delta"+what, true)},
		}, s)
	}
	return g
}
