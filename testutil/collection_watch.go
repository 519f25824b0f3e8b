package testutil

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"google.golang.org/grpc/stats"
)

// Counters are the counts so far.
func (s *CollectionServer) Counters() Counters {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts
}

// Connections is the number of connections open now whose handshake is done.
func (s *CollectionServer) Connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conns
}

// Requests are all requests so far, in the order of their arrival, over all restarts.
func (s *CollectionServer) Requests() []*Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Nacks are those of the requests that reject a response.
func (s *CollectionServer) Nacks() []*Request {
	return slices.DeleteFunc(s.Requests(), func(r *Request) bool { return r.ErrorDetail() == nil })
}

// Subscribed is what the streams that are open now ask for of a type: names and globs in
// their canonical text, and "*"; sorted, and each of them once.
func (s *CollectionServer) Subscribed(typeURL string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make(map[string]struct{})
	for st := range s.streams {
		if a := st.accounts[typeURL]; a != nil {
			a.addTo(all)
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// AwaitRequest returns the first request, past or future, for which match is true. The error is
// that of ctx.
func (s *CollectionServer) AwaitRequest(ctx context.Context, match func(*Request) bool) (*Request, error) {
	seen := 0
	for {
		changed := s.nextChange()
		for _, r := range s.requestsSince(seen) {
			if match(r) {
				return r, nil
			}
			seen++
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, fmt.Errorf("await a request after %d others: %w", seen, ctx.Err())
		}
	}
}

func (s *CollectionServer) requestsSince(n int) []*Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	// Requests that were recorded are never changed, and more of them only appended.
	return s.requests[n:]
}

// Settle waits until the clients know all that the server has to say: nothing is left to be
// sent on any open stream, and every response is answered. What a client has not asked for
// yet is not waited for: see that it is [CollectionServer.Subscribed] first, with
// [CollectionServer.Await]. The error is that of ctx.
func (s *CollectionServer) Settle(ctx context.Context) error {
	return s.Await(ctx, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		for st := range s.streams {
			if !st.settled() {
				return false
			}
		}
		return true
	})
}

// connStats counts connections.
type connStats struct{ server *CollectionServer }

func (connStats) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

func (connStats) HandleRPC(context.Context, stats.RPCStats) {}

func (connStats) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

func (h connStats) HandleConn(_ context.Context, event stats.ConnStats) {
	s := h.server
	s.mu.Lock()
	defer s.mu.Unlock()
	switch event.(type) {
	case *stats.ConnBegin:
		s.conns++
	case *stats.ConnEnd:
		s.conns--
	}
	s.noteChange()
}
