package client_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/testutil"
)

// A resource over the limit is refused, and the error says which limit that is; what is held
// stays.
//
// spec: H-1
func TestResourceOverLimit(t *testing.T) {
	for name, tt := range map[string]struct {
		field, size int
		want        string
	}{
		"default": {0, 16 << 20, "over the limit of 16777216 (Config.MaxResourceSize)"},
		"set":     {1000, 1000, "over the limit of 1000 (Config.MaxResourceSize)"},
		"none":    {-1, 16 << 20, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && tt.size > 1<<20 {
				t.Skip("long: a large resource")
			}
			inBubble(t, func(t *testing.T, r *rig) {
				_, rec := r.watch("a")
				st := r.accept()
				r.clusters(st, "1", "n1", "a")
				r.send(st, testutil.SotW(cds.Type.TypeURL(), "2", "n2", cluster("a", strings.Repeat("x", tt.size))))
				synctest.Wait()
				if tt.want == "" {
					rec.heard(t, "updated a 1", "updated a 2")
					return
				}
				err := rec.last().Err
				if rec.last().Kind != client.EventAmbientError || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("heard %q, want %q", lines(rec.all()), tt.want)
				}
			}, func(c *client.Config) { c.MaxResourceSize = tt.field })
		})
	}
}

// What a server gives over the bound of what is held is refused; where there is room again it is
// taken. Aliases of one resource count once.
//
// spec: H-1
func TestHeldOverLimit(t *testing.T) {
	const size = 100_000
	inBubble(t, func(t *testing.T, r *rig) {
		recs := map[string]*record{}
		for _, name := range []string{"a", "b", "c", "al1", "al2", "al3"} {
			_, recs[name] = r.watch(name)
		}
		st := r.accept()
		time.Sleep(10 * time.Millisecond) // until all names are subscribed to, by one request or two
		synctest.Wait()
		big := func(name, version string, aliases ...string) *discoveryv3.Resource {
			return under(name, version, strings.Repeat(version, size), aliases...)
		}
		url := cds.Type.TypeURL()
		r.send(st, testutil.Delta(url, "n1", []*discoveryv3.Resource{big("a", "1", "al1", "al2", "al3"), big("b", "1"), big("c", "1")}))
		recs["a"].heard(t, "updated a 1")
		recs["al3"].heard(t, "updated al3 1")
		recs["b"].heard(t, "updated b 1")
		if err := recs["c"].last().Err; err == nil || !strings.Contains(err.Error(), "more than 250000 bytes of the server's resources would be held (Config.MaxHeldSize)") {
			t.Errorf("c heard %v", err)
		}
		r.send(st, testutil.Delta(url, "n2", []*discoveryv3.Resource{big("a", "2", "al1", "al2", "al3"), big("b", "2")}))
		recs["al1"].heard(t, "updated al1 1", "updated al1 2")
		recs["b"].heard(t, "updated b 1", "updated b 2")
		r.send(st, testutil.Delta(url, "n3", nil, "a"))
		r.send(st, testutil.Delta(url, "n4", []*discoveryv3.Resource{big("c", "2")}))
		synctest.Wait()
		if got := recs["c"].last(); got.Kind != client.EventUpdated {
			t.Errorf("c heard %v %v after there was room", got.Kind, got.Err)
		}
	}, delta, func(c *client.Config) { c.MaxHeldSize = 250_000 })
}

// lists is a client of a server of authority "a", which lists names of authority "b", and of the
// server of that.
type lists struct {
	c    *client.Client
	a    *testutil.CollectionServer
	b    *testutil.Server
	most atomic.Int64 // names that b was asked for at a time
	last atomic.Pointer[[]string]
	log  *logBuffer
}

func newLists(t *testing.T, answer func(*testutil.Stream, *testutil.Request), change ...func(*client.Config)) *lists {
	t.Helper()
	l := &lists{log: &logBuffer{}}
	var err error
	l.a, err = testutil.NewCollectionServer()
	must(t, err)
	l.b, err = testutil.ListenServer("127.0.0.1:0", testutil.Unrecorded(), testutil.OnRequest(func(st *testutil.Stream, r *testutil.Request) {
		l.most.Store(max(l.most.Load(), int64(len(r.Names()))))
		names := r.Names()
		l.last.Store(&names)
		answer(st, r)
	}))
	must(t, err)
	boot := l.a.Bootstrap(false, "a")
	boot.Authorities["b"] = bootstrap.Authority{Servers: []bootstrap.ManagementServer{{URI: l.b.Target(), ChannelCreds: bootstrap.Insecure()}}}
	config := client.Config{Bootstrap: boot}
	for _, f := range change {
		f(&config)
	}
	l.c, err = client.New(config)
	must(t, err)
	t.Cleanup(func() {
		l.c.Close()
		l.a.Stop()
		l.b.Close()
	})
	return l
}

const listOfOthers = "xdstp://a/envoy.config.cluster.v3.ClusterCollection/l"

func nameAt(authority string, i int) string {
	return fmt.Sprintf("xdstp://%s/envoy.config.cluster.v3.Cluster/%05d", authority, i)
}

