package client_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/internal/heapsize"
	"github.com/xdswatch/xdswatch/resource"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/testutil"
	"github.com/xdswatch/xdswatch/transport"
)

// badCluster is refused by its validation.
func badCluster(name, alt string) *clusterv3.Cluster {
	c := cluster(name, alt)
	c.LbPolicy = -1
	return c
}

// A server that answers each request at once with the same response, refused or empty, is
// answered a few times a second: up to ten, which are no storm to the client, since so few may
// come of a machine that has much else to do. So does go-control-plane's what was refused, in state of the
// world. Over TCP, in real time, all servers at once: the first second is for the client to notice, the
// next three are counted.
// spec: S-1 S-2
func TestRepeatedResponses(t *testing.T) {
	if testing.Short() {
		t.Skip("long: four seconds of responses")
	}
	t.Parallel()
	url := cds.Type.TypeURL()
	answers := map[string]proto.Message{
		"refused":       testutil.SotW(url, "1", "n", badCluster("a", "")),
		"empty":         testutil.SotW(url, "1", "n"),
		"refused delta": testutil.Delta(url, "n", []*discoveryv3.Resource{testutil.Wrapped("a", "1", badCluster("a", ""))}),
		"empty delta":   testutil.Delta(url, "n", nil),
	}
	const quiet = "real delta" // it does not repeat itself
	requests := map[string]*atomic.Int64{"real": {}, quiet: {}}
	watch := func(name, addr string) {
		boot, err := bootstrap.Server(addr)
		must(t, err)
		config := client.Config{Bootstrap: boot}
		if strings.HasSuffix(name, "delta") {
			config.Variant = client.VariantDelta
		}
		c, err := client.New(config)
		must(t, err)
		t.Cleanup(func() { c.Close() })
		_, err = c.Watch(context.Background(), cds.Type, "a", func(client.Event[any]) {})
		must(t, err)
	}
	for name, n := range requests {
		srv := testutil.StartManagementServer(t, testutil.ManagementConfig{OnRequest: func(*testutil.Request) { n.Add(1) }})
		must(t, srv.Set("1", badCluster("a", "")))
		watch(name, srv.Addr())
	}
	for name, answer := range answers {
		n := new(atomic.Int64)
		requests[name] = n
		srv, err := testutil.ListenServer("127.0.0.1:0", testutil.Unrecorded(), testutil.OnRequest(func(st *testutil.Stream, _ *testutil.Request) {
			n.Add(1)
			_ = st.Send(answer) // a stream that is over needs none
		}))
		must(t, err)
		defer srv.Close()
		watch(name, srv.Target())
	}
	const most, seconds = 10, 3
	<-time.After(time.Second)
	before := map[string]int64{}
	for name, n := range requests {
		before[name] = n.Load()
	}
	<-time.After(seconds * time.Second)
	for name, n := range requests {
		later := n.Load() - before[name]
		t.Logf("%s: %d requests in the first second, %d in the next %d", name, before[name], later, seconds)
		if (later == 0) != (name == quiet) || later > most*seconds {
			t.Errorf("%s: %d requests in %d seconds, want some and at most %d a second", name, later, seconds, most)
		}
		if before[name] > 30 {
			t.Errorf("%s: %d requests in the first second", name, before[name])
		}
	}
}

// flood sends messages without waiting for anything, until the stream is over or done, and
// counts them.
func flood(st *testutil.Stream, n int, make func(i int) proto.Message) *atomic.Int64 {
	var sent atomic.Int64
	go func() {
		for i := range n {
			if st.Send(make(i)) != nil {
				return
			}
			sent.Add(1)
		}
	}()
	return &sent
}

// buffered is how many bytes of responses may be on their way between server and client:
// flow control of HTTP/2 and the connection in memory, both ways.
const buffered = 4 * 64 << 10

