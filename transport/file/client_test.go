package file_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/google/go-cmp/cmp"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource"
	"github.com/xdswatch/xdswatch/resource/cds"
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
	boot := &bootstrap.Config{Servers: []bootstrap.ManagementServer{{
		URI: "file://" + path, ChannelCreds: bootstrap.Insecure(), File: &source,
	}}}
	p := &program{t: t, events: make(chan string, 100_000)}
	c, err := client.New(client.Config{
		Bootstrap: boot, Transport: file.NewBuilder(config, nil), Logger: slog.New(slog.DiscardHandler),
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

func (p *program) hear(ev client.Event) {
	text := fmt.Sprintf("%v %s", ev.Kind, ev.Name)
	if c, ok := ev.Value.(interface{ GetAltStatName() string }); ok {
		text += " " + c.GetAltStatName() + "@" + ev.Version
	}
	if ev.Err != nil {
		text += ": " + ev.Err.Error()
	}
	p.events <- text
}

func (p *program) watch(kind resource.Kind, name string) {
	p.t.Helper()
	_, err := p.client.Watch(context.Background(), kind, name, p.hear)
	must(p.t, err)
}

func (p *program) watchAll(kind resource.Kind, collection string) {
	p.t.Helper()
	_, err := p.client.WatchAll(context.Background(), kind, collection, func(b client.Batch) {
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
			p.want("ambient error a")
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
	p.want("ambient error *: ", `file "`+path+`": YAML, line 1: `)
	p.want("synced *")
	must(t, os.Remove(path))
	p.want("ambient error *: ", "no such file or directory")
	p.want("ambient error *: ", "no such file or directory")
	place(t, path, clusters("2", "a", "one", "b", "two"))
	for range 2 {
		p.want("updated b two@2")
		p.wantExactly("ambient error *")
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
	path := at(t, "cds.json")
	must(t, testutil.PlaceFile(path, []byte("[]")))
	p := start(t, path)
	p.watchAll(cds.Type, "*")
	p.want("failed *: ", "JSON, line 1: want an object")
	must(t, p.client.Ready(t.Context()))
	if states := p.client.Dump(); len(states) != 1 || states[0].Status != "REQUESTED" || states[0].Err == nil {
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
	p.wantExactly("ambient error *")
	for deadline := time.Now().Add(patience); p.valid.Load() < 4 && time.Now().Before(deadline); { // they follow the events
		time.Sleep(time.Millisecond)
	}
	if valid, invalid := p.valid.Load(), p.invalid.Load(); valid != 4 || invalid != 2 {
		t.Errorf("%d resources were good and %d bad, want 4 and 2", valid, invalid)
	}
}

// A file that is not there is a server that is away, and comes when the wait is over.
// spec: FILE-2
func TestClientWithoutFile(t *testing.T) {
	path := at(t, "cds.yaml")
	p := start(t, path)
	p.watch(cds.Type, "a")
	p.want("failed a: ", "no such file or directory")
	place(t, path, clusters("1", "a", "one"))
	p.client.ResetBackoff()
	p.want("updated a one@1")
}

// Of a file of ten thousand a change of one decodes one.
func TestDecodesWhatChanged(t *testing.T) {
	many := 10_000
	if testing.Short() || raceEnabled {
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
