package file_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/internal/race"
	"github.com/xdswatch/xdswatch/resource"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/resource/lds"
	"github.com/xdswatch/xdswatch/resource/sds"
	"github.com/xdswatch/xdswatch/testutil"
	"github.com/xdswatch/xdswatch/transport/file"
)

// program is a client of a file, and what its watches heard.
type program struct {
	t              testing.TB
	client         *client.Client
	events         chan string
	valid, invalid atomic.Int64 // resources, as the metrics count them
}

func start(t testing.TB, path string, changes ...change) *program {
	t.Helper()
	source := sourceConfig{Path: path}
	config := carrierConfig{Settle: settle, Recheck: recheck}
	for _, f := range changes {
		f(&source, &config)
	}
	return startServer(t, config, bootstrap.ManagementServer{
		URI: "file://" + path, ChannelCreds: bootstrap.Insecure(), Carrier: &source,
	})
}

func startServer(t testing.TB, config carrierConfig, server bootstrap.ManagementServer, guards ...client.Guard) *program {
	t.Helper()
	boot := &bootstrap.Config{Servers: []bootstrap.ManagementServer{server}}
	p := &program{t: t, events: make(chan string, 100_000)}
	c, err := client.New(client.Config{
		Bootstrap: boot, Transport: file.NewBuilder(config, nil), Logger: slog.New(slog.DiscardHandler),
		Guards: map[string][]client.Guard{sds.Type.TypeURL(): guards},
		Metrics: &client.Metrics{
			ResourceUpdatesValid:   func(n client.UpdateCount) { p.valid.Add(int64(n.Resources)) },
			ResourceUpdatesInvalid: func(n client.UpdateCount) { p.invalid.Add(int64(n.Resources)) },
		},
	})
	must(t, err)
	t.Cleanup(func() {
		c.Close()
		<-c.Done()
	})
	p.client = c
	return p
}

func (p *program) hear(ev client.Event[any]) {
	text := fmt.Sprintf("%v %s", ev.Kind, ev.Name)
	if c, ok := ev.Value.(interface{ GetAltStatName() string }); ok {
		text += " " + c.GetAltStatName() + "@" + ev.Version
	}
	if ev.Err != nil {
		text += ": " + ev.Err.Error()
	}
	p.events <- text
}

func (p *program) watch(kind resource.AnyType, name string) {
	p.t.Helper()
	_, err := p.client.Watch(context.Background(), kind, name, p.hear)
	must(p.t, err)
}

func (p *program) watchAll(kind resource.AnyType, collection string) {
	p.t.Helper()
	_, err := p.client.WatchAll(context.Background(), kind, collection, func(b client.Batch[any]) {
		for _, ev := range b.Events {
			p.hear(ev)
		}
	})
	must(p.t, err)
}

// next waits for an event; want is for when there is none.
func (p *program) next(want ...string) string {
	p.t.Helper()
	select {
	case got := <-p.events:
		return got
	case <-time.After(patience):
		p.t.Fatalf("no event, want %q", want)
		return ""
	}
}

// want waits for an event that holds all texts.
func (p *program) want(texts ...string) {
	p.t.Helper()
	got := p.next(texts...)
	for _, text := range texts {
		if !strings.Contains(got, text) {
			p.t.Fatalf("event %q, want %q", got, texts)
		}
	}
}

// wantExactly waits for an event of that text.
func (p *program) wantExactly(text string) {
	p.t.Helper()
	if got := p.next(text); got != text {
		p.t.Fatalf("event %q, want %q", got, text)
	}
}

// wantQuiet checks that nothing was told besides.
func (p *program) wantQuiet() {
	p.t.Helper()
	select {
	case got := <-p.events:
		p.t.Errorf("event %q", got)
	default:
	}
}

// clusters is a response with clusters whose alt_stat_name says how they are.
func clusters(version string, state ...string) *discoveryv3.DiscoveryResponse {
	r := answer(version)
	for i := 0; i < len(state); i += 2 {
		r.Resources = append(r.Resources, pack(&clusterv3.Cluster{Name: state[i], AltStatName: state[i+1]}))
	}
	return r
}