// A flood of empty delta responses is read only as fast as its answers are let go, so that
// the answers that are owed do not grow.
// spec: S-2
func TestEmptyFlood(t *testing.T) {
	var read atomic.Int64
	inBubble(t, func(t *testing.T, r *rig) {
		r.watch("a")
		st := r.accept()
		r.request(st, "cds [a]")
		empty := testutil.Delta(cds.Type.TypeURL(), "n", nil)
		sent := flood(st, 1_000_000, func(int) proto.Message { return empty })
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if n := len(st.Requests()); n > 70 {
			t.Errorf("%d requests in ten seconds", n)
		}
		if n := read.Load(); n > 200 {
			t.Errorf("%d responses were read in ten seconds, with %d answers", n, len(st.Requests()))
		}
		if n := sent.Load(); n > 200+buffered/int64(proto.Size(empty)) {
			t.Errorf("%d responses were taken in ten seconds", n)
		}
	}, delta, func(c *client.Config) { c.Trace = &client.Trace{Response: func(client.ResponseInfo) { read.Add(1) }} })
}

// Responses of types that nobody asked for cost nothing that stays, and no answer.
// spec: TYPE-1
func TestForeignTypesFlood(t *testing.T) {
	if testing.Short() {
		t.Skip("long: a flood of types")
	}
	inBubble(t, func(t *testing.T, r *rig) {
		_, rec := r.watch("a")
		st := r.accept()
		r.request(st, "cds [a]")
		before := heapsize.InUse()
		n := many(100_000)
		sent := flood(st, n, func(i int) proto.Message {
			return testutil.SotW(fmt.Sprint(resource.TypePrefix, "test.T", i, strings.Repeat("x", 100)), "1", "n", cluster("a", ""))
		})
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := sent.Load(); got != int64(n) {
			t.Errorf("%d were taken", got)
		}
		if grown := int64(heapsize.InUse()) - int64(before); grown > 2<<20 {
			t.Errorf("the heap grew by %d bytes", grown)
		}
		r.quiet(st, 1)
		r.clusters(st, "1", "n1", "a")
		if got := rec.last(); got.Kind != client.EventUpdated || got.Version != "1" {
			t.Errorf("the last event is %v %q", got.Kind, got.Version)
		}
	})
}

// A server that sends faster than its resources are decoded waits: one response is decoded
// and the next has been read.
// spec: FC-1
func TestSlowDecoder(t *testing.T) {
	var decoded atomic.Int64
	slow := resource.Custom(cds.Type.TypeURL(), resource.Options{NameField: 1}, func(_ resource.Source, b []byte) (any, error) {
		time.Sleep(time.Second)
		decoded.Add(1)
		return len(b), nil
	})
	inBubble(t, func(t *testing.T, r *rig) {
		_, rec := r.watchType(slow, "a")
		st := r.accept()
		r.request(st, "cds [a]")
		const size = 1 << 20
		before := heapsize.InUse()
		sent := flood(st, 100, func(i int) proto.Message {
			return testutil.SotW(cds.Type.TypeURL(), fmt.Sprint(i), "n", cluster("a", strings.Repeat(fmt.Sprint(i%10), size)))
		})
		time.Sleep(10*time.Second + time.Millisecond)
		synctest.Wait()
		if d, s := decoded.Load(), sent.Load(); d != 10 || s > d+3 {
			t.Errorf("%d responses were decoded in ten seconds, %d taken from the server", d, s)
		}
		rec.mu.Lock()
		rec.events = nil // with their values
		rec.mu.Unlock()
		if grown := int64(heapsize.InUse()) - int64(before); grown > 16*size {
			t.Errorf("the heap grew by %d bytes", grown)
		}
	})
}

// failing is a transport that never has a stream, each time for another reason.
type failing struct{ attempts atomic.Int64 }

func (f *failing) Build(bootstrap.ManagementServer) (transport.Conn, error) { return f, nil }
func (f *failing) Close() error                                             { return nil }

func (f *failing) Open(context.Context, string) (transport.Stream, error) {
	return nil, fmt.Errorf("attempt %d: %s", f.attempts.Add(1), strings.Repeat("x", 1000))
}

