package view

import (
	"context"
	"errors"
	"log"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/proto"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource/cds"
)

// Nothing is called any more once Stop has returned, not even what New has left to be told: here that the root is waited for,
// and that it cannot be had.
func TestStoppedAtOnce(t *testing.T) {
	s := newSite(t, client.VariantDelta, false)
	var v *View
	var calls atomic.Int32
	made := make(chan bool)
	v = s.view(Root{Type: RootCluster, Name: "xdstp://nowhere/envoy.config.cluster.v3.Cluster/c"}, Config{
		OnWaiting: func(Root, []Waiting) {
			calls.Add(1)
			<-made
			v.Stop()
		},
		OnSnapshot: func(*Snapshot) { calls.Add(1) },
	})
	close(made)
	<-v.Done()
	s.c.Close()
	<-s.c.Done()
	if n := calls.Load(); n != 1 {
		t.Errorf("%d calls, want the one that stopped it", n)
	}
}

// The functions of the views of all listeners are inside the handler of these: they may not wait for the client.
func TestListenersInHandler(t *testing.T) {
	s := newSite(t, client.VariantDelta, false)
	s.set("1", "lds l") // without children, whose news would come in handlers of their own
	got := make(chan error, 100)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	asks := func() {
		_, err := s.c.Get(ctx, cds.Type, "not held")
		got <- err
	}
	all, err := NewListeners(t.Context(), s.c, Config{
		OnSnapshot: func(*Snapshot) { asks() }, OnWaiting: func(Root, []Waiting) { asks() },
	}, nil)
	must(t, err)
	defer all.Stop()
	for range 2 { // what is waited for at first, and the value
		if err := <-got; !errors.Is(err, client.ErrInHandler) {
			t.Errorf("Get inside a handler: %v", err)
		}
	}
}

// A function of Config that panics or ends its goroutine, whichever that is, ends the view and nothing else: no lock is
// kept, the cause is logged, and the program goes on.
func TestPanics(t *testing.T) {
	s := newSite(t, client.VariantDelta, false)
	s.set("1", "lds l rds:r", "rds r *=a", "cds a static:1.1.1.1", "cds b static:1.1.1.2")
	root := Root{Type: RootListener, Name: "l"}
	logged := make(chan string, 10)
	// slog.SetDefault points package log there as well, and takes back neither that nor its flags.
	before, writer, flags := slog.Default(), log.Writer(), log.Flags()
	t.Cleanup(func() {
		slog.SetDefault(before)
		log.SetOutput(writer)
		log.SetFlags(flags)
	})
	slog.SetDefault(slog.New(slog.NewTextHandler(writerFunc(func(b []byte) (int, error) {
		logged <- string(b)
		return len(b), nil
	}), nil)))
	ended := func(v *View, cause string) {
		t.Helper()
		<-v.Done()
		p, panicked := errors.AsType[*client.PanicError](v.Err())
		switch {
		case !panicked && !(cause == "runtime.Goexit" && errors.Is(v.Err(), client.ErrHandlerExited)):
			t.Errorf("it ended with %v, want %q", v.Err(), cause)
		case panicked && (!strings.Contains(p.Error(), cause) || !strings.Contains(string(p.Stack), "view.TestPanics")):
			t.Errorf("it ended with %v, want %q; the stack is %s", p, cause, p.Stack)
		}
		v.Dump()
		v.Hold("c")()
		select {
		case line := <-logged:
			if !strings.Contains(line, cause) || !strings.Contains(line, "view.TestPanics") {
				t.Errorf("the log lacks %q or the stack: %s", cause, line)
			}
		case <-time.After(10 * time.Second):
			t.Errorf("the log lacks %q", cause)
		}
	}
	ended(s.view(root, Config{Hooks: []Hook{{
		Message: (*routev3.RouteConfiguration)(nil), Find: func(proto.Message, func(Dependency)) { panic("in a hook") },
	}}}), "in a hook")

	calls := 0
	v := s.view(root, Config{OnSnapshot: func(*Snapshot) {
		if calls++; calls > 1 {
			panic("after a hold")
		}
	}})
	must(t, v.Ready(t.Context()))
	v.Hold("b")
	ended(v, "panicked: after a hold")
	must(t, s.view(root, Config{}).Ready(t.Context()))

	// The other listeners go on, and new ones come.
	s.set("2", "lds exits", "lds panics", "lds other")
	all, err := NewListeners(t.Context(), s.c, Config{OnSnapshot: func(s *Snapshot) {
		switch s.Root.Name {
		case "exits":
			runtime.Goexit()
		case "panics":
			panic("of one listener")
		}
	}}, nil)
	must(t, err)
	defer all.Stop()
	<-all.Synced()
	ended(all.View("exits"), "runtime.Goexit")
	ended(all.View("panics"), "panicked: of one listener")
	must(t, all.View("other").Ready(t.Context()))
	s.set("3", "lds other", "lds late")
	for all.View("late") == nil && all.Err() == nil {
		time.Sleep(time.Millisecond)
	}
	must(t, all.Err())
	must(t, all.View("late").Ready(t.Context()))
}