// Through the whole client: values, changes, deletions, a bad file, its end.
// spec: FILE-3, FILE-4
func TestClient(t *testing.T) {
	t.Parallel()
	for _, suffix := range []string{".pb", ".pb_text", ".json", ".yaml"} {
		t.Run(suffix, func(t *testing.T) {
			path := at(t, "cds"+suffix)
			place(t, path, clusters("1", "a", "one", "b", "one", "c", "one"))
			p := start(t, path)
			p.watch(cds.Type, "a")
			p.want("updated a one@1")
			p.watch(cds.Type, "b")
			p.want("updated b one@1")
			place(t, path, clusters("2", "a", "two", "b", "one", "c", "two"))
			p.want("updated a two@2")
			must(t, testutil.PlaceFile(path, []byte("\x00")))
			p.want("ambient error a: ", `file "`+path)
			p.want("ambient error b: ", `file "`+path)
			place(t, path, clusters("3", "a", "two"))
			p.want("recovered a")
			p.want("does not exist b")
			must(t, os.Remove(path))
			p.want("ambient error a: ", "no such file or directory")
		})
	}
}

// A wildcard has all that the file has. Of a bad file it hears once, and once that it is good
// again, and loses nothing.
// spec: FILE-3, FILE-4
func TestClientWildcard(t *testing.T) {
	t.Parallel()
	path := at(t, "cds.yaml")
	place(t, path, clusters("1", "a", "one", "b", "one"))
	p := start(t, path)
	p.watchAll(cds.Type, "*")
	p.want("updated a one@1")
	p.want("updated b one@1")
	p.want("synced *")
	must(t, testutil.PlaceFile(path, []byte("resources: [")))
	p.want("ambient error *: ", `file "`+path+`": YAML, line 1: `)
	p.watchAll(cds.Type, "*")
	p.want("updated a one@1")
	p.want("updated b one@1")
	p.want("synced *")
	p.want("ambient error *: ", `file "`+path+`": YAML, line 1: `)
	must(t, os.Remove(path))
	p.want("ambient error *: ", "no such file or directory")
	p.want("ambient error *: ", "no such file or directory")
	place(t, path, clusters("2", "a", "one", "b", "two"))
	for range 2 {
		p.want("updated b two@2")
		p.wantExactly("recovered *")
	}
	must(t, testutil.PlaceFile(path, []byte("{}")))
	for range 2 {
		p.want("does not exist a")
		p.want("does not exist b")
	}
	p.wantQuiet()
}

// A wildcard of a file that is bad from the start hears that there is nothing to be had, which
// is an answer; the first good content completes it, though it be empty.
// spec: FILE-4
func TestClientWildcardOfBadFile(t *testing.T) {
	t.Parallel()
	path := at(t, "cds.json")
	must(t, testutil.PlaceFile(path, []byte("[]")))
	p := start(t, path)
	p.watchAll(cds.Type, "*")
	p.want("failed *: ", "JSON, line 1:1: want an object")
	must(t, p.client.Ready(t.Context()))
	if states := p.client.Dump(); len(states) != 1 || states[0].Status != "RECEIVED_ERROR" || states[0].Err == nil {
		t.Errorf("dump %+v", states)
	}
	must(t, testutil.PlaceFile(path, []byte("{}")))
	p.want("synced *")
	p.wantQuiet()
}

