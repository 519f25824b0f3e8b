package view

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v4"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/proto"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/testutil"
)

// site is a real management server and a client of it.
type site struct {
	t   *testing.T
	srv *testutil.ManagementServer
	c   *client.Client
}

func newSite(t *testing.T, variant client.Variant, ads bool) *site {
	t.Helper()
	srv := testutil.StartManagementServer(t, testutil.ManagementConfig{ADS: ads})
	boot, err := bootstrap.Server(srv.Addr())
	must(t, err)
	c, err := client.New(client.Config{
		Bootstrap: boot, Variant: variant,
		Node: func(n *corev3.Node) *corev3.Node {
			n.Id = "n" // the bootstrap has none
			return n
		},
		Backoff: func() backoff.BackOff { return backoff.NewConstantBackOff(20 * time.Millisecond) },
	})
	must(t, err)
	t.Cleanup(func() {
		c.Close()
		<-c.Done()
	})
	return &site{t, srv, c}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// res makes a resource of a line as in scripts: TYPE NAME WORD …
func res(t testing.TB, line string) proto.Message {
	words := strings.Fields(line)
	return build(t, words[0], words[1], words[2:])
}

func (s *site) set(version string, lines ...string) {
	s.t.Helper()
	var all []proto.Message
	for _, line := range lines {
		all = append(all, res(s.t, line))
	}
	must(s.t, s.srv.Set(version, all...))
}

func (s *site) view(root Root, config Config) *View {
	s.t.Helper()
	v, err := New(s.t.Context(), s.c, root, config)
	must(s.t, err)
	s.t.Cleanup(v.Stop)
	return v
}

// reach waits for a snapshot.
func reachSnapshot(t testing.TB, v *View, what string, ok func(*Snapshot) bool) *Snapshot {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for s := range v.Snapshots(ctx) {
		if ok(s) {
			return s
		}
	}
	t.Fatalf("no snapshot with %s: %v, waiting for %v", what, show(v.Snapshot()), v.Waiting())
	return nil
}

// variants runs a test against each kind of real server.
func variants(t *testing.T, test func(*testing.T, *site)) {
	for _, variant := range []client.Variant{client.VariantSotW, client.VariantDelta} {
		for _, ads := range []bool{false, true} {
			t.Run(fmt.Sprintf("variant %d, ads %v", variant, ads), func(t *testing.T) { test(t, newSite(t, variant, ads)) })
		}
	}
}

// Pushes that replace clusters, as a server makes them that removes a cluster before its routes
// change, never publish a route without a cluster, or a cluster without endpoints. The last
// snapshot is the truth.
//
// spec: VIEW-14, VIEW-15, VIEW-20, VIEW-27, VIEW-44, MBB-1, MBB-2
func TestPushes(t *testing.T) {
	variants(t, func(t *testing.T, s *site) {
		push := func(i int) {
			a, b, r := fmt.Sprintf("a%d", i), fmt.Sprintf("b%d", i/2), fmt.Sprintf("r%d", i/3)
			s.set(fmt.Sprint(i), "lds l rds:"+r, fmt.Sprintf("rds %s *=%s,%s", r, a, b),
				"cds "+a+" eds", "cds "+b+" eds", "eds "+a+" 1.1.1.1*"+fmt.Sprint(i+1), "eds "+b+" 2.2.2.2*"+fmt.Sprint(i+1))
		}
		push(0)
		var mu sync.Mutex
		var last *Snapshot
		v := s.view(Root{Type: RootListener, Name: "l"}, Config{OnSnapshot: func(s *Snapshot) {
			mu.Lock()
			defer mu.Unlock()
			if last != nil && s.Serial != last.Serial+1 {
				t.Errorf("snapshot %d after %d", s.Serial, last.Serial)
			}
			last = s
			checkWhole(t, s)
		}})
		must(t, v.Ready(t.Context()))
		for i := 1; i <= 40; i++ {
			push(i)
			if i%7 == 0 {
				reachSnapshot(t, v, "the routes", func(s *Snapshot) bool { return s.Cluster(fmt.Sprintf("a%d", i)) != nil })
			}
		}
		end := reachSnapshot(t, v, "the last push", func(s *Snapshot) bool {
			a, b := s.Cluster("a40"), s.Cluster("b20")
			return a != nil && b != nil && s.Len() == 2 && showEndpoints(a.Endpoints) == "[1.1.1.1*41]" && showEndpoints(b.Endpoints) == "[2.2.2.2*41]"
		})
		if end.Routes[0].Name != "r13" || end.Cluster("a40").Server.URI == "" {
			t.Errorf("the last snapshot is %v", show(end))
		}
	})
}

// checkWhole looks whether each cluster that a route names can be used.
func checkWhole(t testing.TB, s *Snapshot) {
	if s.Err != nil {
		t.Errorf("snapshot %d: %v", s.Serial, s.Err)
	}
	for rc, vh := range s.VirtualHosts() {
		for _, r := range vh.GetRoutes() {
			name := r.GetRoute().GetCluster()
			if c := s.Cluster(name); c == nil || c.Status() != StatusOK || c.Endpoints == nil {
				t.Errorf("snapshot %d: %s names %q, which cannot be used: %v", s.Serial, rc.Name, name, show(s))
			}
		}
	}
}

// While the server is away the last snapshot stays, also if it went in the middle of a push; then
// the view goes on.
//
// spec: WARM-f, VIEW-23
func TestServerAway(t *testing.T) {
	variants(t, func(t *testing.T, s *site) {
		s.set("1", "lds l rds:r", "rds r *=a", "cds a eds", "eds a 1.1.1.1")
		v := s.view(Root{Type: RootListener, Name: "l"}, Config{OnSnapshot: func(s *Snapshot) { checkWhole(t, s) }})
		must(t, v.Ready(t.Context()))
		s.srv.Stop()
		reachSnapshot(t, v, "the note", func(s *Snapshot) bool { return s.Note(s.Cluster("a")) != nil && s.Listener.Note != nil })
		release := v.Hold("b")
		defer release()
		s.set("2", "lds l rds:r", "rds r *=b", "cds b eds", "eds b 2.2.2.2")
		must(t, s.srv.Restart(true))
		reachSnapshot(t, v, "the new routes", func(s *Snapshot) bool {
			c := s.Cluster("b")
			return s.Cluster("a") == nil && c != nil && c.Endpoints != nil && s.Note(c) == nil
		})
	})
}

// Who is ready can use what OnSnapshot has made of the snapshot.
func TestReadyAfterOnSnapshot(t *testing.T) {
	s := newSite(t, client.VariantDelta, false)
	s.set("1", "lds l rds:r", "rds r *=a", "cds a static:1.1.1.1")
	var used atomic.Pointer[Snapshot]
	v := s.view(Root{Type: RootListener, Name: "l"}, Config{OnSnapshot: func(s *Snapshot) {
		time.Sleep(50 * time.Millisecond) // as a program compiles it
		used.Store(s)
	}})
	must(t, v.Ready(t.Context()))
	if used.Load() == nil {
		t.Error("the view is ready, and OnSnapshot has not returned")
	}
	v.Stop()
	if err := v.Ready(t.Context()); !errors.Is(err, client.ErrStopped) {
		t.Errorf("after the end: %v", err)
	}
}

// Ready says what it waited for.
func TestReadyError(t *testing.T) {
	s := newSite(t, client.VariantDelta, false)
	s.set("1", "lds l rds:r")
	v := s.view(Root{Type: RootListener, Name: "l"}, Config{})
	for len(v.Waiting()) != 1 || v.Waiting()[0].Name != "r" {
		time.Sleep(time.Millisecond)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := v.Ready(ctx)
	var nr *NotReadyError
	if !errors.As(err, &nr) || !errors.Is(err, context.Canceled) || nr.Count != 1 || nr.Waiting[0].Name != "r" || !nr.Waiting[0].Blocking {
		t.Fatalf("got %v", err)
	}
	for _, want := range []string{`view of "l" for node "n"`, `RouteConfiguration "r"`, "no answer yet", `named by Listener "l"`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q lacks %q", err, want)
		}
	}
}

// What is wrong with the root is told once, though the root is waited for too.
func TestReadyErrorOnce(t *testing.T) {
	const typ, name = "type.googleapis.com/envoy.config.listener.v3.Listener", "l"
	fault := &client.ResourceError{Kind: client.ErrorConnection, Type: typ, Name: name, Err: errors.New("it is away")}
	for _, reason := range []string{fault.Error(), "no answer yet"} {
		e := &NotReadyError{Root: Root{Type: RootListener, Name: name}, Err: context.Canceled, Fault: fault, Count: 1, Waiting: []Waiting{{Type: typ, Name: name, Reason: reason}}}
		if n := strings.Count(e.Error(), "it is away"); n != 1 || !errors.Is(e, fault) {
			t.Errorf("%d times in %v", n, e)
		}
	}
}

// The error of a part that has no source of configuration says who asks.
//
// spec: ERR-11
func TestNoSourceError(t *testing.T) {
	s := newSite(t, client.VariantDelta, false)
	s.set("1", "cds c eds path:/x")
	v := s.view(Root{Type: RootCluster, Name: "c"}, Config{})
	must(t, v.Ready(t.Context()))
	for _, want := range []string{`ClusterLoadAssignment "c" for node "n": `, "Config.Source"} {
		if note := fmt.Sprint(v.Snapshot().Cluster("c").Note()); !strings.Contains(note, want) {
			t.Errorf("%q lacks %q", note, want)
		}
	}
}

// A root that cannot be is an error at once.
//
// spec: VIEW-1
func TestBadRoots(t *testing.T) {
	s := newSite(t, client.VariantDelta, false)
	for _, root := range []Root{{}, {Type: RootListener}, {Type: 9, Name: "x"}, {Type: RootCluster, Name: "c", Host: "h"}} {
		if v, err := New(t.Context(), s.c, root, Config{}); err == nil {
			v.Stop()
			t.Errorf("%v is a root", root)
		}
	}
	//lint:ignore SA1012 on purpose
	if _, err := New(nil, s.c, Root{Type: RootCluster, Name: "c"}, Config{}); !errors.Is(err, client.ErrNilContext) {
		t.Errorf("without a context: %v", err)
	}
	s.c.Close()
	<-s.c.Done()
	if _, err := New(t.Context(), s.c, Root{Type: RootCluster, Name: "c"}, Config{}); !errors.Is(err, client.ErrClosed) {
		t.Errorf("of a closed client: %v", err)
	}
}

// Names that cannot be watched are errors of their parts.
func TestUnknownAuthority(t *testing.T) {
	s := newSite(t, client.VariantDelta, false)
	const far = "xdstp://nowhere/envoy.config.cluster.v3.Cluster/far"
	s.set("1", "lds l rds:r", "rds r *=near,"+far, "cds near eds path:/nowhere")
	v := s.view(Root{Type: RootListener, Name: "l"}, Config{})
	must(t, v.Ready(t.Context()))
	snap := v.Snapshot()
	if c := snap.Cluster(far); c.Status() != StatusError || !strings.Contains(c.Err().Error(), "nowhere") {
		t.Errorf("of another authority: %v, %v", c.Status(), c.Err())
	}
	if c := snap.Cluster("near"); c.Status() != StatusOK || c.Note() == nil || !strings.Contains(c.Note().Error(), "config source") {
		t.Errorf("of another source: %v, %v", c.Status(), c.Note())
	}
}

// The end of a view: by Stop, its context, its client, and a handler that ends its goroutine.
func TestEnd(t *testing.T) {
	s := newSite(t, client.VariantDelta, false)
	s.set("1", "lds l rds:r", "rds r *=a", "cds a static:1.1.1.1")
	root := Root{Type: RootListener, Name: "l"}
	ended := func(v *View, want error) {
		t.Helper()
		<-v.Done()
		if !errors.Is(v.Err(), want) {
			t.Errorf("it ended with %v, want %v", v.Err(), want)
		}
		if _, err := v.Cluster(t.Context(), "other"); !errors.Is(err, want) {
			t.Errorf("Cluster after the end: %v", err)
		}
	}
	v := s.view(root, Config{})
	must(t, v.Ready(t.Context()))
	v.Stop()
	v.Stop()
	ended(v, client.ErrStopped)
	if v.Snapshot() == nil {
		t.Error("the snapshot is gone")
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	v, err := New(ctx, s.c, root, Config{})
	must(t, err)
	cause := errors.New("enough")
	cancel(cause)
	ended(v, cause)
	v = s.view(root, Config{OnSnapshot: func(*Snapshot) { runtime.Goexit() }})
	ended(v, client.ErrHandlerExited)
	v = s.view(root, Config{})
	must(t, v.Ready(t.Context()))
	s.c.Close()
	ended(v, client.ErrClosed)
}

// What is wrong with a root's name is known when New returns, and told in order.
func TestRefusedRoot(t *testing.T) {
	s := newSite(t, client.VariantDelta, false)
	told := make(chan string, 10)
	v := s.view(Root{Type: RootCluster, Name: "xdstp://nowhere/envoy.config.cluster.v3.Cluster/c"}, Config{
		OnSnapshot: func(s *Snapshot) { told <- fmt.Sprintf("an error: %v", s.Err != nil) },
		OnWaiting:  func(_ Root, ws []Waiting) { told <- fmt.Sprintf("waiting for %d", len(ws)) },
	})
	if s := v.Snapshot(); s == nil || s.Err == nil {
		t.Errorf("New has returned, and the snapshot is %v", show(s))
	}
	for _, want := range []string{"waiting for 0", "an error: true", "waiting for 0"} {
		if got := <-told; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// Every listener has a view of its own; one that waits does not hold back another.
func TestListeners(t *testing.T) {
	variants(t, func(t *testing.T, s *site) {
		s.set("1", "lds one rds:r", "lds two tcp:a", "rds r *=a", "cds a static:1.1.1.1")
		removed, all := make(chan string, 10), make(chan *Listeners, 1)
		var known sync.Map
		l, err := NewListeners(t.Context(), s.c, Config{OnWaiting: func(root Root, _ []Waiting) {
			l := <-all
			all <- l
			if _, again := known.LoadOrStore(root.Name, true); !again && l.View(root.Name) == nil {
				t.Errorf("%s is told of before it is known", root.Name)
			}
		}}, func(name string) { removed <- name })
		must(t, err)
		all <- l
		defer l.Stop()
		must(t, l.Ready(t.Context()))
		var names []string
		for name, v := range l.All() {
			names = append(names, name)
			if s := v.Snapshot(); s.Cluster("a").Status() != StatusOK {
				t.Errorf("%s: %v", name, show(s))
			}
		}
		if len(names) != 2 || names[0] != "one" || names[1] != "two" {
			t.Errorf("listeners %q", names)
		}
		two := l.View("two")
		s.set("2", "lds one rds:r", "lds three rds:r", "rds r *=a,b", "cds a static:1.1.1.1", "cds b static:2.2.2.2")
		if name := <-removed; name != "two" {
			t.Errorf("%s was removed", name)
		}
		<-two.Done()
		for l.View("three") == nil {
			time.Sleep(time.Millisecond)
		}
		reachSnapshot(t, l.View("three"), "both clusters", func(s *Snapshot) bool { return s.Len() == 2 })
		reachSnapshot(t, l.View("one"), "both clusters", func(s *Snapshot) bool { return s.Len() == 2 })
		must(t, l.Err())
		l.Stop()
		<-l.Done()
		if err := l.Err(); !errors.Is(err, client.ErrStopped) {
			t.Errorf("it ended because of %v", err)
		}
	})
}

// Stop ends the view of a listener that comes at that moment too.
func TestListenersStopped(t *testing.T) {
	s := newSite(t, client.VariantSotW, true)
	s.set("1", "lds one tcp:a", "lds two tcp:a", "cds a static:1.1.1.1")
	begun, proceed := make(chan struct{}), make(chan struct{})
	var once sync.Once
	l, err := NewListeners(t.Context(), s.c, Config{OnWaiting: func(Root, []Waiting) {
		once.Do(func() {
			close(begun)
			<-proceed
		})
	}}, nil)
	must(t, err)
	<-begun
	l.Stop()
	close(proceed)
	<-l.Done()
	for name, v := range l.All() {
		select {
		case <-v.Done():
			if !errors.Is(v.Err(), client.ErrStopped) {
				t.Errorf("%s: %v", name, v.Err())
			}
		case <-time.After(time.Minute):
			t.Errorf("the view of %s lives on", name)
		}
	}
}
