package testutil_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime/pprof"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/xdswatch/xdswatch/testutil"
)

// newTarget listens for the far side of a proxy and hands out what it accepts.
func newTarget(t *testing.T) (addr string, accepted <-chan *net.TCPConn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	conns := make(chan *net.TCPConn, 16)
	go func() {
		defer close(conns)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			conns <- c.(*net.TCPConn)
		}
	}()
	return l.Addr().String(), conns
}

func newProxy(t *testing.T, target string) *testutil.TCPProxy {
	t.Helper()
	p, err := testutil.NewTCPProxy(target)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// through makes a connection through the proxy and returns both of its ends, across which
// a byte has passed.
func through(t *testing.T, p *testutil.TCPProxy, accepted <-chan *net.TCPConn) (client, server *net.TCPConn) {
	t.Helper()
	client = dial(t, p)
	if _, err := client.Write([]byte{'!'}); err != nil {
		t.Fatal(err)
	}
	server = <-accepted
	t.Cleanup(func() { server.Close() })
	expect(t, server, "!")
	return client, server
}

func dial(t *testing.T, p *testutil.TCPProxy) *net.TCPConn {
	t.Helper()
	c, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c.(*net.TCPConn)
}

func expect(t *testing.T, r io.Reader, want string) {
	t.Helper()
	got := make([]byte, len(want))
	if _, err := io.ReadFull(r, got); err != nil || string(got) != want {
		t.Fatalf("read %q, %v; want %q", got, err, want)
	}
}

func send(t *testing.T, w io.Writer, text string) {
	t.Helper()
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
}

func TestTCPProxyForwardsBothWaysAndHalfCloses(t *testing.T) {
	addr, accepted := newTarget(t)
	client, server := through(t, newProxy(t, addr), accepted)

	long := strings.Repeat("0123456789", 1<<17)
	go func() {
		io.WriteString(client, long)
		client.CloseWrite()
	}()
	got, err := io.ReadAll(server)
	if err != nil || string(got) != long {
		t.Fatalf("the server read %d bytes, %v; want %d", len(got), err, len(long))
	}
	send(t, server, "after the client's end")
	server.Close()
	if got, err := io.ReadAll(client); err != nil || string(got) != "after the client's end" {
		t.Fatalf("the client read %q, %v", got, err)
	}
}

func TestTCPProxyCut(t *testing.T) {
	addr, accepted := newTarget(t)
	p := newProxy(t, addr)
	client, server := through(t, p, accepted)
	if n := p.Connections(); n != 1 {
		t.Fatalf("%d connections, want 1", n)
	}
	p.Cut()
	for _, end := range []*net.TCPConn{client, server} {
		if n, err := end.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("read %d, %v after a cut, want EOF", n, err)
		}
	}
	if n := p.Connections(); n != 0 {
		t.Errorf("%d connections after a cut, want 0", n)
	}
	through(t, p, accepted)
}

func TestTCPProxyReset(t *testing.T) {
	addr, accepted := newTarget(t)
	p := newProxy(t, addr)
	client, server := through(t, p, accepted)
	p.Reset()
	for _, end := range []*net.TCPConn{client, server} {
		if n, err := end.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("read %d, %v after a reset, want %v", n, err, syscall.ECONNRESET)
		}
	}
}

// Connections are reset when Reset returns, and not some time after.
func TestTCPProxyResetsAtOnce(t *testing.T) {
	addr, accepted := newTarget(t)
	p := newProxy(t, addr)
	taken := 0
	for range 100 {
		client, _ := through(t, p, accepted)
		p.Reset()
		if _, err := client.Write([]byte{'!'}); err == nil {
			taken++
		}
	}
	if taken > 50 { // the kernel may take a moment too
		t.Errorf("%d of 100 writes are taken after a reset", taken)
	}
}

func TestTCPProxyPassesOnAReset(t *testing.T) {
	addr, accepted := newTarget(t)
	client, server := through(t, newProxy(t, addr), accepted)
	server.SetLinger(0)
	server.Close()
	if n, err := client.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("read %d, %v, want %v", n, err, syscall.ECONNRESET)
	}
}

func TestTCPProxyBlackhole(t *testing.T) {
	addr, accepted := newTarget(t)
	p := newProxy(t, addr)
	client, server := through(t, p, accepted)

	p.Blackhole(true)
	send(t, client, "lost")
	made := dial(t, p)
	send(t, made, "lost too")
	server.CloseWrite()
	client.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	if n, err := client.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("read %d, %v in the silence, want it to last", n, err)
	}

	p.Blackhole(false)
	send(t, client, "still lost")
	through(t, p, accepted)
	if n := p.Connections(); n != 3 {
		t.Errorf("%d connections, want the silent ones to stand: 3", n)
	}
	p.Cut()
	if got, err := io.ReadAll(server); err != nil || len(got) > 0 {
		t.Errorf("the server read %q, %v; want nothing and EOF", got, err)
	}
	if len(accepted) > 0 {
		t.Error("a connection made in the silence reached the server")
	}
}

