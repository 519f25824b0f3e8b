package testutil

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// RESTConfig configures a [RESTServer]. Its zero value works.
type RESTConfig struct {
	// Listener is what the server listens on and closes; on "127.0.0.1:0" if nil.
	Listener net.Listener
	// TLS makes the server speak TLS, and HTTP/2 to clients that want it. Nil is plain text
	// and HTTP/1.1.
	TLS *tls.Config
	// OnlyHTTP1 keeps HTTP/2 from being offered.
	OnlyHTTP1 bool
	// Hold is how long a poll that knows the newest version is held back, for news or else
	// a 304. Without it the 304 comes at once.
	Hold time.Duration
	// ByVersion has the server look at a poll's version alone, as go-control-plane does:
	// who has the newest gets a 304, whatever else it asks for now. Otherwise only who asks
	// for the same as before does.
	ByVersion bool
}

// RESTServer is a management server that is polled over HTTP with JSON, whose fields are spelled as in
// the proto files, which is how go-control-plane's gateway and Envoy write them. Its methods are safe
// for concurrent use.
type RESTServer struct {
	config RESTConfig
	addr   string
	http   *http.Server
	served sync.WaitGroup // the listener

	polls feed[*RESTPoll]
	news  change // of the snapshot

	mu       sync.Mutex
	snapshot *cache.Snapshot     // nil until set
	asked    map[string][]string // by the last poll of each path that was answered in full
	answer   http.HandlerFunc    // in place of the server's own; nil if there is none
	open     map[net.Conn]http.ConnState
}

// RESTPoll is one poll as the server received it.
type RESTPoll struct {
	At      time.Time // of its receipt; fake time in a testing/synctest bubble
	Path    string
	Host    string
	Proto   string // "HTTP/1.1" or "HTTP/2.0"
	Header  http.Header
	Body    []byte
	Request *discoveryv3.DiscoveryRequest // nil if Body is none
}

// NewRESTServer starts a server without resources, which answers polls with 500 until it
// is given some. It must be stopped.
func NewRESTServer(cfg RESTConfig) (*RESTServer, error) {
	lis := cfg.Listener
	if lis == nil {
		var err error
		if lis, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			return nil, fmt.Errorf("rest server: %w", err)
		}
	}
	s := &RESTServer{
		config: cfg, addr: lis.Addr().String(), asked: map[string][]string{}, open: map[net.Conn]http.ConnState{},
	}
	s.http = &http.Server{
		Handler: http.HandlerFunc(s.serve), ConnState: s.connState, ErrorLog: log.New(io.Discard, "", 0), TLSConfig: cfg.TLS.Clone(),
	}
	if cfg.OnlyHTTP1 {
		s.http.Protocols = new(http.Protocols)
		s.http.Protocols.SetHTTP1(true)
	}
	serve := s.http.Serve
	if cfg.TLS != nil {
		serve = func(lis net.Listener) error { return s.http.ServeTLS(lis, "", "") }
	}
	s.served.Go(func() { _ = serve(lis) }) // until it is stopped
	return s, nil
}

// StartRESTServer is [NewRESTServer] for the length of a test, which fails if the server
// cannot start and stops it at its end.
func StartRESTServer(tb testing.TB, cfg RESTConfig) *RESTServer {
	tb.Helper()
	s, err := NewRESTServer(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(s.Stop)
	return s
}

// Addr is the address of the server.
func (s *RESTServer) Addr() string { return s.addr }

// Stop cuts all connections and waits for the listener's end. A second call does nothing.
func (s *RESTServer) Stop() {
	_ = s.http.Close() // there is no fault that would matter
	s.served.Wait()
}

// Connections counts the connections that are open.
func (s *RESTServer) Connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open)
}

// CloseIdle closes the connections that no poll is on, as a server does that was left alone
// for long.
func (s *RESTServer) CloseIdle() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for conn, state := range s.open {
		if state == http.StateIdle {
			conn.Close()
		}
	}
}

func (s *RESTServer) connState(conn net.Conn, state http.ConnState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open[conn] = state
	if state == http.StateClosed || state == http.StateHijacked {
		delete(s.open, conn)
	}
}

// Polls counts all polls.
func (s *RESTServer) Polls() int { return len(s.polls.all()) }

// Next waits for the next poll that was not taken yet and returns it, without waiting for its
// answer. The error is that of ctx.
func (s *RESTServer) Next(ctx context.Context) (*RESTPoll, error) {
	p, err := s.polls.next(ctx, context.Background())
	if err != nil {
		return nil, fmt.Errorf("no poll came: %w", err)
	}
	return p, nil
}

// Answer has all polls from now on answered by h; nil gives them back to the server. Those
// that are held back are not touched.
func (s *RESTServer) Answer(h http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = h
}

func (s *RESTServer) serve(w http.ResponseWriter, r *http.Request) {
	p, err := parsePoll(r)
	if err != nil {
		return // the client went away
	}
	s.mu.Lock()
	answer := s.answer
	s.mu.Unlock()
	s.polls.add(p) // who has seen it may change the answer to the next
	if answer != nil {
		answer(w, r)
		return
	}
	s.reply(w, r, p)
}

func parsePoll(r *http.Request) (*RESTPoll, error) {
	body, err := io.ReadAll(r.Body)
	p := &RESTPoll{At: time.Now(), Path: r.URL.Path, Host: r.Host, Proto: r.Proto, Header: r.Header, Body: body}
	request := new(discoveryv3.DiscoveryRequest)
	if protojson.Unmarshal(body, request) == nil {
		p.Request = request
	}
	return p, err
}

// Set replaces all resources, under a version that counts for every type. Types are those
// of [ManagementServer.Set] but VirtualHost.
func (s *RESTServer) Set(version string, resources ...proto.Message) error {
	snapshot, err := newSnapshot(version, resources)
	if err != nil {
		return err
	}
	// The cache takes both, and there is no path for either.
	if len(snapshot.GetResources(resourcev3.VirtualHostType))+len(snapshot.GetResources(resourcev3.RateLimitConfigType)) > 0 {
		return fmt.Errorf("snapshot %q: %w", version, ErrUnsupportedType)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.snapshot = snapshot
	clear(s.asked)
	s.news.happened()
	return nil
}