// A file that cannot be used counts as one resource that was refused, and is no response that
// was accepted.
// spec: FILE-4 METRIC-1
func TestClientCounts(t *testing.T) {
	t.Parallel()
	path := at(t, "cds.json")
	place(t, path, clusters("1", "a", "one", "b", "one"))
	p := start(t, path)
	p.watchAll(cds.Type, "*")
	p.want("updated a")
	p.want("updated b")
	p.want("synced *")
	accepted := p.client.Gauges().Accepted
	must(t, testutil.PlaceFile(path, []byte("[]")))
	p.want("ambient error *: ")
	if diff := cmp.Diff(accepted, p.client.Gauges().Accepted); diff != "" || len(accepted) != 1 {
		t.Errorf("accepted (-before +after)\n%s", diff)
	}
	must(t, os.Remove(path))
	p.want("ambient error *: ")
	place(t, path, clusters("2", "a", "one", "b", "one"))
	p.wantExactly("recovered *")
	for deadline := time.Now().Add(patience); p.valid.Load() < 4 && time.Now().Before(deadline); { // they follow the events
		time.Sleep(time.Millisecond)
	}
	if valid, invalid := p.valid.Load(), p.invalid.Load(); valid != 4 || invalid != 2 {
		t.Errorf("%d resources were good and %d bad, want 4 and 2", valid, invalid)
	}
}

// What a wrapper says beside the value comes from files too. What did not change is no news.
// spec: TYPE-5 FILE-4
func TestClientAttributes(t *testing.T) {
	t.Parallel()
	for _, suffix := range []string{".pb", ".pb_text", ".json", ".yaml"} {
		t.Run(suffix, func(t *testing.T) {
			path := at(t, "cds"+suffix)
			wrapped := testutil.Wrapped("a", "", &clusterv3.Cluster{Name: "a", AltStatName: "one"})
			wrapped.CacheControl = &discoveryv3.Resource_CacheControl{DoNotCache: true}
			wrapped.Metadata = &corev3.Metadata{FilterMetadata: map[string]*structpb.Struct{"k": {}, "l": {}, "m": {}}}
			other := &clusterv3.Cluster{Name: "b", AltStatName: "one"}
			content := func(version string) *discoveryv3.DiscoveryResponse {
				r := answer(version)
				r.Resources = append(r.Resources, pack(wrapped), pack(other))
				return r
			}
			place(t, path, content("1"))
			p := start(t, path)
			heard := make(chan *client.Attributes, 100)
			_, err := p.client.Watch(t.Context(), cds.Type, "a", func(ev client.Event[any]) { heard <- ev.Attributes })
			must(t, err)
			p.watch(cds.Type, "b")
			p.want("updated b one@1")
			other.AltStatName = "two"
			place(t, path, content("2"))
			p.want("updated b two@2")
			wrapped.Metadata.FilterMetadata["n"] = &structpb.Struct{}
			other.AltStatName = "three"
			place(t, path, content("3"))
			p.want("updated b three@3")
			var got []int
			for len(heard) > 0 {
				a := <-heard
				got = append(got, len(a.Metadata.GetFilterMetadata()))
				if !a.DoNotCache {
					t.Errorf("attributes %+v", a)
				}
			}
			if diff := cmp.Diff([]int{3, 4}, got); diff != "" {
				t.Errorf("metadata (-want +got)\n%s", diff)
			}
		})
	}
}

// A file that is not there is a server that is away, and comes when the wait is over.
// spec: FILE-2
func TestClientWithoutFile(t *testing.T) {
	t.Parallel()
	path := at(t, "cds.yaml")
	p := start(t, path)
	p.watch(cds.Type, "a")
	p.want("failed a: ", "no such file or directory")
	place(t, path, clusters("1", "a", "one"))
	p.client.ResetBackoff()
	p.want("updated a one@1")
}

// What a file does not hold is told to be absent again when the file is back, with the same
// content too.
// spec: FILE-4 WATCH-4
func TestClientAbsentAgain(t *testing.T) {
	t.Parallel()
	path := at(t, "cds.yaml")
	place(t, path, clusters("1", "a", "one"))
	p := start(t, path)
	p.watch(cds.Type, "b")
	p.wantExactly("does not exist b")
	must(t, os.Remove(path))
	p.wantPast("no such file", func(got string) bool {
		return strings.HasPrefix(got, "failed b: ") && strings.Contains(got, "no such file or directory")
	})
	place(t, path, clusters("1", "a", "one"))
	p.wantExactly("does not exist b")
	p.wantQuiet()
}

