package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/xdswatch/xdswatch/testutil"
)

// station is a store that serves the state of a truth, and ends streams, refuses them or leaves
// their requests unread. Safe for concurrent use.
type station struct {
	*testutil.Store
	kinds []kind
	token bool // a bearer token is required

	mu      sync.Mutex
	items   map[key]bool // that are served
	refused codes.Code   // OK takes streams
	muted   bool
}

func newStation(token bool) *station {
	return &station{Store: testutil.NewStore(), kinds: kinds(), token: token}
}

// options are those of its server.
func (s *station) options() []testutil.Option {
	return []testutil.Option{testutil.Unrecorded(), testutil.OnStream(s.opened), s.Serve()}
}

// opened breaks a new stream if it is to be broken.
func (s *station) opened(st *testutil.Stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.token && !hasToken(st.Metadata):
		st.End(status.Error(codes.Unauthenticated, "no token, or one that has expired"))
	case s.refused != codes.OK:
		st.End(status.Error(s.refused, "refused by the harness"))
	case s.muted:
		st.StopReading()
	}
}

// set serves a state.
func (s *station) set(to *state) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	gone := s.items
	s.items = map[key]bool{}
	var all []*discoveryv3.Resource
	for _, i := range to.Items {
		all = append(all, testutil.Wrapped(i.Name, fmt.Sprint(i.Rev), i.message(s.kinds)))
		s.items[key{i.Kind, i.Name}] = true
	}
	for k := range gone {
		if !s.items[k] {
			s.Remove(s.kinds[k.kind].typ.TypeURL(), k.name)
		}
	}
	return s.Set(all...)
}

// end ends all streams.
func (s *station) end(code codes.Code) {
	for _, st := range s.Streams() {
		st.End(status.Error(code, "ended by the harness"))
	}
}

// refuse ends each new stream with a status; OK takes them again.
func (s *station) refuse(code codes.Code) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused = code
}

// mute leaves requests unread, or reads them again.
func (s *station) mute(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.muted = on
	for _, st := range s.Streams() {
		if on {
			st.StopReading()
		} else {
			st.ResumeReading()
		}
	}
}

// noise sends all streams a message that is no response.
func (s *station) noise() {
	for _, st := range s.Streams() {
		go st.SendBytes([]byte{0xff, 0xff}) // a stream that is over needs none
	}
}

// asked is what is subscribed to by type URL.
func (s *station) asked() map[string][]string {
	all := map[string][]string{}
	for _, k := range s.kinds {
		if names := s.Subscribed(k.typ.TypeURL()); len(names) > 0 {
			all[k.typ.TypeURL()] = names
		}
	}
	return all
}

// settled says whether all that is subscribed to was sent and answered.
func (s *station) settled() bool {
	now, cancel := context.WithCancel(context.Background())
	cancel()
	return s.Settle(now) == nil
}

// hasToken looks for a token that has not expired. Its signature is not looked at.
func hasToken(md metadata.MD) bool {
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
