package testutil

import (
	"context"
	"fmt"
	"sync"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
)

// Counters are what a [ManagementServer] or [CollectionServer] saw on its streams since it
// was made, over all restarts.
type Counters struct {
	Streams   int // streams opened
	Open      int // streams open now
	Requests  int // requests received, NACKs included
	NACKs     int // requests with an error_detail
	Responses int // responses handed to grpc, which holds them back while a client does not read
}

// counter is a set of counters whose changes can be waited for.
type counter struct {
	change
	mu     sync.Mutex
	counts Counters
}

// Counters are the counts so far.
func (c *counter) Counters() Counters {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.counts
}

// Await waits until ok, which is asked at first and after each change: of the counters, and of what else the
// server's methods tell, which ok may call. The error is that of ctx.
func (c *counter) Await(ctx context.Context, ok func(Counters) bool) error {
	err := c.await(ctx, context.Background(), func() bool { return ok(c.Counters()) })
	if err != nil {
		err = fmt.Errorf("counters are %+v: %w", c.Counters(), err)
	}
	return err
}

// update changes the counters and gives the number of streams opened.
func (c *counter) update(change func(*Counters)) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(&c.counts)
	c.happened()
	return c.counts.Streams
}

// count counts a request.
func (r *Request) count(c *Counters) {
	c.Requests++
	if r.ErrorDetail() != nil {
		c.NACKs++
	}
}

// intercept stands between grpc and the discovery server, and so sees requests before
// the server fills in what the client left out.
func (m *ManagementServer) intercept(srv any, gs grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	id := m.update(func(c *Counters) {
		c.Streams++
		c.Open++
	})
	defer m.update(func(c *Counters) { c.Open-- })
	return next(srv, &countedStream{ServerStream: gs, server: m, id: id})
}

type countedStream struct {
	grpc.ServerStream
	server *ManagementServer
	id     int
}

func (s *countedStream) RecvMsg(msg any) error {
	if err := s.ServerStream.RecvMsg(msg); err != nil {
		return err
	}
	r := &Request{Stream: s.id, At: time.Now()}
	switch msg := msg.(type) { // into which the server goes on to write
	case *discoveryv3.DiscoveryRequest:
		r.SotW = proto.CloneOf(msg)
	case *discoveryv3.DeltaDiscoveryRequest:
		r.Delta = proto.CloneOf(msg)
	}
	r.Size = proto.Size(r.message())
	s.server.update(r.count)
	if f := s.server.config.OnRequest; f != nil {
		f(r)
	}
	return nil
}

func (s *countedStream) SendMsg(msg any) error {
	s.server.update(func(c *Counters) { c.Responses++ })
	return s.ServerStream.SendMsg(msg)
}