func TestTCPProxyDelay(t *testing.T) {
	const delay = 100 * time.Millisecond
	addr, accepted := newTarget(t)
	p := newProxy(t, addr)
	client, server := through(t, p, accepted)
	p.Delay(delay)
	start := time.Now()
	send(t, client, "there")
	expect(t, server, "there")
	if d := time.Since(start); d < delay {
		t.Errorf("arrived after %v, want at least %v", d, delay)
	}
	send(t, server, "back")
	expect(t, client, "back")
	if d := time.Since(start); d < 2*delay {
		t.Errorf("was back after %v, want at least %v", d, 2*delay)
	}
	p.Delay(0)
	send(t, client, "now")
	expect(t, server, "now")
}

func TestTCPProxyCloseDoesNotWaitForADelay(t *testing.T) {
	addr, accepted := newTarget(t)
	p := newProxy(t, addr)
	client, _ := through(t, p, accepted)
	p.Delay(time.Hour)
	send(t, client, "never")
	p.Close()
	if _, err := io.Copy(io.Discard, client); err != nil && !errors.Is(err, syscall.ECONNRESET) {
		t.Error(err)
	}
}

func TestTCPProxyRefuse(t *testing.T) {
	addr, accepted := newTarget(t)
	p := newProxy(t, addr)
	client, server := through(t, p, accepted)
	for range 2 { // the second time is nothing
		if err := p.Refuse(true); err != nil {
			t.Fatal(err)
		}
	}
	if c, err := net.Dial("tcp", p.Addr()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Fatalf("dialled %v, %v, want %v", c, err, syscall.ECONNREFUSED)
	}
	send(t, client, "standing")
	expect(t, server, "standing")
	for range 2 {
		if err := p.Refuse(false); err != nil {
			t.Fatal(err)
		}
	}
	through(t, p, accepted)
}

// A proxy on a Unix socket passes on what it is told, takes the file away while it refuses, and
// replaces one that a dead process left.
func TestUnixProxy(t *testing.T) {
	target, accepted := newTarget(t)
	path := filepath.Join(t.TempDir(), "socket")
	p, err := testutil.NewUnixProxy(path, target)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	if got, want := p.Bootstrap().Servers[0].URI, "unix:"+path; got != want {
		t.Errorf("the server is %q, want %q", got, want)
	}
	for range 2 {
		c, err := net.Dial("unix", p.Addr())
		if err != nil {
			t.Fatal(err)
		}
		send(t, c, "hello")
		server := <-accepted
		expect(t, server, "hello")
		p.Cut()
		if n, err := c.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("read %d, %v after a cut, want EOF", n, err)
		}
		c.Close()
		server.Close()

		if err := p.Refuse(true); err != nil {
			t.Fatal(err)
		}
		if _, err := net.Dial("unix", path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("dial while the proxy refuses: %v", err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := p.Refuse(false); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTCPProxySetTarget(t *testing.T) {
	first, firstAccepted := newTarget(t)
	second, secondAccepted := newTarget(t)
	p := newProxy(t, first)
	client, server := through(t, p, firstAccepted)
	p.SetTarget(second)
	through(t, p, secondAccepted)
	send(t, client, "as before")
	expect(t, server, "as before")
}

func TestTCPProxyWithoutTarget(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	client, err := net.Dial("tcp", newProxy(t, l.Addr().String()).Addr())
	if err == nil { // else the reset was seen at once
		defer client.Close()
		_, err = client.Read(make([]byte, 1))
	}
	if !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("%v, want %v", err, syscall.ECONNRESET)
	}
}

func TestTCPProxyCloseWaits(t *testing.T) {
	addr, accepted := newTarget(t)
	p := newProxy(t, addr)
	through(t, p, accepted)
	p.Blackhole(true)
	dial(t, p)
	p.Close()
	p.Close()
	var stacks bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&stacks, 2); err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(stacks.Bytes(), []byte("proxyConn).")) || bytes.Contains(stacks.Bytes(), []byte("TCPProxy).accept")) {
		t.Errorf("goroutines left:\n%s", stacks.Bytes())
	}
	if err := p.Refuse(false); err != nil {
		t.Errorf("refuse after close: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if c, err := new(net.Dialer).DialContext(ctx, "tcp", p.Addr()); err == nil {
		c.Close()
		t.Error("a closed proxy accepted a connection")
	}
}
