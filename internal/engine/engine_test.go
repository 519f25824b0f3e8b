package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cenkalti/backoff/v4"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/xdswatch/xdswatch/internal/machine"
	"github.com/xdswatch/xdswatch/resource"
	"github.com/xdswatch/xdswatch/transport"
)

// wireConn is a connection whose streams are channels.
type wireConn struct {
	streams chan *wireStream
	refuse  error
	closed  chan struct{}
	slow    time.Duration // that Close takes
}

func newWireConn() *wireConn {
	return &wireConn{streams: make(chan *wireStream, 100), closed: make(chan struct{})}
}

func (c *wireConn) Open(ctx context.Context, method string) (transport.Stream, error) {
	if c.refuse != nil {
		return nil, c.refuse
	}
	ctx, cancel := context.WithCancel(ctx)
	s := &wireStream{ctx: ctx, cancel: cancel, method: method, in: make(chan []byte), out: make(chan []byte, 1000), end: make(chan error, 1)}
	c.streams <- s
	return s, nil
}

func (c *wireConn) Close() error {
	time.Sleep(c.slow)
	close(c.closed)
	return nil
}

type wireStream struct {
	ctx    context.Context
	cancel context.CancelFunc
	method string
	in     chan []byte // to the client
	out    chan []byte // from the client
	end    chan error
}

func (s *wireStream) Send(msg ...[]byte) error {
	select {
	case <-s.ctx.Done():
		return transport.ErrStreamEnded
	case s.out <- bytes.Join(msg, nil):
		return nil
	}
}

func (s *wireStream) Recv() (transport.Frame, error) {
	select {
	case b := <-s.in:
		return transport.Frame{Parts: [][]byte{b}}, nil
	case err := <-s.end:
		return transport.Frame{}, err
	case <-s.ctx.Done():
		return transport.Frame{}, s.ctx.Err()
	}
}

func (s *wireStream) Close() { s.cancel() }

// requests are those that have come so far.
func (s *wireStream) requests(t *testing.T) (rs []*discoveryv3.DiscoveryRequest) {
	t.Helper()
	synctest.Wait()
	for len(s.out) > 0 {
		r := &discoveryv3.DiscoveryRequest{}
		if err := proto.Unmarshal(<-s.out, r); err != nil {
			t.Fatal(err)
		}
		rs = append(rs, r)
	}
	return rs
}

// sink writes down what it is told.
type sink struct {
	mu    sync.Mutex
	lines []string

	deaf    bool // it wants to hear nothing
	pending bool // the dispatcher's own
}

func (s *sink) add(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, line)
}

func (s *sink) Tell(n *machine.Notice) bool {
	switch n.Kind {
	case machine.NoticeUpdated:
		s.add(fmt.Sprint(n.Name, "=", n.Value))
	default:
		s.add(fmt.Sprint(n.Kind, " ", n.Name))
	}
	fresh := !s.pending
	s.pending = true
	return fresh
}

func (s *sink) Alive() bool { return !s.deaf }

func (s *sink) Flush(last bool) {
	s.pending = s.pending && !last
	s.add(fmt.Sprint("flush ", last))
}

// told takes what was told so far.
func (s *sink) told() []string {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	lines := s.lines
	s.lines = nil
	return lines
}

const url = resource.TypePrefix + "test.Thing"

// slowKind decodes in a time of its own, and counts how much at once.
type slowKind struct {
	took time.Duration
	mu   sync.Mutex
	busy int
	most int
}

func (k *slowKind) kind() resource.AnyType {
	return resource.Custom(url, resource.Options{NameField: 1}, func(_ resource.Source, b []byte) (string, error) {
		k.mu.Lock()
		k.busy++
		k.most = max(k.most, k.busy)
		k.mu.Unlock()
		time.Sleep(k.took)
		k.mu.Lock()
		k.busy--
		k.mu.Unlock()
		_, _, n := protowire.ConsumeTag(b)
		name, _ := protowire.ConsumeString(b[n:])
		return strings.ToUpper(name), nil
	})
}

func start(t *testing.T, conn *wireConn) *Engine {
	t.Helper()
	return startWith(t, func() (transport.Conn, error) { return conn, nil })
}

func startWith(t *testing.T, connect func() (transport.Conn, error)) *Engine {
	t.Helper()
	return startServers(t, Server{URI: "test", Connect: connect})
}

// startServers has a source for each server.
func startServers(t *testing.T, servers ...Server) *Engine {
	t.Helper()
	var sources []machine.Source
	for i := range servers {
		sources = append(sources, machine.Source{Servers: []int{i}, Scope: i})
		if servers[i].Backoff == nil {
			servers[i].Backoff = func() backoff.BackOff { return backoff.NewConstantBackOff(time.Second) }
		}
	}
	e := New(Config{
		Servers: servers, Sources: sources,
		Machine: machine.Config{ResourceTimeout: 15 * time.Second, Linger: time.Second},
		Node:    func() []byte { return nil }, Logger: slog.New(slog.DiscardHandler),
	})
	t.Cleanup(func() {
		e.Close()
		e.Wait()
	})
	return e
}