// A handler that blocks while its server cannot be reached, for ever other reasons, costs
// nothing that grows. Released, each watch hears of the newest reason only.
// spec: FC-1
func TestBlockedThroughTrouble(t *testing.T) {
	const names = 1000
	f := &failing{}
	inBubble(t, func(t *testing.T, r *rig) {
		hold := make(chan struct{})
		var calls atomic.Int64
		var last atomic.Value
		for i := range names {
			_, err := r.c.Watch(context.Background(), cds.Type, fmt.Sprint("name-", i), func(ev client.Event[any]) {
				calls.Add(1)
				last.Store(ev.Err.Error())
				<-hold
			})
			must(t, err)
		}
		time.Sleep(time.Second)
		before, attempts := heapsize.InUse(), f.attempts.Load()
		time.Sleep(time.Minute)
		if n := f.attempts.Load() - attempts; n < 2900 {
			t.Errorf("%d attempts in a minute, want about one each 20ms", n)
		}
		if grown := int64(heapsize.InUse()) - int64(before); grown > 1<<20 {
			t.Errorf("the heap grew by %d bytes", grown)
		}
		if n := calls.Load(); n != 1 {
			t.Errorf("%d calls while the first runs", n)
		}
		newest := fmt.Sprintf("attempt %d: ", f.attempts.Load())
		close(hold)
		synctest.Wait()
		if n := calls.Load(); n != 2*names {
			t.Errorf("%d calls for %d watches, want two each: the first trouble and the newest", n, names)
		}
		if text := last.Load().(string); !strings.Contains(text, newest) {
			t.Errorf("the newest trouble is told as %.200s, want %q", text, newest)
		}
	}, policy(20*time.Millisecond), func(c *client.Config) { c.Transport = f })
}

// Trouble that came and went while a handler blocked is not told at all; what was told
// before is taken back.
// spec: ERR-10 U-15
func TestTroubleGoneWhileBlocked(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		rec, hold := &record{}, make(chan struct{})
		blocked := false
		_, err := r.c.Watch(context.Background(), cds.Type, "a", func(ev client.Event[any]) {
			rec.hear(ev)
			if ev.Kind == client.EventAmbientError && !blocked {
				blocked = true
				<-hold
			}
		})
		must(t, err)
		st := r.accept()
		r.clusters(st, "1", "n1", "a")
		st.End(nil)
		for i := range 10 {
			r.accept().End(fmt.Errorf("trouble %d", i))
		}
		r.clusters(r.accept(), "1", "n1", "a")
		time.Sleep(time.Minute)
		rec.heard(t, "updated a 1", "ambient error a stream")
		close(hold)
		rec.heard(t, "updated a 1", "ambient error a stream", "recovered a")
	})
}

// A program that watches and stops in a loop dials no more often than the backoff lets it.
// spec: BACKOFF-1
func TestWatchStopStorm(t *testing.T) {
	if testing.Short() {
		t.Skip("long: a storm of watches")
	}
	for name, tt := range map[string]struct {
		lives  time.Duration // of a watch
		linger time.Duration
		silent bool // the server can be dialled, and says nothing
		most   int64
	}{
		"at once":                     {0, 0, false, 15},
		"dead":                        {10 * time.Millisecond, 0, false, 15},
		"no linger":                   {time.Nanosecond, -1, false, 300}, // long enough to dial
		"silent":                      {10 * time.Millisecond, 0, true, 5},
		"silent, watched for a while": {700 * time.Millisecond, 0, true, 90},
		"silent, no linger":           {10 * time.Millisecond, -1, true, 300},
	} {
		t.Run(name, func(t *testing.T) {
			var dials atomic.Int64
			inBubble(t, func(t *testing.T, r *rig) {
				start := time.Now()
				for time.Since(start) < time.Minute {
					w, err := r.c.Watch(context.Background(), cds.Type, "a", func(client.Event[any]) {})
					must(t, err)
					time.Sleep(tt.lives)
					w.Stop()
					time.Sleep(5 * time.Millisecond)
				}
				t.Logf("%d dials in a minute", dials.Load())
				if n := dials.Load(); n == 0 || n > tt.most {
					t.Errorf("%d dials in a minute, want at most %d", n, tt.most)
				}
			}, func(c *client.Config) {
				c.Linger = tt.linger
				c.GRPC.DialOptions = append(c.GRPC.DialOptions, counting(&dials, tt.silent))
			})
		})
	}
}

