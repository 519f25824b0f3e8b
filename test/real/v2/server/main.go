// Command server is a management server of version 2 of the xDS protocol, as it was:
// go-control-plane v0.9.7 serves state of the world, to nodes whose id is "node". That
// version never served delta; this program does, in delta.go, over the same generated code.
//
// It says on a first line of standard output where it listens for gRPC and where it can be
// polled, and then, a line of JSON each, what it is asked. Each line of standard input is a new state, such as
// "2 cds:a=text eds:a": the version, and resources by type, name and, of clusters, the
// alt_stat_name, or "!" for one that no client accepts. It ends with standard input.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"

	api "github.com/envoyproxy/go-control-plane/envoy/api/v2"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v2"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v2"
	xds "github.com/envoyproxy/go-control-plane/pkg/server/v2"
	"google.golang.org/grpc"
)

// server is what serves: the old one's state of the world, and delta besides.
type server struct {
	xds.Server
	cache   cache.SnapshotCache
	state   *state
	untyped bool // delta responses say no type, as those of early servers
}

func main() {
	untyped := flag.Bool("untyped", false, "leave type_url out of delta responses")
	flag.Parse()
	if err := run(*untyped); err != nil {
		log.Fatal(err)
	}
}

func run(untyped bool) error {
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	c := cache.NewSnapshotCache(false, cache.IDHash{}, nil)
	s := &server{xds.NewServer(context.Background(), c, nil), c, newState(), untyped}
	polled, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	j := &journal{}
	g := grpc.NewServer(grpc.StreamInterceptor(j.record))
	s.register(g)
	h := &gateway{xds.HTTPGateway{Server: xds.NewServer(context.Background(), c, j)}}
	fmt.Println("listening", lis.Addr(), polled.Addr())
	go func() { log.Fatal(g.Serve(lis)) }()
	go func() { log.Fatal(http.Serve(polled, h)) }()
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		if err := s.set(strings.Fields(lines.Text())); err != nil {
			return err
		}
	}
	return lines.Err()
}

func (s *server) register(g *grpc.Server) {
	discovery.RegisterAggregatedDiscoveryServiceServer(g, s)
	discovery.RegisterSecretDiscoveryServiceServer(g, s)
	discovery.RegisterRuntimeDiscoveryServiceServer(g, s)
	api.RegisterClusterDiscoveryServiceServer(g, s)
	api.RegisterEndpointDiscoveryServiceServer(g, s)
	api.RegisterListenerDiscoveryServiceServer(g, s)
	api.RegisterRouteDiscoveryServiceServer(g, s)
}

// request is what is told of a request.
type request struct {
	Method, TypeURL, Version, Nonce, Error, Node, Build string
	Names, Unsubscribe                                  []string
	Initial                                             map[string]string
}

// journal tells of requests, one at a time.
type journal struct{ mu sync.Mutex }

type journaled struct {
	grpc.ServerStream
	journal *journal
	method  string
}

func (j *journal) record(srv any, s grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	return handle(srv, &journaled{s, j, info.FullMethod})
}

// RecvMsg tells of what it receives.
func (s *journaled) RecvMsg(m any) error {
	err := s.ServerStream.RecvMsg(m)
	if err != nil {
		return err
	}
	return s.journal.tell(s.method, m)
}

func (j *journal) tell(method string, m any) error {
	r := request{Method: method}
	switch m := m.(type) {
	case *api.DiscoveryRequest:
		r.TypeURL, r.Version, r.Nonce, r.Error = m.TypeUrl, m.VersionInfo, m.ResponseNonce, m.GetErrorDetail().GetMessage()
		r.Names, r.Node, r.Build = m.ResourceNames, m.GetNode().GetId(), m.GetNode().GetBuildVersion()
	case *api.DeltaDiscoveryRequest:
		r.TypeURL, r.Nonce, r.Error, r.Initial = m.TypeUrl, m.ResponseNonce, m.GetErrorDetail().GetMessage(), m.InitialResourceVersions
		r.Names, r.Unsubscribe = m.ResourceNamesSubscribe, m.ResourceNamesUnsubscribe
		r.Node, r.Build = m.GetNode().GetId(), m.GetNode().GetBuildVersion()
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	return json.NewEncoder(os.Stdout).Encode(r)
}
