package client_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/resource/rtds"
	"github.com/xdswatch/xdswatch/resource/sds"
	"github.com/xdswatch/xdswatch/testutil"
)

// Of a server that ends each stream that asks for a type that it does not know, before it has
// answered for any other, the other types are had within seconds, and then nothing of them is
// missed: only what is asked for after them ends the stream, ever more seldom.
// spec: S-3
func TestUnknownTypesFromTheStart(t *testing.T) {
	for _, slow := range []time.Duration{0, 20 * time.Millisecond, 200 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			var version, ends atomic.Int64
			var ended sync.Map // by stream: one may have read the requests of both types
			version.Store(1)
			srv := testutil.NewServer(testutil.OnRequest(func(st *testutil.Stream, r *testutil.Request) {
				switch {
				case r.TypeURL() != cds.Type.TypeURL():
					if _, again := ended.LoadOrStore(st, true); !again {
						ends.Add(1)
					}
					st.End(status.Error(codes.Unauthenticated, "unknown type"))
				case r.Nonce() == "":
					go func() {
						time.Sleep(slow)
						v := fmt.Sprint(version.Load())
						_ = st.Send(testutil.SotW(cds.Type.TypeURL(), v, v, cluster("a", v))) // the stream may be over
					}()
				}
			}))
			r := newRig(t, srv)
			_, rec := r.watch("a")
			_, rec2 := r.watchType(rtds.Type, "x")
			_, rec3 := r.watchType(sds.Type, "y")
			time.Sleep(6 * time.Second)
			synctest.Wait()
			known := lines(rec.all())
			if !slices.Contains(known, "updated a 1") {
				t.Errorf("of what the server knows is heard within six seconds: %q", known)
			}
			before := ends.Load()
			version.Store(2)
			time.Sleep(10 * time.Minute)
			synctest.Wait()
			heard := lines(rec.all())[len(known):]
			if heard[0] == "recovered a" { // trouble is over, which an update says too
				heard = heard[1:]
			}
			same(t, "heard in ten minutes", heard, []string{"updated a 2"})
			for name, rec := range map[string]*record{"x": rec2, "y": rec3} {
				heard := lines(rec.all())
				if told := slices.Compact(slices.Clone(heard)); len(heard) > 5 || !slices.Equal(told, []string{"failed " + name + " stream"}) {
					t.Errorf("of what the server does not know is heard: %q", heard)
				}
			}
			// An end makes one type doubtful at least, by 1, or 2 after a response, which one of three has: after nine both
			// have 6 doubts, and the next end of each blames it.
			const most = 9 + 2
			if n := ends.Load() - before; before > most || n > 12 {
				t.Errorf("%d streams ended at first, and %d in ten minutes", before, n)
			}
			if n := strings.Count(r.log.text(), "the type is held back"); n != 2 {
				t.Errorf("%d types are said to be held back:\n%s", n, r.log.text())
			}
		})
	}
}

// A server that ends every stream at once, for whatever reason, is a few warnings a minute.
// spec: S-28
func TestLogRefusedStreams(t *testing.T) {
	for _, streams := range []client.Streams{client.StreamsAggregated, client.StreamsPerType} {
		var log *logBuffer
		synctest.Test(t, func(t *testing.T) {
			srv := testutil.NewServer(testutil.OnStream(func(st *testutil.Stream) {
				st.End(status.Error(codes.Unimplemented, "unknown service"))
			}))
			r := newRig(t, srv, logged(&log), func(c *client.Config) { c.Streams = streams })
			r.watch("a")
			r.watchType(rtds.Type, "x")
			time.Sleep(time.Minute)
			log.quiet(t, "WARN", 2, "the stream ends without a response that can be used", "unknown service")
		})
	}
}