// counting is a dialer that counts. What it dials refuses, or is a server that accepts and
// never says a word.
func counting(dials *atomic.Int64, silent bool) grpc.DialOption {
	return grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) {
		dials.Add(1)
		if !silent {
			return nil, errors.New("refused")
		}
		mine, theirs := net.Pipe()
		go func() { // read and say nothing
			buf := make([]byte, 4096)
			for {
				if _, err := theirs.Read(buf); err != nil {
					return
				}
			}
		}()
		return mine, nil
	})
}

// After a watch/stop loop a watch that stays is served as soon as the server is back.
func TestWatchStopThenServed(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.srv.SetRefuse(true)
		for range 1000 {
			w, _ := r.watch("a")
			time.Sleep(50 * time.Millisecond)
			w.Stop()
		}
		_, rec := r.watch("a")
		synctest.Wait()
		if got := rec.last(); got.Kind != client.EventFailed {
			t.Errorf("a watch of a dead server hears %v at first, want what is wrong", got.Kind)
		}
		r.srv.SetRefuse(false)
		start := time.Now()
		r.clusters(r.accept(), "1", "n1", "a")
		if d := time.Since(start); d > 45*time.Second {
			t.Errorf("served after %v", d)
		}
		rec.heard(t, "failed a connection", "updated a 1")
	})
}

// Frames without a byte are responses of no type: nothing, in aggregated streams.
// spec: STREAM-11
func TestZeroFrames(t *testing.T) {
	for _, change := range []func(*client.Config){func(*client.Config) {}, delta} {
		inBubble(t, func(t *testing.T, r *rig) {
			r.watch("a")
			st := r.accept()
			for range 1000 {
				must(t, st.SendBytes(nil))
			}
			r.quiet(st, 1)
			if st.Err() != nil || len(r.srv.Streams()) != 1 {
				t.Errorf("the stream ended: %v", st.Err())
			}
		}, func(c *client.Config) { c.Streams = client.StreamsAggregated }, change)
	}
}

// streamsIn is how many streams a server gets in a time that plays each of them as told.
func streamsIn(t *testing.T, d time.Duration, play func(*testutil.Stream), change ...func(*client.Config)) (n int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		srv := testutil.NewServer(testutil.OnStream(play))
		r := newRig(t, srv, change...)
		r.watch("a")
		time.Sleep(d)
		n = len(srv.Streams())
		if lines := strings.Count(r.log.text(), "\n"); lines > 100 {
			t.Errorf("%d lines of log for %d streams in %v", lines, n, d)
		}
	})
	t.Logf("%d streams in %v", n, d)
	return n
}

// Frames of garbage, and streams that end at once, are met with growing waits; streams that
// end after a response with short ones.
// spec: BACKOFF-1 BACKOFF-3 STREAM-11
func TestStreamLoops(t *testing.T) {
	garbage := func(st *testutil.Stream) { _ = st.SendBytes([]byte(strings.Repeat("\xff", 100))) }
	if n := streamsIn(t, 10*time.Minute, garbage); n < 15 || n > 60 {
		t.Errorf("%d streams of garbage in ten minutes", n)
	}
	if n := streamsIn(t, 10*time.Minute, func(st *testutil.Stream) { st.End(nil) }); n < 15 || n > 60 {
		t.Errorf("%d streams in ten minutes that end at once", n)
	}
	answered := func(st *testutil.Stream) {
		_ = st.Send(testutil.SotW(cds.Type.TypeURL(), "1", "n", cluster("a", "")))
		st.End(nil)
	}
	if n := streamsIn(t, time.Minute, answered); n > 400 {
		t.Errorf("%d streams in a minute that end after a response", n)
	}
}
