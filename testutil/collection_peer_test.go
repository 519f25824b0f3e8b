package testutil

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/anypb"
)

const (
	endpointsURL = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"
	locatorURL   = "type.googleapis.com/xds.core.v3.ResourceLocator"

	// clustersAt and endpointsAt begin the structured names of their types.
	clustersAt  = "xdstp://au/envoy.config.cluster.v3.Cluster/"
	endpointsAt = "xdstp://au/envoy.config.endpoint.v3.ClusterLoadAssignment/"
)

// named is a cluster under a name, with a version.
func named(name, version string) *discoveryv3.Resource {
	return Wrapped(name, version, cluster(name))
}

func assignment(name string) *endpointv3.ClusterLoadAssignment {
	return &endpointv3.ClusterLoadAssignment{ClusterName: name}
}

// assigned are the endpoints of a cluster under a name.
func assigned(name string) *discoveryv3.Resource { return Wrapped(name, "", assignment(name)) }

func bidi() *grpc.StreamDesc { return &grpc.StreamDesc{ServerStreams: true, ClientStreams: true} }

// deltaPeer is a client of one type on a delta stream.
type deltaPeer struct {
	t      *testing.T
	ctx    context.Context
	server *CollectionServer
	stream deltaClient
	url    string
	nonce  string // of the last response
}

func newDeltaPeer(t *testing.T, ctx context.Context, s *CollectionServer, url string) *deltaPeer {
	t.Helper()
	return deltaPeerOn(t, ctx, s, connect(t, s.Addr()), url)
}

func deltaPeerOn(t *testing.T, ctx context.Context, s *CollectionServer, cc *grpc.ClientConn, url string) *deltaPeer {
	t.Helper()
	return &deltaPeer{t: t, ctx: ctx, server: s, stream: openDelta(t, ctx, cc), url: url}
}

// send waits until the server has acted on the request.
func (p *deltaPeer) send(r *discoveryv3.DeltaDiscoveryRequest) {
	p.t.Helper()
	r.TypeUrl = p.url
	heard(p.t, p.ctx, p.server, func() error { return p.stream.Send(r) })
}

// heard sends a request and waits until the server has acted on it.
func heard(t *testing.T, ctx context.Context, s *CollectionServer, send func() error) {
	t.Helper()
	before := s.Counters().Requests
	must(t, send())
	must(t, s.Await(ctx, func(c Counters) bool { return c.Requests > before }))
}

func (p *deltaPeer) ask(names ...string) {
	p.t.Helper()
	p.send(&discoveryv3.DeltaDiscoveryRequest{ResourceNamesSubscribe: names})
}

func (p *deltaPeer) leave(names ...string) {
	p.t.Helper()
	p.send(&discoveryv3.DeltaDiscoveryRequest{ResourceNamesUnsubscribe: names})
}

// resume asks with the versions that are held.
func (p *deltaPeer) resume(held map[string]string, names ...string) {
	p.t.Helper()
	p.send(&discoveryv3.DeltaDiscoveryRequest{
		ResourceNamesSubscribe: names, InitialResourceVersions: held,
	})
}

func (p *deltaPeer) reject(why string) {
	p.t.Helper()
	p.send(&discoveryv3.DeltaDiscoveryRequest{
		ResponseNonce: p.nonce, ErrorDetail: &statuspb.Status{Code: 3, Message: why},
	})
}

// take receives a response without an answer.
func (p *deltaPeer) take() *discoveryv3.DeltaDiscoveryResponse {
	p.t.Helper()
	resp := recv(p.t, p.stream)
	if resp.GetTypeUrl() != p.url || resp.GetNonce() == "" || resp.GetNonce() == p.nonce {
		p.t.Fatalf("response of type %q with nonce %q", resp.GetTypeUrl(), resp.GetNonce())
	}
	p.nonce = resp.GetNonce()
	return resp
}

// want receives a response, compares it with its text form, and accepts it.
func (p *deltaPeer) want(want ...string) {
	p.t.Helper()
	if got := deltaText(p.take()); !slices.Equal(got, want) {
		p.t.Errorf("got %q, want %q", got, want)
	}
	p.send(&discoveryv3.DeltaDiscoveryRequest{ResponseNonce: p.nonce})
}

