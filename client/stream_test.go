package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cenkalti/backoff/v4"
	runtimev3 "github.com/envoyproxy/go-control-plane/envoy/service/runtime/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/resource/eds"
	"github.com/xdswatch/xdswatch/resource/rtds"
	"github.com/xdswatch/xdswatch/testutil"
)

// New dials nobody; equal servers of several authorities are one, with one stream.
// spec: STREAM-2
func TestEqualServersShareStream(t *testing.T) {
	twoServers(t, func(t *testing.T, r *rig, other *testutil.Server) {
		time.Sleep(time.Hour)
		if n := len(r.srv.Streams()) + len(other.Streams()); n != 0 {
			t.Errorf("%d streams before the first watch", n)
		}
		sameName := "xdstp://same/" + clusterName + "/s"
		_, a := r.watch("a")
		st := r.accept()
		r.request(st, "cds [a]")
		time.Sleep(time.Second)
		_, s := r.watch(sameName)
		r.request(st, "cds [a "+sameName+"]")
		r.clusters(st, "1", "n1", "a", sameName)
		a.heard(t, "updated a 1")
		s.heard(t, "updated "+sameName+" 1")
		if n, o := len(r.srv.Streams()), len(other.Streams()); n != 1 || o != 0 {
			t.Errorf("%d streams at the server of both, %d at the other; want 1 and 0", n, o)
		}
	})
}

// A frame that is no response ends the stream, which is opened again.
// spec: STREAM-11
func TestBrokenFrame(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		_, rec := r.watch("a")
		st := r.accept()
		must(t, st.SendBytes([]byte{0xff, 0xff}))
		<-st.Done()
		rec.heard(t, "failed a stream")
		if text := rec.last().Err.Error(); !strings.Contains(text, "not a DiscoveryResponse") {
			t.Errorf("the error is %q", text)
		}
		again := r.accept()
		r.request(again, "cds [a]")
		r.clusters(again, "1", "n1", "a")
		rec.heard(t, "failed a stream", "updated a 1")
	})
}

// A stream that ends in good order is opened again, every time, whether it said anything.
// spec: STREAM-5 BACKOFF-3
func TestEOFNeverKills(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		_, rec := r.watch("a")
		for i := range 50 {
			st := r.accept()
			if i%2 == 0 {
				v := fmt.Sprint(i)
				r.clusters(st, v, "n", "a")
			}
			st.End(nil)
		}
		r.clusters(r.accept(), "last", "n", "a")
		if got := rec.last(); got.Kind != client.EventUpdated || got.Version != "last" {
			t.Errorf("the last event is %v %q", got.Kind, got.Version)
		}
	})
}

// A thousand reconnects leave a client as good as new.
func TestThousandReconnects(t *testing.T) {
	if testing.Short() {
		t.Skip("long: a thousand streams")
	}
	inBubble(t, func(t *testing.T, r *rig) {
		var calls atomic.Int32
		_, err := r.c.Watch(context.Background(), cds.Type, "a", func(client.Event[any]) { calls.Add(1) })
		must(t, err)
		const n = 1000
		for i := range n {
			st := r.accept()
			r.clusters(st, "1", "n1", "a")
			switch i % 3 {
			case 0:
				st.End(nil)
			case 1:
				r.srv.DropConnections()
			case 2:
				r.srv.GoAway()
				st.End(status.Error(codes.Unavailable, "max age"))
			}
		}
		st := r.accept()
		r.request(st, "cds [a]")
		if calls.Load() != 1 {
			t.Errorf("%d events for one value", calls.Load())
		}
		if took := len(r.srv.Streams()); took != n+1 {
			t.Errorf("%d streams, want %d", took, n+1)
		}
	})
}

// A server that is not there at the start, and comes.
func TestServerComesLate(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.srv.SetRefuse(true)
		_, rec := r.watch("a")
		time.Sleep(10 * time.Minute)
		rec.heard(t, "failed a connection")
		r.log.holds(t, "the server cannot be reached")
		r.srv.SetRefuse(false)
		start := time.Now()
		r.clusters(r.accept(), "1", "n1", "a")
		if waited := time.Since(start); waited > 45*time.Second {
			t.Errorf("the client came after %v", waited)
		}
		rec.heard(t, "failed a connection", "updated a 1")
	})
}

// A server that hangs while it is dialled is given up in time.
func TestServerHangs(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.srv.SetHoldDial(true)
		_, rec := r.watch("a")
		time.Sleep(time.Minute)
		rec.heard(t, "failed a connection")
		r.srv.SetHoldDial(false)
		r.clusters(r.accept(), "1", "n1", "a")
		rec.heard(t, "failed a connection", "updated a 1")
	})
}

