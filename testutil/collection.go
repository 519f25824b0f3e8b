package testutil

import (
	"fmt"
	"slices"
	"testing"

	"github.com/xdswatch/xdswatch/bootstrap"
)

// CollectionServer is a [Store] behind a [Server] on loopback TCP, which can be stopped and started
// again on the same port. Its methods are safe for concurrent use.
type CollectionServer struct {
	*Store
	port
	requests feed[*Request]
}

// NewCollectionServer starts a server that holds nothing yet, on a free port. It must be stopped.
// The functions of [OnStream] and [OnRequest] are called before the store acts; they must not stop
// the server. The resources stay over a stop for a restart.
func NewCollectionServer(opts ...Option) (*CollectionServer, error) {
	s := &CollectionServer{Store: NewStore()}
	record := OnRequest(func(_ *Stream, r *Request) { s.requests.add(r) })
	opts = append(slices.Clone(opts), Unrecorded(), record, s.Serve())
	if err := s.listen("127.0.0.1:0", opts...); err != nil {
		return nil, fmt.Errorf("collection server: %w", err)
	}
	return s, nil
}

// StartCollectionServer is [NewCollectionServer] for the length of a test, which fails if
// the server cannot start and stops it at its end.
func StartCollectionServer(tb testing.TB, opts ...Option) *CollectionServer {
	tb.Helper()
	s, err := NewCollectionServer(opts...)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(s.Stop)
	return s
}

// Bootstrap is the bootstrap of a client of this server alone, in plain text: for old-style
// names, and for structured names of the given authorities, of which "" is one. Delta
// chooses the variant. The caller may change it.
func (s *CollectionServer) Bootstrap(delta bool, authorities ...string) *bootstrap.Config {
	c := bootstrapOf(s.addr, bootstrap.Insecure())
	c.Servers[0].Delta = delta
	for _, a := range authorities {
		c.Authorities[a] = bootstrap.Authority{}
	}
	return c.WithDefaults()
}

// Restart starts a stopped server again on the same port, with the resources as they are
// by then. It waits up to ten seconds for the port to be free. The error is [ErrRunning] if
// the server was not stopped.
func (s *CollectionServer) Restart() error { return s.restart() }

// Requests are all requests so far, in the order of their arrival, over all restarts. Streams
// are numbered from 1 after each.
func (s *CollectionServer) Requests() []*Request { return s.requests.all() }