// asked says whether the second server is asked for a name now.
func (l *lists) asked(name string) bool {
	names := l.last.Load()
	return names != nil && slices.Contains(*names, name)
}

// serve has n names listed.
func (l *lists) serve(t *testing.T, n, first int) {
	t.Helper()
	entries := make([]testutil.ListEntry, n)
	for i := range entries {
		entries[i].Locator = nameAt("b", first+i)
	}
	must(t, l.a.List(listOfOthers, entries...))
}

// What the resources of one authority may ask of another is bounded, and what goes over is an
// error of the member. The other authority's own watches go on.
//
// spec: H-4
func TestListAsksTooMuchOfAnother(t *testing.T) {
	if testing.Short() {
		t.Skip("long: a long list")
	}
	const listed = 12_000
	for name, tt := range map[string]struct{ field, want int }{
		"default": {0, 10_000},
		"set":     {100, 100},
		"none":    {-1, listed},
	} {
		t.Run(name, func(t *testing.T) {
			own := nameAt("b", 99_999)
			var told atomic.Bool
			l := newLists(t, func(st *testutil.Stream, r *testutil.Request) {
				if slices.Contains(r.Names(), own) && !told.Swap(true) {
					_ = st.Send(testutil.SotW(cds.Type.TypeURL(), "1", "n", testutil.Wrapped(own, "1", cluster("own", ""))))
				}
			}, func(c *client.Config) { c.MaxForeignNames = tt.field })
			var updated, foreign atomic.Int64
			l.serve(t, listed, 0)
			_, err := l.c.WatchAll(context.Background(), cds.Type, listOfOthers, func(b client.Batch[any]) {
				for _, ev := range b.Events {
					if errors.Is(ev.Err, client.ErrForeignNames) {
						foreign.Add(1)
					}
				}
			})
			must(t, err)
			eventually(t, func() bool { return foreign.Load() == int64(listed-tt.want) })
			_, err = l.c.Watch(context.Background(), cds.Type, own, func(ev client.Event[any]) {
				if ev.Kind == client.EventUpdated {
					updated.Add(1)
				}
			})
			must(t, err)
			eventually(t, func() bool { return updated.Load() == 1 })
			eventually(t, func() bool { return l.most.Load() >= int64(tt.want) })
			if most := l.most.Load(); most > int64(tt.want)+1 {
				t.Errorf("the other server was asked for %d names, want %d", most, tt.want+1)
			}
			l.serve(t, 1, 0)
			eventually(t, func() bool { return len(*l.last.Load()) <= 2 })
			l.serve(t, max(1, min(tt.want-1, 500)), 50_000) // there is room again
			eventually(t, func() bool { return l.asked(nameAt("b", 50_000)) })
			if n := foreign.Load(); n != int64(listed-tt.want) {
				t.Errorf("%d members were refused, want %d", n, listed-tt.want)
			}
		})
	}
}

// Redirects count too.
//
// spec: H-4
func TestRedirectsAskTooMuchOfAnother(t *testing.T) {
	l := newLists(t, func(*testutil.Stream, *testutil.Request) {}, func(c *client.Config) { c.MaxForeignNames = 3 })
	var foreign atomic.Int64
	set, err := l.c.NewSet(context.Background(), cds.Type, func(b client.Batch[any]) {
		for _, ev := range b.Events {
			if re, _ := errors.AsType[*client.ResourceError](ev.Err); errors.Is(ev.Err, client.ErrForeignNames) && re.Kind == client.ErrorData {
				foreign.Add(1)
			}
		}
	})
	must(t, err)
	for i := range 10 {
		must(t, l.a.Redirect(nameAt("a", i), nameAt("b", i)))
		must(t, set.Add(nameAt("a", i)))
	}
	eventually(t, func() bool { return foreign.Load() == 7 && l.most.Load() == 3 })
}

// A server that answers, and ends the stream since too much is asked of it, is asked less and less
// often, and the operator hears of it.
//
// spec: H-4
func TestExhaustedServer(t *testing.T) {
	for _, variant := range []client.Variant{client.VariantSotW, client.VariantDelta} {
		t.Run(fmt.Sprint(variant), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := testutil.NewServer(testutil.OnRequest(func(st *testutil.Stream, r *testutil.Request) {
					if variant == client.VariantDelta {
						_ = st.Send(testutil.Delta(cds.Type.TypeURL(), "n", nil))
					} else {
						_ = st.Send(testutil.SotW(cds.Type.TypeURL(), "1", "n"))
					}
					st.End(status.Error(codes.ResourceExhausted, "too many names"))
				}))
				r := newRig(t, srv, func(c *client.Config) { c.Variant = variant })
				r.watch("a")
				time.Sleep(10 * time.Minute)
				n := len(srv.Streams())
				t.Logf("%d streams in ten minutes", n)
				if n < 10 || n > 60 {
					t.Errorf("%d streams in ten minutes, want waits that grow to 30 s", n)
				}
				r.log.holds(t, "the server ends the stream since too much is asked of it")
				if lines := strings.Count(r.log.text(), "\n"); lines > 400 {
					t.Errorf("%d lines of log", lines)
				}
			})
		})
	}
}