// The last watch lets go of the stream after the linger, and of the connection too; also
// where the server ended the stream while it lingered.
// spec: STREAM-6
func TestLinger(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		conns := client.CountConns(r.c)
		for _, ended := range []bool{false, true} {
			w, _ := r.watch("a")
			st := r.accept()
			r.clusters(st, "1", "n1", "a")
			w.Stop()
			if ended {
				time.Sleep(100 * time.Millisecond)
				st.End(nil)
			}
			time.Sleep(499 * time.Millisecond)
			synctest.Wait()
			if !ended && st.Err() != nil {
				t.Errorf("the stream ended within its linger: %v", st.Err())
			}
			time.Sleep(time.Second)
			<-st.Done()
		}
		time.Sleep(time.Hour)
		if n := len(r.srv.Streams()); n != 2 {
			t.Errorf("%d streams, want 2", n)
		}
		if n := conns.Open.Load(); n != 0 {
			t.Errorf("%d connections are kept for nothing", n)
		}
	})
}

// A value whose map entries came in another order is no news.
// spec: WATCH-4
// spec: S-22
func TestReorderedMap(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		rec := &record{}
		_, err := r.c.Watch(context.Background(), rtds.Type, "r", rec.hear)
		must(t, err)
		st := r.accept()
		send := func(version string, keys ...string) {
			b := []byte("\x0a\x01r") // name
			for _, k := range keys {
				one, err := proto.Marshal(&runtimev3.Runtime{Layer: &structpb.Struct{Fields: map[string]*structpb.Value{k: structpb.NewStringValue(k)}}})
				must(t, err)
				b = append(b, one...) // fields of one message merge
			}
			a := testutil.SotW(rtds.Type.TypeURL(), version, "n"+version, &runtimev3.Runtime{})
			a.Resources[0].Value = b
			r.send(st, a)
			synctest.Wait()
		}
		send("1", "x", "y", "z")
		send("2", "z", "x", "y")
		send("3", "z", "x", "y")
		rec.heard(t, "updated r 1")
		same(t, "last answer", short(st.Requests()[3]), " [r] v3 n3")
		send("4", "z", "x", "a")
		rec.heard(t, "updated r 1", "updated r 4")
	}, func(c *client.Config) { c.Streams = client.StreamsAggregated })
}

// With a stream for each type, each type has its own method.
// spec: STREAM-1 ADS-1
func TestPerTypeMethods(t *testing.T) {
	for _, delta := range []bool{false, true} {
		inBubble(t, func(t *testing.T, r *rig) {
			r.watch("a")
			r.watchType(eds.Type, "e")
			got := []string{r.accept().Method, r.accept().Method}
			slices.Sort(got)
			want := []string{
				"/envoy.service.cluster.v3.ClusterDiscoveryService/StreamClusters",
				"/envoy.service.endpoint.v3.EndpointDiscoveryService/StreamEndpoints",
			}
			if delta {
				for i := range want {
					want[i] = strings.Replace(want[i], "/Stream", "/Delta", 1)
				}
			}
			same(t, "methods", got, want)
		}, func(c *client.Config) {
			c.Streams = client.StreamsPerType
			if delta {
				c.Variant = client.VariantDelta
			}
		})
	}
}

// gaps are the times between streams that a server ends at once.
func gaps(t *testing.T, n int, answer bool, lived time.Duration, change func(*client.Config)) []time.Duration {
	t.Helper()
	var ds []time.Duration
	inBubble(t, func(t *testing.T, r *rig) {
		r.watch("a")
		var last time.Time
		for range n {
			st := r.accept()
			if !last.IsZero() {
				ds = append(ds, time.Since(last))
			}
			if answer {
				r.clusters(st, "1", "n", "a")
			}
			time.Sleep(lived)
			st.End(nil)
			last = time.Now()
		}
	}, change)
	return ds
}

// waits is a policy of the waits given, of which the last repeats.
type waits struct {
	list []time.Duration
	next int
}

func (w *waits) NextBackOff() time.Duration {
	d := w.list[min(w.next, len(w.list)-1)]
	w.next++
	return d
}

func (w *waits) Reset() { w.next = 0 }

func policy(list ...time.Duration) func(*client.Config) {
	return func(c *client.Config) { c.Backoff = func() backoff.BackOff { return &waits{list: list} } }
}

// spec: BACKOFF-1 BACKOFF-2
func TestWaitsOfFailures(t *testing.T) {
	s := time.Second
	tests := map[string]struct {
		list, want []time.Duration
	}{
		"as the policy says": {[]time.Duration{s, 2 * s, 5 * s}, []time.Duration{s, 2 * s, 5 * s, 5 * s}},
		"stop is the cap":    {[]time.Duration{s, backoff.Stop}, []time.Duration{s, 30 * s, 30 * s, 30 * s}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			same(t, "waits", gaps(t, 5, false, time.Hour, policy(tt.list...)), tt.want)
		})
	}
}

