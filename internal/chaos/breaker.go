package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// breaker stands between grpc and the management server and ends streams, refuses them,
// or leaves their requests unread.
type breaker struct {
	token bool // a bearer token is asked for

	mu      sync.Mutex
	refused codes.Code    // OK takes streams
	gate    chan struct{} // nil while requests are read
	streams map[*brokenStream]struct{}
}

func newBreaker(token bool) *breaker {
	return &breaker{token: token, streams: map[*brokenStream]struct{}{}}
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

func (b *breaker) mute(on bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case on && b.gate == nil:
		b.gate = make(chan struct{})
	case !on && b.gate != nil:
		close(b.gate)
		b.gate = nil
	}
}

// intercept serves a stream until the server or the breaker ends it. The server's handler
// may outlive it for a moment: it notices by its next receive.
func (b *breaker) intercept(srv any, gs grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	if b.token && !hasToken(gs.Context()) {
		return status.Error(codes.Unauthenticated, "no token, or one that has expired")
	}
	s := &brokenStream{ServerStream: gs, breaker: b, broken: make(chan codes.Code, 1)}
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
	broken  chan codes.Code

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

// RecvMsg waits while the breaker is mute.
func (s *brokenStream) RecvMsg(m any) error {
	s.breaker.mu.Lock()
	gate := s.breaker.gate
	s.breaker.mu.Unlock()
	if gate != nil {
		select {
		case <-gate:
		case <-s.Context().Done():
			return s.Context().Err()
		}
	}
	return s.ServerStream.RecvMsg(m)
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
