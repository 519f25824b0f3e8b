// Package realtest is what the suites against real management servers share: clients that leave
// nothing behind, watches whose events are awaited, and whole configurations resolved by a view.
package realtest

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v4"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource"
)

// Patience is how long a test waits for what must come.
const Patience = time.Minute

// Must ends the test with an error.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Client makes a client that connects again at once. At the end of the test it is closed, and
// no goroutine may run code of it then.
func Client(t testing.TB, config client.Config) *client.Client {
	t.Helper()
	config.Backoff = func() backoff.BackOff { return backoff.NewConstantBackOff(20 * time.Millisecond) }
	c, err := client.New(config)
	Must(t, err)
	t.Cleanup(func() {
		c.Close()
		<-c.Done()
		noLeak(t)
	})
	return c
}

func noLeak(t testing.TB) {
	t.Helper()
	buf := make([]byte, 4<<20)
	for range 100 {
		stacks := string(buf[:runtime.Stack(buf, true)])
		if !strings.Contains(stacks, "internal/engine.") && !strings.Contains(stacks, "xdswatch/transport.") {
			return
		}
		runtime.Gosched()
	}
	t.Errorf("goroutines left behind:\n%s", buf)
}

// Record is what a watch hears.
type Record chan client.Event[any]

// Watch watches a name, or "*".
func Watch(t testing.TB, c *client.Client, kind resource.AnyType, name string, opts ...client.WatchOption) Record {
	t.Helper()
	r := make(Record, 10_000)
	var err error
	if name == "*" {
		_, err = c.WatchAll(t.Context(), kind, name, func(b client.Batch[any]) {
			for _, ev := range b.Events {
				r <- ev
			}
		}, opts...)
	} else {
		_, err = c.Watch(t.Context(), kind, name, func(ev client.Event[any]) { r <- ev }, opts...)
	}
	Must(t, err)
	return r
}

// Await takes events until one is as wanted: its kind and name, then the port of the first endpoint
// of each locality of an assignment; of a cluster perhaps its alt_stat_name.
func (r Record) Await(t testing.TB, want string) client.Event[any] {
	t.Helper()
	deadline := time.After(Patience)
	var seen []string
	for {
		select {
		case ev := <-r:
			text := describe(&ev)
			if text == want {
				return ev
			}
			if c, ok := ev.Value.(interface{ GetAltStatName() string }); ok {
				if text += " " + c.GetAltStatName(); text == want {
					return ev
				}
			}
			seen = append(seen, text)
		case <-deadline:
			t.Fatalf("no %q, only %q", want, seen)
		}
	}
}

func describe(ev *client.Event[any]) string {
	text := ev.Kind.String() + " " + ev.Name
	if a, ok := ev.Value.(*endpointv3.ClusterLoadAssignment); ok {
		for _, l := range a.GetEndpoints() {
			text += fmt.Sprint(" ", l.GetLbEndpoints()[0].GetEndpoint().GetAddress().GetSocketAddress().GetPortValue())
		}
	}
	return text
}
