package v2

import (
	"context"
	"encoding/json"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/xdswatch/xdswatch/internal/realtest/process"
)

// program is the server's, made by TestMain.
var program string

func TestMain(m *testing.M) { os.Exit(process.Build(m, &program)) }

// request is what the server says of one.
type request struct {
	Method, TypeURL, Version, Nonce, Error, Node, Build string
	Names, Unsubscribe                                  []string
	Initial                                             map[string]string
}

// server is a running server of version 2.
type server struct {
	*process.Process
	t *testing.T

	mu       sync.Mutex
	requests []request
	news     chan struct{} // closed with the next request
}

// start runs a server until the test ends. It listens for gRPC, then for polls.
func start(t *testing.T, args ...string) *server {
	t.Helper()
	s := &server{t: t, news: make(chan struct{})}
	s.Process = process.Start(t, s.hear, program, args...)
	return s
}

func (s *server) hear(line []byte) {
	var r request
	if err := json.Unmarshal(line, &r); err != nil {
		s.t.Errorf("the server says %q: %v", line, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, r)
	close(s.news)
	s.news = make(chan struct{})
}

// await waits for a request that is as wanted.
func (s *server) await(what string, wanted func(request) bool) request {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	for seen := 0; ; {
		s.mu.Lock()
		all, news := s.requests, s.news
		s.mu.Unlock()
		for ; seen < len(all); seen++ {
			if wanted(all[seen]) {
				return all[seen]
			}
		}
		select {
		case <-news:
		case <-ctx.Done():
			s.t.Fatalf("no %s among %+v", what, all)
		}
	}
}

// all are the requests so far.
func (s *server) all() []request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// noLeak checks that no goroutine runs code of a client that was closed.
func noLeak(t *testing.T) {
	t.Helper()
	buf := make([]byte, 1<<20)
	for range 100 {
		stacks := string(buf[:runtime.Stack(buf, true)])
		if !strings.Contains(stacks, "internal/engine.") && !strings.Contains(stacks, "xdswatch/transport.") {
			return
		}
		runtime.Gosched()
	}
	t.Errorf("goroutines left behind:\n%s", buf)
}
