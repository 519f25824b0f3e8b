package client_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	xdscorev3 "github.com/cncf/xds/go/xds/core/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/testutil"
	"github.com/xdswatch/xdswatch/transport"
)

// entries are inline entries e0, e1 and so on of Clusters.
func entries(n int) []*xdscorev3.CollectionEntry {
	var es []*xdscorev3.CollectionEntry
	for i := range n {
		es = append(es, inline(fmt.Sprint("e", i), "", cluster(fmt.Sprint("e", i), "")))
	}
	return es
}

// Each entry of a directory is decoded once for the verdict, and for who comes late by
// itself. A change of one does not decode the others.
// spec: ENTRY-1
func TestEntriesAreDecodedOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		const n = 300
		var decoded atomic.Int64
		kind := resource.Custom(cds.Type.TypeURL(), resource.Options{NameField: 1, FullState: true}, func(src resource.Source, b []byte) (*clusterv3.Cluster, error) {
			decoded.Add(1)
			v, err := cds.Type.Decode(src, b)
			if err != nil {
				return nil, err
			}
			return v.(*clusterv3.Cluster), nil
		})
		count := func(what string, want int64) {
			t.Helper()
			if n := decoded.Swap(0); n != want {
				t.Errorf("%s: %d decoded, want %d", what, n, want)
			}
		}
		url, es := dir("a", "list"), entries(n)
		w.a.put(url, listing(es...), "1")
		recs := make([]*record, n)
		for i := range n {
			recs[i] = &record{}
			_, err := w.c.Watch(t.Context(), kind, fmt.Sprintf("%s#entry=e%d", url, i), recs[i].hear)
			must(t, err)
			if synctest.Wait(); i == 0 {
				count("the directory", n)
			}
		}
		count("late watches", n-1)
		if _, err := w.c.Get(t.Context(), kind, url+"#entry=e1"); err != nil {
			t.Error(err)
		}
		count("Get", 1)
		var all int
		_, err := w.c.WatchAll(t.Context(), kind, url, func(b client.Batch[any]) { all += len(b.Events) })
		must(t, err)
		synctest.Wait()
		count("the whole", n)

		es[7] = inline("e7", "", cluster("e7", "changed"))
		w.a.put(url, listing(es...), "2")
		count("a change", 1)
		es = append([]*xdscorev3.CollectionEntry{inline("new", "", cluster("new", ""))}, es...)
		w.a.put(url, listing(es...), "3")
		count("a new entry", 1)
		for i, rec := range recs {
			want := []string{fmt.Sprintf("updated a//list#entry=e%d 1", i)}
			if i == 7 {
				want = append(want, "updated a//list#entry=e7 2")
			}
			w.since(rec, want...)
		}
		if want := n + 3; all != want {
			t.Errorf("the whole heard %d events, want %d", all, want)
		}
	})
}

// A response with an inline entry that cannot be used is NACKed each time that it comes; the
// other entries are used.
// spec: ACK-6 COLL-4 TYPE-7
func TestBadEntryIsRefused(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		url := dir("a", "list")
		refused := func(n int, want string) {
			t.Helper()
			got := w.a.refusals()
			if len(got) != n || n > 0 && got[n-1] != want {
				t.Errorf("refused %q, want %d times, the last %q", got, n, want)
			}
		}
		bad := listing(inline("good", "", cluster("good", "")), inline("bad", "", cluster("", "")), member(at("nowhere", "x")))
		w.a.put(url, bad, "1")
		watch, rec := w.watch(url + "#entry=good")
		w.since(rec, "updated a//list#entry=good 1")
		const text = `resource index 0: a//list: entry 1: the inline entry "bad": not a valid envoy.config.cluster.v3.Cluster: ` +
			`invalid Cluster.Name: value length must be at least 1 runes`
		refused(1, text)
		w.a.put(url, bad, "1")
		refused(2, text)
		w.since(rec)
		w.a.put(url, listing(inline("good", "", cluster("good", "2")), inline("bad", "", cluster("", ""))), "2")
		w.since(rec, "updated a//list#entry=good 2")
		refused(3, text)
		w.a.put(url, listing(inline("good", "", cluster("good", "2")), inline("bad", "", cluster("bad", ""))), "3")
		w.since(rec)
		refused(3, text)

		// What was wrong with a directory that is gone is forgotten.
		w.a.put(url, bad, "4")
		w.since(rec, "updated a//list#entry=good 4")
		refused(4, text)
		w.a.remove(url)
		w.since(rec, "does not exist a//list#entry=good removed")
		w.a.put(url, listing(inline("good", "", cluster("good", ""))), "5")
		w.since(rec, "updated a//list#entry=good 5")
		refused(4, text)
		watch.Stop()
		w.unwanted()
	})
}

