package v2

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// binary is the server's, made by TestMain.
var binary string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "v2")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "server")
	build := exec.Command("go", "build", "-o", binary, ".")
	build.Dir, build.Stderr = "server", os.Stderr
	if err := build.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "the server:", err)
		return 1
	}
	return m.Run()
}

// request is what the server says of one.
type request struct {
	Method, TypeURL, Version, Nonce, Error, Node, Build string
	Names, Unsubscribe                                  []string
	Initial                                             map[string]string
}

// server is a running server of version 2.
type server struct {
	t      *testing.T
	addr   string
	polled string // where it can be polled
	input  io.Writer

	mu       sync.Mutex
	requests []request
	news     chan struct{} // closed with the next request
}

// start runs a server until the test ends.
func start(t *testing.T, args ...string) *server {
	t.Helper()
	cmd := exec.Command(binary, args...)
	cmd.Stderr = os.Stderr
	input, err := cmd.StdinPipe()
	must(t, err)
	output, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	s := &server{t: t, input: input, news: make(chan struct{})}
	lines := bufio.NewScanner(output)
	var heard sync.WaitGroup
	t.Cleanup(func() {
		input.Close()
		heard.Wait()
		if err := cmd.Wait(); err != nil {
			t.Errorf("the server: %v", err)
		}
	})
	if !lines.Scan() {
		t.Fatal("the server says nothing")
	}
	s.addr, s.polled, _ = strings.Cut(strings.TrimPrefix(lines.Text(), "listening "), " ")
	heard.Go(func() { s.listen(lines) })
	return s
}

func (s *server) listen(lines *bufio.Scanner) {
	for lines.Scan() {
		var r request
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			s.t.Errorf("the server says %q: %v", lines.Text(), err)
		}
		s.mu.Lock()
		s.requests = append(s.requests, r)
		close(s.news)
		s.news = make(chan struct{})
		s.mu.Unlock()
	}
}

// set gives the server a new state.
func (s *server) set(state string) {
	s.t.Helper()
	_, err := fmt.Fprintln(s.input, state)
	must(s.t, err)
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
