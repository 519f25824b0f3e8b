package client_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/internal/machine"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/transport"
)

// The end of the time for a first answer names it, lets Ready go on, and leaves the watch
// as it is. Get has its caller's context in its place.
//
// spec: DNE-10
func TestInitialFetchTimeout(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		rec := &record{}
		began := time.Now()
		within := client.InitialFetchTimeout(3 * time.Second)
		// The wildcard comes first, since one that begins after names begins a new stream.
		var batches []client.Event[any]
		_, err := r.c.WatchAll(t.Context(), cds.Type, "*", func(b client.Batch[any]) { batches = append(batches, b.Events...) }, within)
		must(t, err)
		_, err = r.c.Watch(t.Context(), cds.Type, "a", rec.hear, within)
		must(t, err)
		set, err := r.c.NewSet(t.Context(), cds.Type, func(client.Batch[any]) {}, within)
		must(t, err)
		must(t, set.Add("s"))
		got := make(chan error, 1)
		go func() {
			_, err := r.c.Get(t.Context(), cds.Type, "g", within)
			got <- err
		}()
		must(t, r.c.Ready(t.Context()))
		if took := time.Since(began); took != 3*time.Second {
			t.Errorf("ready after %v, want 3s", took)
		}
		rec.heard(t, "failed a timeout")
		var ft *client.FetchTimeoutError
		if err := rec.last().Err; !errors.As(err, &ft) || ft.After != 3*time.Second || !strings.Contains(err.Error(), "no answer within the initial fetch timeout of 3s") {
			t.Errorf("the error is %v", err)
		}
		synctest.Wait()
		same(t, "the collection heard", lines(batches), []string{"failed * timeout"})
		select {
		case err := <-got:
			t.Errorf("Get ended with %v", err)
		default:
		}
		st := r.accept()
		r.clusters(st, "1", "n1", "a", "g")
		must(t, <-got)
		rec.heard(t, "failed a timeout", "updated a 1")
	})
}

// How long is waited is the source's, be it that which the watch brings, or else the
// bootstrap's; the watch itself may say otherwise.
//
// spec: DNE-10
func TestFetchTimeoutOfSources(t *testing.T) {
	sources := func(c *client.Config) {
		c.Bootstrap.Sources = []bootstrap.Source{{
			Authorities: []string{"x"}, Servers: c.Bootstrap.Servers, InitialFetchTimeout: 2 * time.Second,
		}}
	}
	inBubble(t, func(t *testing.T, r *rig) {
		peer, err := bootstrap.Server(r.srv.Target())
		must(t, err)
		source := bootstrap.Source{Servers: peer.Servers, InitialFetchTimeout: 4 * time.Second}
		var mu sync.Mutex
		fired := map[string]time.Duration{}
		began := time.Now()
		for name, opts := range map[string][]client.WatchOption{
			"plain": nil,
			"xdstp://x/envoy.config.cluster.v3.Cluster/source": nil,
			"xdstp://x/envoy.config.cluster.v3.Cluster/never":  {client.InitialFetchTimeout(0)},
			"peer":  {client.FromSource(source)},
			"apart": {client.FromSource(source), client.InScope("s")},
			"both":  {client.FromSource(source), client.InitialFetchTimeout(time.Second)},
		} {
			_, err := r.c.Watch(t.Context(), cds.Type, name, func(ev client.Event[any]) {
				mu.Lock()
				defer mu.Unlock()
				if ev.Kind == client.EventFailed {
					fired[name] = time.Since(began)
				}
			}, opts...)
			must(t, err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		same(t, "fired", fired, map[string]time.Duration{
			"xdstp://x/envoy.config.cluster.v3.Cluster/source": 2 * time.Second,
			"peer": 4 * time.Second, "apart": 4 * time.Second, "both": time.Second,
		})
	}, sources)
}

// A program starts what an Envoy bootstrap asks for in one loop.
//
// spec: BOOTE-2 BOOTE-4 DNE-10
func TestAtStartup(t *testing.T) {
	var own *bootstrap.Config
	inBubble(t, func(t *testing.T, r *rig) {
		var heard []client.Event[any]
		began := time.Now()
		var at []time.Duration
		for _, s := range own.Startup {
			_, err := r.c.WatchAll(t.Context(), cds.Type, s.Collection, func(b client.Batch[any]) {
				heard = append(heard, b.Events...)
				at = append(at, time.Since(began))
			}, client.AtStartup(s))
			must(t, err)
		}
		st := r.accept()
		r.request(st, "cds []")
		time.Sleep(10 * time.Second)
		synctest.Wait()
		same(t, "heard", lines(heard), []string{"failed * timeout"})
		same(t, "when", at, []time.Duration{7 * time.Second})
	}, func(c *client.Config) {
		var err error
		own, err = bootstrap.Parse("envoy", []byte(`{"node":{"id":"a","cluster":"b"},"dynamic_resources":{"cds_config":{"initial_fetch_timeout":"7s",`+
			`"api_config_source":{"api_type":"AGGREGATED_GRPC","grpc_services":[{"google_grpc":{"target_uri":"`+c.Bootstrap.Servers[0].URI+`"}}]}}}}`))
		must(t, err)
		c.Bootstrap = own
	})
}

// What a rate holds back can be measured.
//
// spec: RATE-1
func TestThrottled(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		same(t, "throttled before anything", r.c.Gauges().Throttled, []client.Throttle(nil))
		_, rec := r.watch("a")
		st := r.accept()
		r.request(st, "cds [a]")
		throttled := func(want client.Throttle) {
			t.Helper()
			want.Server = r.srv.Target()
			same(t, "throttled", r.c.Gauges().Throttled, []client.Throttle{want})
		}
		throttled(client.Throttle{})
		r.clusters(st, "1", "n1", "a")
		r.clusters(st, "2", "n2", "a")
		rec.heard(t, "updated a 1", "updated a 2")
		throttled(client.Throttle{Enforced: 1, Waiting: 1})
		r.quiet(st, 1)
		time.Sleep(2 * time.Second)
		r.latest(st, "cds [a] v2 n2")
		r.quiet(st, 2)
		throttled(client.Throttle{Enforced: 1})
	}, func(c *client.Config) {
		c.Bootstrap.Servers[0].RateLimit = &bootstrap.RateLimit{MaxTokens: 1, FillRate: 0.5}
	})
}