// Of a file of ten thousand a change of one decodes one.
func TestDecodesWhatChanged(t *testing.T) {
	t.Parallel()
	many := 10_000
	if testing.Short() || race.Enabled {
		many = 500
	}
	for _, suffix := range []string{".pb", ".json", ".yaml"} {
		t.Run(suffix, func(t *testing.T) {
			path := at(t, "cds"+suffix)
			place(t, path, numbered(many, "one"))
			var decoded atomic.Int64
			kind := resource.Custom(clusterURL, resource.Options{NameField: 1, FullState: true},
				func(src resource.Source, b []byte) (*clusterv3.Cluster, error) {
					decoded.Add(1)
					v, err := cds.Type.Decode(src, b)
					if err != nil {
						return nil, err
					}
					return v.(*clusterv3.Cluster), nil
				})
			p := start(t, path)
			p.watchAll(kind, "*")
			for range many {
				p.want("updated")
			}
			p.want("synced")
			before := decoded.Load()
			place(t, path, numbered(many, "two"))
			p.want("updated c7 two")
			if diff := cmp.Diff([]int64{int64(many), 1}, []int64{before, decoded.Load() - before}); diff != "" {
				t.Errorf("decoded first, then (-want +got)\n%s", diff)
			}
		})
	}
}

func numbered(n int, state string) *discoveryv3.DiscoveryResponse {
	r := answer(state)
	for i := range n {
		c := &clusterv3.Cluster{Name: fmt.Sprintf("c%d", i), AltStatName: "same"}
		if i == 7 {
			c.AltStatName = state
		}
		r.Resources = append(r.Resources, pack(c))
	}
	return r
}

// placeV2 places a response whose first resource, or else the whole of it, is of version 2.
func placeV2(t *testing.T, path string, r *discoveryv3.DiscoveryResponse, whole bool) {
	t.Helper()
	const v3, v2 = "envoy.config.cluster.v3.Cluster", "envoy.api.v2.Cluster"
	n := 1
	if whole {
		n = -1
	}
	if filepath.Ext(path) != ".pb" { // whose encoders would want to know the type
		must(t, testutil.PlaceFile(path, bytes.Replace(encode(t, path, r), []byte(v3), []byte(v2), n)))
		return
	}
	for i, a := range r.Resources {
		if whole || i == 0 {
			a.TypeUrl = resource.TypePrefix + v2
		}
	}
	if whole {
		r.TypeUrl = resource.TypePrefix + v2
	}
	place(t, path, r)
}

// A file may hold resources of version 2, or of both, in any format, if it is said to. What
// is there is of version 3 to the program. Another file of version 2 is a bad one.
// spec: V2-1 V2-2
func TestClientVersion2(t *testing.T) {
	t.Parallel()
	for _, suffix := range []string{".pb", ".pb_text", ".json", ".yaml"} {
		t.Run(suffix, func(t *testing.T) {
			path := at(t, "cds"+suffix)
			placeV2(t, path, clusters("1", "a", "one", "b", "one"), false)
			p := startServer(t, carrierConfig{Settle: settle, Recheck: recheck}, bootstrap.ManagementServer{
				URI: "file", Carrier: &sourceConfig{Path: path}, TransportV2: true,
			})
			p.watch(cds.Type, "a")
			p.want("updated a one@1")
			p.watch(cds.Type, "b")
			p.want("updated b one@1")
			placeV2(t, path, clusters("2", "a", "two", "b", "one"), true)
			p.want("updated a two@2")
			place(t, path, clusters("3", "b", "three"))
			p.want("updated b three@3")
			p.want("does not exist a")
			p.watch(lds.Type, "l")
			p.want("failed l: ", "envoy.api.v2.Cluster", "envoy.api.v2.Listener")

			placeV2(t, path, clusters("4", "b", "four"), true)
			p.want("updated b four@4")
			other := start(t, path)
			other.watch(cds.Type, "b")
			other.want("failed b: ", "envoy.api.v2.Cluster")
		})
	}
}
