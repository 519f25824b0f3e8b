package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"strings"
	"sync"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// breaker stands between grpc and the management server and ends streams, refuses them,
// leaves their requests unread, or read and unanswered. It knows what is asked for.
type breaker struct {
	token bool // a bearer token is asked for
	raw   bool // the server takes requests as bytes

	mu      sync.Mutex
	refused codes.Code // OK takes streams
	unread  gate
	hushed  gate
	streams map[*brokenStream]struct{}
}

func newBreaker(token, raw bool) *breaker {
	return &breaker{token: token, raw: raw, streams: map[*brokenStream]struct{}{}}
}

func (b *breaker) end(code codes.Code) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for s := range b.streams {
		s.end(code)
	}
}

func (b *breaker) refuse(code codes.Code) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refused = code
}

// gate is nil while it is open, and closed when it opens.
type gate chan struct{}

func (g *gate) shut(on bool) {
	switch {
	case on && *g == nil:
		*g = make(gate)
	case !on && *g != nil:
		close(*g)
		*g = nil
	}
}

// mute leaves requests unread, or reads them again.
func (b *breaker) mute(on bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.unread.shut(on)
}

// hush reads requests and does not let the server know, until it is over.
func (b *breaker) hush(on bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.hushed.shut(on)
}

// pass waits for a gate.
func (s *brokenStream) pass(g *gate) error {
	s.breaker.mu.Lock()
	shut := *g
	s.breaker.mu.Unlock()
	if shut == nil {
		return nil
	}
	select {
	case <-shut:
		return nil
	case <-s.Context().Done():
		return s.Context().Err()
	}
}

// intercept serves a stream until the server or the breaker ends it. The server's handler
// may outlive it for a moment: it notices by its next receive.
func (b *breaker) intercept(srv any, gs grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	if b.token && !hasToken(gs.Context()) {
		return status.Error(codes.Unauthenticated, "no token, or one that has expired")
	}
	s := newBrokenStream(gs, b, info.FullMethod)
	b.mu.Lock()
	refused := b.refused
	b.streams[s] = struct{}{}
	b.mu.Unlock()
	defer func() {
		b.mu.Lock()
		delete(b.streams, s)
		b.mu.Unlock()
	}()
	if refused != codes.OK {
		return status.Error(refused, "refused by the harness")
	}
	go s.read()
	done := make(chan error, 1)
	go func() { done <- next(srv, s) }()
	select {
	case err := <-done:
		return err
	case code := <-s.broken:
		s.seal()
		return status.Error(code, "ended by the harness")
	}
}

// brokenStream is a stream that can be ended from outside.
type brokenStream struct {
	grpc.ServerStream
	breaker *breaker
	delta   bool
	raw     bool // the server takes requests as bytes
	broken  chan codes.Code
	inbox   chan incoming // what was read

	asking sync.Mutex
	asked  map[string]*asked // by type URL

	mu     sync.Mutex // held while sending
	sealed bool
}

func (s *brokenStream) end(code codes.Code) {
	select {
	case s.broken <- code:
	default: // it ends already
	}
}

// seal lets nothing be sent any more.
func (s *brokenStream) seal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sealed = true
}

// SendMsg sends unless the stream was ended.
func (s *brokenStream) SendMsg(m any) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sealed {
		return status.Error(codes.Canceled, "ended by the harness")
	}
	return s.ServerStream.SendMsg(m)
}

// incoming is a request, or the end of them.
type incoming struct {
	message any // *[]byte or a proto.Message
	err     error
}

// unansweredRequests is how many requests of a stream are read while it is hushed.
const unansweredRequests = 4096

func newBrokenStream(gs grpc.ServerStream, b *breaker, method string) *brokenStream {
	return &brokenStream{
		ServerStream: gs, breaker: b, delta: strings.Contains(method, "/Delta"), raw: b.raw,
		broken: make(chan codes.Code, 1), inbox: make(chan incoming, unansweredRequests), asked: map[string]*asked{},
	}
}

// read reads requests until the stream ends.
func (s *brokenStream) read() {
	for {
		in := incoming{message: s.newRequest()}
		if in.err = s.pass(&s.breaker.unread); in.err == nil {
			in.err = s.ServerStream.RecvMsg(in.message)
		}
		if in.err == nil {
			s.note(in.message)
		}
		select {
		case s.inbox <- in:
		case <-s.Context().Done():
			return
		}
		if in.err != nil {
			return
		}
	}
}

func (s *brokenStream) newRequest() any {
	switch {
	case s.raw:
		return new([]byte)
	case s.delta:
		return new(discoveryv3.DeltaDiscoveryRequest)
	}
	return new(discoveryv3.DiscoveryRequest)
}

// RecvMsg takes what was read, unless the breaker hushes it.
func (s *brokenStream) RecvMsg(m any) error {
	if err := s.pass(&s.breaker.hushed); err != nil {
		return err
	}
	select {
	case in := <-s.inbox:
		if in.err != nil {
			return in.err
		}
		return hand(m, in.message)
	case <-s.Context().Done():
		return s.Context().Err()
	}
}

// hand fills a request with another.
func hand(to, from any) error {
	switch to := to.(type) {
	case *[]byte:
		*to = *from.(*[]byte)
	case proto.Message:
		proto.Merge(to, from.(proto.Message))
	default:
		return status.Errorf(codes.Internal, "a request of type %T", to)
	}
	return nil
}

// hasToken looks for a token that has not expired. Its signature is not looked at.
func hasToken(ctx context.Context) bool {
	md, _ := metadata.FromIncomingContext(ctx)
	for _, v := range md.Get("authorization") {
		parts := strings.Split(strings.TrimPrefix(v, "Bearer "), ".")
		if len(parts) != 3 {
			continue
		}
		var claims struct{ Exp int64 }
		payload, err := base64.RawURLEncoding.DecodeString(parts[1])
		if err == nil && json.Unmarshal(payload, &claims) == nil && time.Now().Unix() < claims.Exp {
			return true
		}
	}
	return false
}
