package client_test

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/internal/cputime"
	"github.com/xdswatch/xdswatch/internal/heapsize"
	"github.com/xdswatch/xdswatch/internal/race"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/testutil"
)

// Bounds of what one server may do to the rest.
const (
	siegeMemory = 256 << 20       // beside what is rightly held
	siegeGap    = time.Second     // that the process computes without an event of another authority
	siegeClose  = 2 * time.Second // of Close
)

// patience is a bound of time on a machine that has other things to do, and on one where the race
// detector makes everything slower.
func patience(d time.Duration) time.Duration {
	if race.Enabled {
		return 20 * d
	}
	return 4 * d
}

// siege is a client of two servers over TCP: a hostile one that answers for the names without an
// authority and for authority "bad", and one for authority "good", which sends its only cluster
// anew as often as it is answered.
type siege struct {
	t         *testing.T
	c         *client.Client
	bad, good *testutil.Server
	streams   chan *testutil.Stream // of the hostile server, when their first request has come
	answers   chan *testutil.Request
	log       *logBuffer

	mu   sync.Mutex
	last time.Duration // that the process had computed when the last event of the good authority came
	gap  time.Duration // what it computed between two at most
	seen int           // events; they have to be in order
}

// good is the name at the server that is not hostile.
const goodName = "xdstp://good/envoy.config.cluster.v3.Cluster/c"

func newSiege(t *testing.T, change ...func(*client.Config)) *siege {
	t.Helper()
	s := &siege{t: t, streams: make(chan *testutil.Stream, 64), answers: make(chan *testutil.Request, 1<<16), log: &logBuffer{}}
	var err error
	var known sync.Map
	s.bad, err = testutil.ListenServer("127.0.0.1:0", testutil.Unrecorded(), testutil.OnRequest(func(st *testutil.Stream, r *testutil.Request) {
		if _, before := known.LoadOrStore(st, true); !before {
			s.streams <- st
		}
		select {
		case s.answers <- r:
		default:
		}
	}))
	must(t, err)
	var version atomic.Int64
	s.good, err = testutil.ListenServer("127.0.0.1:0", testutil.Unrecorded(), testutil.OnRequest(func(st *testutil.Stream, _ *testutil.Request) {
		time.Sleep(5 * time.Millisecond)
		v := fmt.Sprint(version.Add(1))
		_ = st.Send(testutil.Delta(cds.Type.TypeURL(), v, []*discoveryv3.Resource{testutil.Wrapped(goodName, v, cluster("c", v))}))
	}))
	must(t, err)
	boot, err := bootstrap.Server(s.bad.Target())
	must(t, err)
	boot.Authorities = map[string]bootstrap.Authority{
		"bad":  {},
		"good": {Servers: []bootstrap.ManagementServer{{URI: s.good.Target(), ChannelCreds: bootstrap.Insecure()}}},
	}
	config := client.Config{Bootstrap: boot, Variant: client.VariantDelta, Logger: slog.New(slog.NewTextHandler(s.log, nil))}
	for _, f := range change {
		f(&config)
	}
	s.c, err = client.New(config)
	must(t, err)
	t.Cleanup(func() {
		s.c.Close()
		s.bad.Close()
		s.good.Close()
	})
	_, err = s.c.Watch(context.Background(), cds.Type, goodName, func(ev client.Event[any]) {
		s.mu.Lock()
		defer s.mu.Unlock()
		now := cputime.Used()
		if ev.Kind != client.EventUpdated || ev.Version <= fmt.Sprint(s.seen) && len(ev.Version) <= len(fmt.Sprint(s.seen)) {
			t.Errorf("the good authority hears %v %s %v after version %d", ev.Kind, ev.Version, ev.Err, s.seen)
			return
		}
		s.gap = max(s.gap, now-s.last)
		_, err := fmt.Sscan(ev.Version, &s.seen)
		must(t, err)
		s.last = now
	})
	must(t, err)
	return s
}

// stream takes the next stream to the hostile server.
func (s *siege) stream() *testutil.Stream {
	s.t.Helper()
	select {
	case st := <-s.streams:
		return st
	case <-time.After(time.Minute):
		s.t.Fatal("no stream came")
		return nil
	}
}

// answer waits for the answer to a nonce.
func (s *siege) answer(nonce string) *testutil.Request {
	s.t.Helper()
	for {
		select {
		case r := <-s.answers:
			if r.Nonce() == nonce {
				return r
			}
		case <-time.After(2 * time.Minute):
			s.t.Fatalf("no answer to %s came", nonce)
		}
	}
}

// attack runs what a server does, and holds the client to the bounds meanwhile and, with what it
// left, afterwards. The attack returns once it was answered; sent is how many bytes it has on
// its way, of each of which server and connection have copies too.
func (s *siege) attack(sent int, run func()) {
	s.t.Helper()
	s.await(1)
	s.mu.Lock()
	s.gap, s.last = 0, cputime.Used()
	before := s.seen
	s.mu.Unlock()
	peak := watchHeap()
	run()
	s.mu.Lock()
	seen := s.seen
	s.mu.Unlock()
	s.await(seen + 2)
	grown := peak()
	s.mu.Lock()
	gap, heard := s.gap, s.seen-before
	s.mu.Unlock()
	s.t.Logf("heap grew by %d MB at most, the other authority heard %d events, %v were computed between two of them at most", grown>>20, heard, gap)
	if most := int64(siegeMemory + 4*sent); grown > most && !race.Enabled {
		s.t.Errorf("the heap grew by %d MB, want at most %d", grown>>20, most>>20)
	}
	if gap > patience(siegeGap) {
		s.t.Errorf("the other authority heard nothing while the process computed for %v", gap)
	}
}

// await waits until the good authority's events have come to a version.
func (s *siege) await(version int) {
	s.t.Helper()
	for start := time.Now(); ; time.Sleep(time.Millisecond) {
		s.mu.Lock()
		seen := s.seen
		s.mu.Unlock()
		if seen >= version {
			return
		}
		if time.Since(start) > time.Minute {
			s.t.Fatalf("the good authority is at version %d, want %d", seen, version)
		}
	}
}

// close closes the client in time.
func (s *siege) close() {
	s.t.Helper()
	start := time.Now()
	s.c.Close()
	if d := time.Since(start); d > patience(siegeClose) {
		s.t.Errorf("Close took %v", d)
	}
}

// watchHeap is [heapsize.Watch]. The collector runs often meanwhile, so that what is garbage counts
// little.
func watchHeap() func() int64 {
	old, grown := debug.SetGCPercent(25), heapsize.Watch()
	return func() int64 {
		defer debug.SetGCPercent(old)
		return int64(grown())
	}
}

// repeated is a message of which one field is there many times.
func repeated(head proto.Message, field protowire.Number, n int, each func(i int) []byte) []byte {
	b, err := proto.Marshal(head)
	if err != nil {
		panic(err)
	}
	for i := range n {
		b = protowire.AppendTag(b, field, protowire.BytesType)
		b = protowire.AppendBytes(b, each(i))
	}
	return b
}

// eventually waits for a condition.
func eventually(t *testing.T, ok func() bool) {
	t.Helper()
	for start := time.Now(); !ok(); time.Sleep(time.Millisecond) {
		if time.Since(start) > time.Minute {
			t.Fatal("it did not come to be")
		}
	}
}

// statusOf is a status with a code.
func statusOf(code int32) *statuspb.Status { return &statuspb.Status{Code: code, Message: "no"} }