// New calls no function of Config: its caller may hold what they wait for, and what they do wrong is not the caller's.
func TestNewCallsNothing(t *testing.T) {
	s := newSite(t, client.VariantDelta, false)
	s.set("1", "lds l tcp:a", "cds a static:1.1.1.1")
	root := Root{Type: RootListener, Name: "l"}
	for what, fails := range map[string]func(){"panics": func() { panic("ouch") }, "ends its goroutine": runtime.Goexit, "returns": func() {}} {
		held, returned := make(chan struct{}), make(chan *View, 1)
		var waits [][]Waiting
		go func() {
			defer close(returned)
			v, err := New(t.Context(), s.c, root, Config{OnWaiting: func(_ Root, ws []Waiting) {
				<-held
				waits = append(waits, ws)
				fails()
			}})
			if err == nil {
				returned <- v
			}
		}()
		var v *View
		select {
		case v = <-returned:
		case <-time.After(10 * time.Second):
			t.Errorf("a function %s: New waits for it", what)
		}
		if v != nil && len(v.Waiting()) != 1 {
			t.Errorf("a function %s: New has returned, and the root is not watched", what)
		}
		close(held)
		switch {
		case v == nil:
			t.Errorf("a function %s: New did not return", what)
			continue
		case what == "returns":
			must(t, v.Ready(t.Context()))
			v.Stop()
		}
		<-v.Done()
		if len(waits) == 0 || len(waits[0]) != 1 || waits[0][0].Name != "l" {
			t.Errorf("a function %s: it was told %v", what, waits)
		}
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

// OnSnapshot may call the view, and what it holds there stays.
func TestHandlerCalls(t *testing.T) {
	s := newSite(t, client.VariantSotW, false)
	s.set("1", "lds l rds:r", "rds r *=a", "cds a static:1.1.1.1", "cds h static:9.9.9.9")
	var v *View
	got := make(chan *View, 1)
	var once sync.Once
	v = s.view(Root{Type: RootListener, Name: "l"}, Config{OnSnapshot: func(snap *Snapshot) {
		once.Do(func() {
			v := <-got
			v.Hold("h")
			v.Waiting()
			v.Dump()
			if v.Snapshot() != snap {
				t.Error("the newest snapshot is another")
			}
		})
	}})
	got <- v
	reachSnapshot(t, v, "the held cluster", func(s *Snapshot) bool { return s.Cluster("h") != nil && s.Cluster("h").Status() == StatusOK })
	for _, w := range v.Dump().Watched {
		if w.Name == "h" && w.Holds != 1 {
			t.Errorf("%d holds", w.Holds)
		}
	}
}
