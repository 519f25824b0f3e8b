package client_test

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/resource/eds"
	"github.com/xdswatch/xdswatch/testutil"
	"github.com/xdswatch/xdswatch/watcher"
)

// await takes events until one is as wanted.
func await(t *testing.T, events <-chan client.Event[any], want string) {
	t.Helper()
	deadline := time.After(time.Minute)
	var seen []string
	for {
		select {
		case ev := <-events:
			text := ev.Kind.String() + " " + ev.Name
			if c, ok := ev.Value.(interface{ GetAltStatName() string }); ok {
				text += " " + c.GetAltStatName()
			}
			if text == want {
				return
			}
			seen = append(seen, text)
		case <-deadline:
			t.Fatalf("no %q, only %q", want, seen)
		}
	}
}

// Against the server of go-control-plane on TCP, in each variant: values, changes, absence,
// restarts with and without what it knew.
func TestRealServer(t *testing.T) {
	for _, variant := range []client.Variant{client.VariantSotW, client.VariantDelta} {
		for _, streams := range []client.Streams{client.StreamsAggregated, client.StreamsPerType} {
			t.Run(fmt.Sprintf("variant %d, streams %d", variant, streams), func(t *testing.T) {
				realServer(t, variant, streams)
			})
		}
	}
	noLeak(t)
}

func realServer(t *testing.T, variant client.Variant, streams client.Streams) {
	srv := testutil.StartManagementServer(t, testutil.ManagementConfig{})
	must(t, srv.Set("1", cluster("a", "one"), cluster("b", "one"), assignment("e")))
	boot, err := bootstrap.Server(srv.Addr())
	must(t, err)
	c, err := client.New(client.Config{
		Bootstrap: boot, Variant: variant, Streams: streams,
		Backoff: func() backoff.BackOff { return backoff.NewConstantBackOff(20 * time.Millisecond) },
	})
	must(t, err)
	defer func() {
		c.Close()
		<-c.Done()
	}()

	events := make(chan client.Event[any], 1000)
	hear := func(ev client.Event[any]) { events <- ev }
	ctx := context.Background()
	_, err = c.WatchAll(ctx, cds.Type, "*", func(b client.Batch[any]) {
		for _, ev := range b.Events {
			hear(ev)
		}
	})
	must(t, err)
	await(t, events, "synced *")
	_, err = c.Watch(ctx, eds.Type, "e", hear)
	must(t, err)
	await(t, events, "updated e")
	must(t, srv.Set("2", cluster("a", "two"), cluster("c", "two"), assignment("e")))
	await(t, events, "does not exist b")
	must(t, c.Ready(ctx))
	ev, err := watcher.Get(ctx, c, cds.Type, "a")
	if err != nil || ev.AltStatName != "two" {
		t.Errorf("Get gave %v, %v", ev, err)
	}
	lookUp(t, c, srv)

	srv.Stop()
	must(t, srv.Set("3", cluster("a", "three"), assignment("e")))
	must(t, srv.Restart(true))
	await(t, events, "updated a three")
	srv.Stop()
	must(t, srv.Restart(false))
	must(t, srv.Set("4", assignment("e")))
	await(t, events, "does not exist a")
}

// lookUp gets what nobody watches.
func lookUp(t *testing.T, c *client.Client, srv *testutil.ManagementServer) {
	t.Helper()
	for range 3 {
		e, err := watcher.Get(t.Context(), c, eds.Type, "e")
		if err != nil || e.ClusterName != "e" {
			t.Errorf("Get gave %v, %v", e, err)
		}
	}
	must(t, srv.Set("2b", cluster("a", "two"), cluster("c", "two"), assignment("e"), assignment("f")))
	f, err := watcher.Get(t.Context(), c, eds.Type, "f")
	if err != nil || f.ClusterName != "f" {
		t.Errorf("Get gave %v, %v", f, err)
	}
}

// A server of go-control-plane that is asked for everything by the name "*", since the program
// insists, takes it for the name of a resource, and repeats without end what it has: it is
// answered a few times a second, and the log says why nothing comes.
// spec: S-2 P-3
func TestRealServerRepeatsItself(t *testing.T) {
	var requests atomic.Int64
	srv := testutil.StartManagementServer(t, testutil.ManagementConfig{OnRequest: func(*testutil.Request) { requests.Add(1) }})
	must(t, srv.Set("1", cluster("a", "one"), cluster("b", "one")))
	boot, err := bootstrap.Server(srv.Addr())
	must(t, err)
	log := &logBuffer{}
	c, err := client.New(client.Config{Bootstrap: boot, Logger: slog.New(slog.NewTextHandler(log, nil))})
	must(t, err)
	defer c.Close()
	events := make(chan client.Event[any], 10)
	_, err = c.WatchAll(t.Context(), cds.Type, "*", func(b client.Batch[any]) {
		for _, ev := range b.Events {
			events <- ev
		}
	}, client.ExplicitWildcard())
	must(t, err)
	await(t, events, "synced *")
	for deadline := time.Now().Add(time.Minute); len(log.lines("seems to take the wildcard's name")) == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the log does not say why")
		}
	}
	log.holds(t, "repeats one response without end")
	if n := requests.Load(); n > 30 {
		t.Errorf("%d requests", n)
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