func watchOf(k resource.AnyType, s Sink, name string) *machine.Watch {
	w := &machine.Watch{Owner: s, Type: &machine.Type{Owner: k, URL: url, NameField: 1}, Name: name}
	w.Wildcard = name == ""
	return w
}

func things(t *testing.T, version string, names ...string) []byte {
	t.Helper()
	r := &discoveryv3.DiscoveryResponse{VersionInfo: version, Nonce: "n" + version, TypeUrl: url}
	for _, name := range names {
		b := protowire.AppendTag(nil, 1, protowire.BytesType)
		r.Resources = append(r.Resources, &anypb.Any{TypeUrl: url, Value: protowire.AppendString(b, name)})
	}
	b, err := proto.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func numbered(n int) (names, values []string) {
	for i := range n {
		name := fmt.Sprintf("t%04d", i)
		names = append(names, name)
		values = append(values, name+"="+strings.ToUpper(name))
	}
	return names, values
}

// A large response is delivered chunk by chunk as it is decoded, in its order, and answered
// after the last; no more is decoded at a time than there are processors.
// spec: FC-1 TYPE-7
func TestChunks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := newWireConn()
		e := start(t, conn)
		slow, s := &slowKind{took: time.Millisecond}, &sink{}
		e.Start(watchOf(slow.kind(), s, ""))
		st := <-conn.streams
		if n := len(st.requests(t)); n != 1 {
			t.Fatalf("%d requests", n)
		}
		s.told()
		n := 512 * (1 + runtime.GOMAXPROCS(0)) // more chunks than decoders
		names, values := numbered(n)
		st.in <- things(t, "1", names...)

		var got []string
		steps := 0
		for len(got) < n {
			time.Sleep(100 * time.Millisecond)
			lines := s.told()
			if len(lines) > 0 {
				steps++
			}
			for _, l := range lines {
				if strings.Contains(l, "=") {
					got = append(got, l)
				}
			}
			if len(got) < n {
				if rs := st.requests(t); len(rs) != 0 {
					t.Fatalf("answered after %d of %d: %v", len(got), n, rs)
				}
				if slices.Contains(lines, "flush true") {
					t.Fatalf("a last flush after %d of %d", len(got), n)
				}
			}
		}
		if !slices.Equal(got, values) {
			t.Error("the values came in another order than on the wire")
		}
		if steps < 2 {
			t.Errorf("delivered in %d steps", steps)
		}
		if rs := st.requests(t); len(rs) != 1 || rs[0].VersionInfo != "1" {
			t.Errorf("answers: %v", rs)
		}
		if slow.most > runtime.GOMAXPROCS(0) {
			t.Errorf("%d decoded at a time, with %d processors", slow.most, runtime.GOMAXPROCS(0))
		}
	})
}

// If the stream dies under the decoding the values count and nothing is sent.
// spec: FC-1
func TestStreamDiesUnderDecoding(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := newWireConn()
		e := start(t, conn)
		slow, s := &slowKind{took: 10 * time.Millisecond}, &sink{}
		e.Start(watchOf(slow.kind(), s, ""))
		st := <-conn.streams
		st.requests(t)
		names, values := numbered(1000)
		st.in <- things(t, "1", names...)
		synctest.Wait()
		st.end <- errors.New("cut")
		time.Sleep(time.Minute)
		lines := s.told()
		got := slices.DeleteFunc(slices.Clone(lines), func(l string) bool { return !strings.Contains(l, "=") })
		if !slices.Equal(got, values) {
			t.Errorf("%d values, want %d in the order of the wire", len(got), len(values))
		}
		if last := lines[len(lines)-1]; last != "flush true" {
			t.Errorf("the end of the response is %q", last)
		}
		if rs := st.requests(t); len(rs) != 0 {
			t.Errorf("sent on a stream that is over: %v", rs)
		}
		again := <-conn.streams
		if rs := again.requests(t); len(rs) != 1 || rs[0].ResponseNonce != "" {
			t.Errorf("the new stream asks %v", rs)
		}
	})
}

// The held values that a late watch is told of end with a flush that is the last.
func TestCatchUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := newWireConn()
		e := start(t, conn)
		kind := (&slowKind{took: time.Millisecond}).kind()
		first, late := &sink{}, &sink{}
		e.Start(watchOf(kind, first, ""))
		st := <-conn.streams
		names, values := numbered(1500)
		st.requests(t)
		st.in <- things(t, "1", names...)
		time.Sleep(time.Minute)
		e.Start(watchOf(kind, late, ""))
		time.Sleep(time.Minute)
		lines := late.told()
		got := slices.DeleteFunc(slices.Clone(lines), func(l string) bool { return !strings.Contains(l, "=") })
		slices.Sort(got)
		if !slices.Equal(got, values) {
			t.Errorf("%d values, want %d", len(got), len(values))
		}
		if end := lines[len(lines)-2:]; !slices.Equal(end, []string{"5 *", "flush true"}) {
			t.Errorf("the end is %q", end)
		}
	})
}