// deltaText is a response as text: "name@version" of each resource, then "-name" of those
// removed.
func deltaText(resp *discoveryv3.DeltaDiscoveryResponse) []string {
	var out []string
	for _, r := range resp.GetResources() {
		out = append(out, r.GetName()+"@"+r.GetVersion())
	}
	for _, name := range resp.GetRemovedResources() {
		out = append(out, "-"+name)
	}
	return out
}

// sotwPeer is a client of one type on a state-of-the-world stream.
type sotwPeer struct {
	t      *testing.T
	ctx    context.Context
	server *CollectionServer
	stream sotwClient
	url    string
	last   *discoveryv3.DiscoveryResponse
}

func newSotWPeer(t *testing.T, ctx context.Context, s *CollectionServer, url string) *sotwPeer {
	t.Helper()
	return &sotwPeer{t: t, ctx: ctx, server: s, stream: openSotW(t, ctx, connect(t, s.Addr())), url: url}
}

// ask asks for the names, and accepts the last response. It waits until the server has
// acted on it.
func (p *sotwPeer) ask(names ...string) {
	p.t.Helper()
	r := &discoveryv3.DiscoveryRequest{
		TypeUrl: p.url, ResourceNames: names,
		VersionInfo: p.last.GetVersionInfo(), ResponseNonce: p.last.GetNonce(),
	}
	heard(p.t, p.ctx, p.server, func() error { return p.stream.Send(r) })
}

// want receives a response and compares it with its names, where a wrapped resource has
// its name in brackets.
func (p *sotwPeer) want(want ...string) {
	p.t.Helper()
	resp := recv(p.t, p.stream)
	if resp.GetTypeUrl() != p.url || resp.GetVersionInfo() == "" || resp.GetNonce() == p.last.GetNonce() {
		p.t.Errorf("response of type %q, version %q, nonce %q", resp.GetTypeUrl(), resp.GetVersionInfo(), resp.GetNonce())
	}
	p.last = resp
	var got []string
	for _, a := range resp.GetResources() {
		got = append(got, sotwText(p.t, a))
	}
	if !slices.Equal(got, want) {
		p.t.Errorf("got %q, want %q", got, want)
	}
}

func sotwText(t *testing.T, a *anypb.Any) string {
	t.Helper()
	m, err := a.UnmarshalNew()
	must(t, err)
	switch m := m.(type) {
	case *discoveryv3.Resource:
		return "[" + m.GetName() + "]"
	case interface{ GetName() string }:
		return m.GetName()
	case interface{ GetClusterName() string }:
		return m.GetClusterName()
	}
	return fmt.Sprintf("%T", m)
}

func settle(t *testing.T, ctx context.Context, s *CollectionServer) {
	t.Helper()
	must(t, s.Settle(ctx))
}

// many are clusters under a glob, and the text of a response that has them all.
func many(n int, path, version string) ([]*discoveryv3.Resource, map[string]string) {
	resources := make([]*discoveryv3.Resource, n)
	versions := make(map[string]string, n)
	for i := range resources {
		name := fmt.Sprintf("%s%s%06d", clustersAt, path, i)
		resources[i] = named(name, version)
		versions[name] = version
	}
	return resources, versions
}

// gather receives responses until n resources came, and checks that none comes twice.
func (p *deltaPeer) gather(n int) map[string]string {
	p.t.Helper()
	got := make(map[string]string, n)
	for len(got) < n {
		resp := p.take()
		for _, r := range resp.GetResources() {
			if _, ok := got[r.GetName()]; ok {
				p.t.Fatalf("%s came twice", r.GetName())
			}
			got[r.GetName()] = r.GetVersion()
		}
		p.send(&discoveryv3.DeltaDiscoveryRequest{ResponseNonce: p.nonce})
	}
	return got
}

func sameVersions(t *testing.T, got, want map[string]string) {
	t.Helper()
	if !maps.Equal(got, want) {
		t.Errorf("got %d resources, want %d others", len(got), len(want))
	}
}