// A stream that delivered a response is followed by a short random wait.
// spec: BACKOFF-3
func TestWaitsAfterResponse(t *testing.T) {
	ds := gaps(t, 100, true, 0, policy(time.Second, time.Hour))
	for _, d := range ds {
		if d >= time.Second {
			t.Errorf("a wait of %v, want less than the initial second", d)
		}
	}
	slices.Sort(ds)
	if ds[0] == ds[len(ds)-1] {
		t.Errorf("every wait is %v; they are to be spread", ds[0])
	}
}

// The default grows by 1.6 from half a second to thirty, with half of it at random.
// spec: BACKOFF-1
func TestDefaultWaits(t *testing.T) {
	interval := 500 * time.Millisecond
	for i, d := range gaps(t, 20, false, 0, func(*client.Config) {}) {
		if d < interval/2 || d > interval*3/2 {
			t.Errorf("wait %d is %v, want %v give or take a half", i, d, interval)
		}
		interval = min(interval*16/10, 30*time.Second)
	}
	for _, d := range gaps(t, 50, true, 0, func(*client.Config) {}) {
		if d >= 500*time.Millisecond {
			t.Errorf("a wait of %v after a response", d)
		}
	}
}

// Growth starts over only with a stream that outlived the interval.
func TestGrowthStartsOver(t *testing.T) {
	for _, tt := range []struct {
		lived, want time.Duration
	}{{time.Second, 4 * time.Second}, {time.Minute, time.Second}} {
		inBubble(t, func(t *testing.T, r *rig) {
			r.watch("a")
			for range 2 { // the interval is two seconds then
				r.accept().End(nil)
			}
			st := r.accept()
			r.clusters(st, "1", "n1", "a")
			time.Sleep(tt.lived)
			st.End(nil)
			r.accept().End(nil)
			start := time.Now()
			r.accept()
			if got := time.Since(start); got != tt.want {
				t.Errorf("after a stream of %v the wait is %v, want %v", tt.lived, got, tt.want)
			}
		}, policy(time.Second, 2*time.Second, 4*time.Second))
	}
}

func TestResetBackoff(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.watch("a")
		r.accept().End(nil)
		synctest.Wait()
		start := time.Now()
		r.c.ResetBackoff()
		r.accept().End(nil)
		if d := time.Since(start); d != 0 {
			t.Errorf("after a reset the client came after %v", d)
		}
		r.accept()
		if d := time.Since(start); d != time.Hour {
			t.Errorf("then after %v, want the first wait again", d)
		}
	}, policy(time.Hour, 24*time.Hour))
}

// A server that says that it does not speak the variant is said to be so.
// spec: S-6
func TestVariantHint(t *testing.T) {
	const (
		delta    = "may not speak the delta variant of the protocol, or not on an aggregated stream"
		perType  = "may not speak the delta variant of the protocol, or not on a stream for each type"
		ofStates = "may not speak the state of the world variant of the protocol, or not on an aggregated stream"
	)
	for _, tt := range []struct {
		end     error
		variant client.Variant
		streams client.Streams
		hint    string // "" for none
	}{
		{status.Error(codes.Unimplemented, "unknown method"), client.VariantDelta, client.StreamsAggregated, delta},
		{status.Error(codes.Unknown, "delta is not implemented"), client.VariantDelta, client.StreamsAggregated, delta},
		{io.EOF, client.VariantDelta, client.StreamsAggregated, delta},
		{io.EOF, client.VariantDelta, client.StreamsPerType, perType},
		{status.Error(codes.Unavailable, "busy"), client.VariantDelta, client.StreamsAggregated, ""},
		{status.Error(codes.Unimplemented, "unknown method"), client.VariantSotW, client.StreamsAggregated, ofStates},
		{io.EOF, client.VariantSotW, client.StreamsAggregated, ""},
	} {
		inBubble(t, func(t *testing.T, r *rig) {
			_, rec := r.watch("a")
			r.accept().End(tt.end)
			synctest.Wait()
			err := rec.last().Err
			if err == nil || !strings.Contains(err.Error(), tt.hint) || (tt.hint == "") == strings.Contains(err.Error(), "may not speak") ||
				!errors.Is(err, io.EOF) && status.Code(errors.Unwrap(err)) != status.Code(tt.end) {
				t.Errorf("after %v the error is %v, want %q in it", tt.end, err, tt.hint)
			}
			r.accept() // it goes on trying
		}, func(c *client.Config) { c.Variant, c.Streams = tt.variant, tt.streams })
	}
}