// An entry of which the newest value is refused keeps the value before, also for who watches or asks for it only then. Events
// have the version of the value that they are about.
// spec: WATCH-3 ERR-3 COLL-4
func TestLateWatchOfBadEntry(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		url := dir("a", "list")
		w.a.put(url, listing(inline("in", "7", cluster("in", "")), inline("old", "1", cluster("old", ""))), "1")
		_, early := w.watch(url + "#entry=in")
		w.since(early, "updated a//list#entry=in 7")
		w.a.put(url, listing(inline("in", "8", cluster("", "")), inline("new", "1", cluster("new", ""))), "2")
		const ambient = `ambient error a//list#entry=in rejected: the inline entry "in": not a valid envoy.config.cluster.v3.Cluster: ` +
			`invalid Cluster.Name: value length must be at least 1 runes`
		w.since(early, ambient)
		_, late := w.watch(url + "#entry=in")
		w.since(late, "updated a//list#entry=in 7", ambient)
		_, added := w.watch(url + "#entry=new")
		w.since(added, "updated a//list#entry=new 1")
		_, gone := w.watch(url + "#entry=old")
		w.since(gone, "does not exist a//list#entry=old not-found")
		_, all := w.all(url)
		w.since(all, "updated a//list#entry=in 7", ambient, "updated a//list#entry=new 1", "synced a//list")
		if ev, err := w.c.Get(t.Context(), cds.Type, url+"#entry=in"); err != nil || ev.Version != "7" {
			t.Errorf("Get returns %v, %v", ev, err)
		}
		w.a.put(url, listing(inline("in", "9", cluster("in", "9"))), "3")
		w.since(early, "updated a//list#entry=in 9")
		w.since(late, "updated a//list#entry=in 9")
	})
}

// BenchmarkLateEntries watches the entries of a directory one after the other. What each
// costs must not grow with their number.
func BenchmarkLateEntries(b *testing.B) {
	for _, n := range []int{1000, 10000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			url := dir("a", "list")
			srv := testutil.NewServer(testutil.OnRequest(func(st *testutil.Stream, r *testutil.Request) {
				if len(r.Names()) > 0 {
					_ = st.Send(&discoveryv3.DeltaDiscoveryResponse{
						TypeUrl: r.TypeURL(), Nonce: "1", Resources: []*discoveryv3.Resource{testutil.Wrapped(url, "1", listing(entries(n)...))},
					})
				}
			}))
			defer srv.Close()
			boot, err := bootstrap.Server(srv.Target())
			if err != nil {
				b.Fatal(err)
			}
			boot.Authorities = map[string]bootstrap.Authority{"a": {}}
			for b.Loop() {
				c, err := client.New(client.Config{Bootstrap: boot, Variant: client.VariantDelta, GRPC: transport.GRPCConfig{DialOptions: srv.DialOptions()}})
				if err != nil {
					b.Fatal(err)
				}
				heard := make(chan client.Event[any])
				for i := range n {
					name := fmt.Sprintf("%s#entry=e%d", url, i)
					if _, err := c.Watch(context.Background(), cds.Type, name, func(ev client.Event[any]) { heard <- ev }); err != nil {
						b.Fatal(err)
					}
					if ev := <-heard; ev.Kind != client.EventUpdated || !strings.HasSuffix(ev.Name, fmt.Sprint("e", i)) {
						b.Fatalf("heard %v of %s", ev.Kind, ev.Name)
					}
				}
				if err := c.Close(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/each")
		})
	}
}