// A connection that is slow to close delays neither the loop nor the next stream; Close
// waits for it.
func TestSlowConnClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conns := []*wireConn{newWireConn(), newWireConn()}
		conns[0].slow = 5 * time.Second
		made := 0
		e := startWith(t, func() (transport.Conn, error) {
			made++
			return conns[made-1], nil
		})
		kind := (&slowKind{}).kind()
		w := watchOf(kind, &sink{}, "a")
		e.Start(w)
		st := <-conns[0].streams
		st.in <- things(t, "1", "a")
		synctest.Wait()
		e.Post(machine.Stop{Watch: w})
		time.Sleep(time.Second + time.Millisecond) // past the linger
		began := time.Now()
		e.Start(watchOf(kind, &sink{}, "a"))
		<-conns[1].streams
		if n := connections(e); n != 1 || time.Since(began) != 0 {
			t.Errorf("%d connections, the new stream after %v", n, time.Since(began))
		}
		e.Close()
		select {
		case <-conns[0].closed:
		default:
			t.Error("Close did not wait for a connection that closes")
		}
	})
}

// What asks the loop sees all that the same goroutine asked for before.
func TestDumpSeesWatches(t *testing.T) {
	watches := 500
	if testing.Short() {
		watches = 100 // each dump has them all
	}
	synctest.Test(t, func(t *testing.T) {
		e := start(t, newWireConn())
		kind := (&slowKind{}).kind()
		for i := range watches {
			e.Start(watchOf(kind, &sink{}, fmt.Sprint("w", i)))
			if n := len(slices.Collect(e.Resources())); n != i+1 {
				t.Fatalf("after %d watches the dump has %d", i+1, n)
			}
		}
	})
}

// The end of the engine ends those who ask.
func TestAskWhileClosing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := start(t, newWireConn())
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				for range 100 {
					for range e.Resources() {
					}
				}
			})
		}
		e.Close()
		wg.Wait()
		if len(slices.Collect(e.Resources())) > 0 || e.Start(watchOf((&slowKind{}).kind(), &sink{}, "a")) {
			t.Error("a closed engine answers")
		}
	})
}

// Backoff that is reset behind the end of a stream ends the wait that follows from that, though
// both come round at once.
func TestResetBackoffBehindDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := newWireConn()
		e := start(t, conn)
		e.Start(watchOf((&slowKind{}).kind(), &sink{}, "a"))
		st := <-conn.streams
		synctest.Wait()
		began := time.Now()
		e.ask(func() {
			e.post(machine.Down{Ref: e.streams[0].ref, Kind: machine.FaultStream, Err: errors.New("cut")})
			e.ResetBackoff()
		})
		<-conn.streams
		if waited := time.Since(began); waited != 0 || st.ctx.Err() == nil {
			t.Errorf("the next attempt came after %v", waited)
		}
	})
}

// What is held is decoded for a watch that comes late where it is told: a decoder that has changed its mind costs that
// watch an error, and one that ends its goroutine does so once. Nothing is decoded for who does not listen any more.
//
// spec: WATCH-3 TYPE-7 H-12
func TestHeldIsDecodedForWhoListens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls, then := 0, func() error { return nil }
		kind := resource.Custom(url, resource.Options{}, func(_ resource.Source, b []byte) (string, error) {
			calls++
			return "good", then()
		})
		conn := newWireConn()
		e := start(t, conn)
		e.Start(watchOf(kind, &sink{}, "t"))
		st := <-conn.streams
		st.requests(t)
		st.in <- things(t, "1", "t")
		synctest.Wait()
		for _, tt := range []struct {
			what  string
			then  func() error
			deaf  bool
			calls int
			lines []string
		}{
			{"returns a value", func() error { return nil }, false, 1, []string{"t=good", "flush true"}},
			{"refuses", func() error { return errors.New("no") }, false, 1, []string{"3 t", "flush true"}},
			{"panics", func() error { panic("no") }, false, 1, []string{"3 t", "flush true"}},
			{"exits", func() error { runtime.Goexit(); return nil }, false, 1, []string{"3 t", "flush true"}},
			{"is not called", nil, true, 0, []string{"t=<nil>", "flush true"}},
		} {
			calls, then = 0, tt.then
			late := &sink{deaf: tt.deaf}
			e.Start(watchOf(kind, late, "t"))
			synctest.Wait()
			if lines := late.told(); calls != tt.calls || !slices.Equal(lines, tt.lines) {
				t.Errorf("a decoder that %s is called %d times, and a late watch is told %q", tt.what, calls, lines)
			}
		}
		calls, then = 0, func() error { return nil }
		e.Start(watchOf(kind, &sink{}, "t"), watchOf(kind, &sink{}, "t"), watchOf(kind, &sink{}, "t"))
		if synctest.Wait(); calls != 1 {
			t.Errorf("for three watches that come together the decoder is called %d times, want once", calls)
		}
	})
}