// A rate that is less than a token a year is one a year, and what is left out has defaults.
//
// spec: RATE-1
func TestRateOf(t *testing.T) {
	const year = 365 * 24 * time.Hour
	for _, tt := range []struct {
		limit *bootstrap.RateLimit
		want  machine.Rate
	}{
		{nil, machine.Rate{}},
		{&bootstrap.RateLimit{}, machine.Rate{Tokens: 100, Every: time.Second / 10}},
		{&bootstrap.RateLimit{MaxTokens: 3, FillRate: 0.5}, machine.Rate{Tokens: 3, Every: 2 * time.Second}},
		{&bootstrap.RateLimit{FillRate: 1e-300}, machine.Rate{Tokens: 100, Every: year}},
		{&bootstrap.RateLimit{FillRate: 1e-9}, machine.Rate{Tokens: 100, Every: year}},
		{&bootstrap.RateLimit{FillRate: 1e300}, machine.Rate{Tokens: 100, Every: 1}},
	} {
		same(t, "rate", client.RateOf(tt.limit), tt.want)
	}
}

// A source may want the node with every request of its streams.
//
// spec: NODE-1
func TestNodeOnEveryRequestOfServer(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.watch("a")
		st := r.accept()
		r.clusters(st, "1", "n1", "a")
		for i, req := range st.Requests() {
			if req.Node().GetId() != "node-1" {
				t.Errorf("request %d has node %v", i, req.Node())
			}
		}
		r.quiet(st, 2)
	}, func(c *client.Config) { c.Bootstrap.Servers[0].NodeOnEveryRequest = true })
}

// built keeps what connections are asked for, and makes none.
type built struct{ servers []bootstrap.ManagementServer }

func (b *built) Build(s bootstrap.ManagementServer) (transport.Conn, error) {
	b.servers = append(b.servers, s)
	return unreachable{}, nil
}

type unreachable struct{}

func (unreachable) Open(context.Context, string) (transport.Stream, error) {
	return nil, errors.New("nowhere")
}
func (unreachable) Close() error { return nil }

// A program's variant and streams are not forced on servers that know a single way.
//
// spec: CFG-5 REST-5
func TestOverrideLeavesOtherKinds(t *testing.T) {
	b := &built{}
	boot := &bootstrap.Config{
		Node: &corev3.Node{Id: "n"},
		Servers: []bootstrap.ManagementServer{
			{URI: "x:1", ChannelCreds: bootstrap.Insecure()},
			{URI: "rest:c", Carrier: &bootstrap.REST{
				RefreshDelay: time.Second, Endpoints: []bootstrap.RESTEndpoint{{Address: "h:1", ChannelCreds: bootstrap.Insecure()}},
			}},
			{URI: "file:///x", Carrier: &bootstrap.File{Path: "/x"}},
		},
	}
	c, err := client.New(client.Config{Bootstrap: boot, Variant: client.VariantDelta, Streams: client.StreamsAggregated, Transport: b})
	must(t, err)
	defer c.Close()
	var got []string
	for _, s := range b.servers {
		got = append(got, strings.TrimSpace(strings.Join([]string{s.URI, word(s.Delta, "delta"), word(s.PerType, "per-type")}, " ")))
	}
	same(t, "servers", got, []string{"x:1 delta", "rest:c  per-type", "file:///x"})
}

func word(is bool, text string) string {
	if is {
		return text
	}
	return ""
}
