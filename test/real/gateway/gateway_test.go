// Package gateway runs the client against the HTTP gateway of go-control-plane. It is a
// module of its own, because the gateway's package needs the module of the rate limit
// service.
package gateway

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"github.com/envoyproxy/go-control-plane/pkg/server/v3"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/resource/eds"
	"github.com/xdswatch/xdswatch/transport"
)

// gateway is go-control-plane's cache, server and HTTP gateway on a socket.
type gateway struct {
	*httptest.Server
	cache cache.SnapshotCache

	mu    sync.Mutex
	codes []int
}

func start(t *testing.T) *gateway {
	g := &gateway{cache: cache.NewSnapshotCache(false, cache.IDHash{}, nil)}
	h := &server.HTTPGateway{Server: server.NewServer(t.Context(), g.cache, nil)}
	g.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, code, err := h.ServeHTTP(r)
		g.mu.Lock()
		g.codes = append(g.codes, code)
		g.mu.Unlock()
		if err != nil {
			http.Error(w, err.Error(), code)
			return
		}
		w.WriteHeader(code)
		_, _ = w.Write(body) // to a client that may be gone
	}))
	t.Cleanup(g.Close)
	return g
}

func (g *gateway) set(t *testing.T, version string, clusters ...string) {
	t.Helper()
	resources := map[resourcev3.Type][]types.Resource{}
	for _, name := range clusters {
		resources[resourcev3.ClusterType] = append(resources[resourcev3.ClusterType], &clusterv3.Cluster{Name: name})
		resources[resourcev3.EndpointType] = append(resources[resourcev3.EndpointType], &endpointv3.ClusterLoadAssignment{ClusterName: name})
	}
	snapshot, err := cache.NewSnapshot(version, resources)
	if err == nil {
		err = g.cache.SetSnapshot(t.Context(), "me", snapshot)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// answered waits until polls were answered with a status so many times.
func (g *gateway) answered(t *testing.T, code, times int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		g.mu.Lock()
		n := 0
		for _, c := range g.codes {
			if c == code {
				n++
			}
		}
		g.mu.Unlock()
		if n >= times {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("%d answers with %d, want %d", n, code, times)
		}
	}
}

// listener is what a watch hears, a line each.
type listener chan string

func (l listener) hear(ev client.Event[any]) {
	err := "no error"
	if ev.Err != nil {
		err = ev.Err.Error()
	}
	l <- ev.Kind.String() + " " + ev.Name + ": " + err
}

func (l listener) hears(t *testing.T, want string) {
	t.Helper()
	select {
	case got := <-l:
		if !strings.HasPrefix(got, want) {
			t.Fatalf("heard %q, want %q", got, want)
		}
	case <-time.After(30 * time.Second):
		t.Fatalf("nothing heard, want %q", want)
	}
}

func watch(t *testing.T, c *client.Client, kind resource.AnyType, name string) listener {
	t.Helper()
	l := make(listener, 100)
	if _, err := c.Watch(t.Context(), kind, name, l.hear); err != nil {
		t.Fatal(err)
	}
	return l
}

// go-control-plane's gateway spells fields as in the proto files, answers 500 while there is
// no snapshot, and 304 to whoever has the version, whatever else is asked.
// spec: S-26
func TestGateway(t *testing.T) {
	g := start(t)
	addr := g.Listener.Addr().String()
	c, err := client.New(client.Config{
		Bootstrap: &bootstrap.Config{
			Node: &corev3.Node{Id: "me"},
			Servers: []bootstrap.ManagementServer{{
				URI: "gateway", ChannelCreds: bootstrap.Insecure(), PerType: true,
				RetryBase: time.Millisecond, RetryMax: 10 * time.Millisecond,
				Carrier: &bootstrap.REST{Endpoints: []bootstrap.RESTEndpoint{{Address: addr}}, RefreshDelay: 5 * time.Millisecond},
			}},
		},
		Logger:    slog.New(slog.NewTextHandler(t.Output(), nil)),
		Transport: transport.ByServer{REST: transport.NewREST(transport.RESTConfig{})},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		c.Close()
		<-c.Done()
	}()
	a := watch(t, c, cds.Type, "a")
	a.hears(t, "failed a: xds")
	g.answered(t, 500, 2)

	g.set(t, "1", "a", "b")
	a.hears(t, "updated a: no error")
	g.answered(t, 304, 2)
	ea := watch(t, c, eds.Type, "a")
	ea.hears(t, "updated a: no error")
	g.answered(t, 304, 4)
	eb := watch(t, c, eds.Type, "b")
	eb.hears(t, "updated b: no error")

	g.cache.ClearSnapshot("me")
	a.hears(t, "ambient error a: xds")
	g.set(t, "1", "a", "b")
	a.hears(t, "recovered a: no error")

	g.set(t, "2", "b")
	a.hears(t, "does not exist a: no error")
	g.mu.Lock()
	defer g.mu.Unlock()
	if slices.ContainsFunc(g.codes, func(code int) bool { return code != 200 && code != 304 && code != 500 }) {
		t.Errorf("answers %v", g.codes)
	}
}
