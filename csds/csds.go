// Package csds lets grpcdebug, xdsctl and other tools see what a process has: it serves the Client
// Status Discovery Service of xDS (envoy.service.status.v3, gRFC A40) for clients of package
// client.
//
//	server := grpc.NewServer()
//	csds.Register(server, csds.Config{}, c)
//
// Then `grpcdebug ADDRESS xds status` and `xdsctl status ADDRESS` list each resource with its status,
// version and time, xdsctl also with what is wrong.
//
// An answer has a ClientConfig for each scope of each client ([client.InScope]), whose resources are
// sorted by type and name. What is secret in contents is redacted, and what is written in
// messages that are not linked into the program is left out (see package resourcejson). Errors quote
// no content. Who can reach the service learns names, addresses and the rest of the configuration all
// the same: serve it where only operators come, such as on a port of its own on the loopback interface.
//
// Readers take 4 MiB by default: enough for the rows of some 35,000 resources, and for the contents of
// some thousand clusters. See [Config.ExcludeContents] and [Config.MaxContents].
package csds

import (
	"context"
	"io"
	"slices"
	"sync"

	statusv3 "github.com/envoyproxy/go-control-plane/envoy/service/status/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource/resourcejson"
)

// Config says what the service shows. The zero value shows everything but secrets.
type Config struct {
	// Merge gives all scopes of all clients in one ClientConfig without a scope, with the node of the
	// first client. grpcdebug up to v1.0.5 takes no other answer. Of resources in several scopes there
	// are rows of the same name then.
	Merge bool
	// Types are the type URLs of the resources that are listed; empty for all.
	Types []string
	// Contents are the type URLs of the resources whose contents are shown; empty for all. grpcdebug
	// cannot print an answer with a type that is not linked into it.
	Contents []string
	// ExcludeContents shows no contents, as if each request said so (exclude_resource_contents).
	ExcludeContents bool
	// MaxContents is how many bytes of contents an answer has at most: of the resources behind these
	// there are rows without contents. 0 is no bound.
	MaxContents int
	// Others are other implementations of the service in the program, whose configs follow: a gRPC server
	// has one of them only. It is how to show gRPC's own xDS clients too, with the server object of
	// google.golang.org/grpc/xds/csds. The same is left out and redacted as of the clients.
	Others []statusv3.ClientStatusDiscoveryServiceServer
}

// Register registers the service at a gRPC server. The server must not have one already: package
// google.golang.org/grpc/admin registers gRPC's own where that is linked in; see [Config.Others].
func Register(r grpc.ServiceRegistrar, config Config, clients ...*client.Client) *Service {
	s := New(config, clients...)
	statusv3.RegisterClientStatusDiscoveryServiceServer(r, s)
	return s
}

// Service is the service; it implements [statusv3.ClientStatusDiscoveryServiceServer]. Its methods are safe for concurrent
// use. Each answer is made anew from [client.Client.States], and holds up no client.
type Service struct {
	config Config

	mu      sync.Mutex
	clients []named
}

type named struct {
	name string
	*client.Client
}

// New makes the service of clients without names. Closed clients are left out.
func New(config Config, clients ...*client.Client) *Service {
	s := &Service{config: config}
	for _, c := range clients {
		s.Add("", c)
	}
	return s
}

// Add adds a client. A name that is not empty stands before the names of its scopes, as in "name/scope";
// it tells clients apart.
func (s *Service) Add(name string, c *client.Client) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clients = append(s.clients, named{name, c})
}

// open lists the clients that are not closed.
func (s *Service) open() []named {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clients = slices.DeleteFunc(s.clients, func(n named) bool {
		select {
		case <-n.Done():
			return true
		default:
			return false
		}
	})
	return slices.Clone(s.clients)
}

// FetchClientStatus answers one request.
//
// Errors: INVALID_ARGUMENT for node_matchers, which the service does not know; those of Config.Others.
func (s *Service) FetchClientStatus(ctx context.Context, req *statusv3.ClientStatusRequest) (*statusv3.ClientStatusResponse, error) {
	// CSDS-f: matchers are for servers that know many nodes.
	if len(req.GetNodeMatchers()) > 0 {
		return nil, status.Error(codes.InvalidArgument, "node_matchers are not supported: the process has its own clients only")
	}
	a := &answer{config: &s.config, exclude: s.config.ExcludeContents || req.GetExcludeResourceContents(), look: resourcejson.NewWriter(resourcejson.Options{HideUnknown: true})}
	for _, c := range s.open() {
		a.client(c)
	}
	for _, other := range s.config.Others {
		resp, err := other.FetchClientStatus(ctx, req)
		if err != nil {
			return nil, err
		}
		a.other(resp)
	}
	return a.response(), nil
}

// StreamClientStatus answers each request of a stream, as FetchClientStatus does. It sends nothing unasked.
func (s *Service) StreamClientStatus(stream statusv3.ClientStatusDiscoveryService_StreamClientStatusServer) error {
	for {
		req, err := stream.Recv()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		resp, err := s.FetchClientStatus(stream.Context(), req)
		if err != nil {
			return err
		}
		// CSDS-f: one answer for a request.
		if err := stream.Send(resp); err != nil {
			return err
		}
	}
}
