package main

import (
	"context"
	"sync"
	"testing"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/xdswatch/xdswatch/resource"
)

// acks knows what the client has acknowledged: it stands between the management server and gRPC,
// and looks at what passes.
type acks struct {
	mu      sync.Mutex
	changed chan struct{}      // closed at the next change
	owner   map[content]string // the resource that has it, by type URL and name
	newest  map[content]int    // the last push that has it
	needs   map[int][]string   // the resources of each push that the client needs
	acked   map[string]content // of each resource
	last    int                // push
}

// content is the bytes of a resource, with its type.
type content struct{ typeURL, bytes string }

func newAcks() *acks {
	return &acks{
		changed: make(chan struct{}), owner: map[content]string{}, newest: map[content]int{},
		needs: map[int][]string{}, acked: map[string]content{},
	}
}

// expect notes what a push has, before it is made. Needed is by the name of the resource.
func (a *acks) expect(t testing.TB, push int, resources []proto.Message, needed func(name string) bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.last = push
	for _, m := range resources {
		bytes, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
		if err != nil {
			t.Error(err)
		}
		c := content{resource.TypePrefix + string(m.ProtoReflect().Descriptor().FullName()), string(bytes)}
		// The name is the first field of all four types.
		name := m.ProtoReflect().Get(m.ProtoReflect().Descriptor().Fields().ByNumber(1)).String()
		id := c.typeURL + " " + name
		a.owner[c], a.newest[c] = id, push
		if needed(name) {
			a.needs[push] = append(a.needs[push], id)
		}
	}
}

// await waits until has is true. It is false if the context ended before.
func (a *acks) await(ctx context.Context, push int) bool {
	for {
		a.mu.Lock()
		changed := a.changed
		a.mu.Unlock()
		if a.has(push) {
			return true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}

// has is whether the client has acknowledged all that it needs of the push or of a later one.
func (a *acks) has(push int) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for ; push <= a.last; push++ {
		all := true
		for _, id := range a.needs[push] {
			all = all && a.newest[a.acked[id]] >= push
		}
		if all {
			return true
		}
	}
	return false
}

func (a *acks) acknowledge(all []content) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, c := range all {
		a.acked[a.owner[c]] = c
	}
	close(a.changed)
	a.changed = make(chan struct{})
}

func (a *acks) options() []grpc.ServerOption {
	return []grpc.ServerOption{grpc.ChainStreamInterceptor(
		func(srv any, gs grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler) error {
			return next(srv, &ackedStream{ServerStream: gs, acks: a, sent: map[string][]content{}})
		})}
}

// ackedStream is one stream. Requests and responses pass in different goroutines.
type ackedStream struct {
	grpc.ServerStream
	acks *acks
	mu   sync.Mutex
	sent map[string][]content // by type URL and nonce
}

func (s *ackedStream) SendMsg(msg any) error {
	var key string
	var all []content
	add := func(a *anypb.Any) { all = append(all, content{a.GetTypeUrl(), string(a.GetValue())}) }
	switch m := msg.(type) {
	case *discoveryv3.DiscoveryResponse:
		key = m.GetTypeUrl() + " " + m.GetNonce()
		for _, r := range m.GetResources() {
			add(r)
		}
	case *discoveryv3.DeltaDiscoveryResponse:
		key = m.GetTypeUrl() + " " + m.GetNonce()
		for _, r := range m.GetResources() {
			add(r.GetResource())
		}
	}
	s.mu.Lock()
	s.sent[key] = all
	s.mu.Unlock()
	return s.ServerStream.SendMsg(msg)
}

func (s *ackedStream) RecvMsg(msg any) error {
	if err := s.ServerStream.RecvMsg(msg); err != nil {
		return err
	}
	r, ok := msg.(interface {
		GetTypeUrl() string
		GetResponseNonce() string
	})
	refused := false
	switch m := msg.(type) {
	case *discoveryv3.DiscoveryRequest:
		refused = m.GetErrorDetail() != nil
	case *discoveryv3.DeltaDiscoveryRequest:
		refused = m.GetErrorDetail() != nil
	}
	if ok && !refused {
		s.mu.Lock()
		all := s.sent[r.GetTypeUrl()+" "+r.GetResponseNonce()]
		s.mu.Unlock()
		s.acks.acknowledge(all)
	}
	return nil
}
