package prometheus

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	registry "github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/discovery"
	"github.com/prometheus/prometheus/discovery/targetgroup"
	"github.com/prometheus/prometheus/discovery/xds"
	"go.yaml.in/yaml/v2"

	"github.com/xdswatch/xdswatch/resource/eds"
	"github.com/xdswatch/xdswatch/testutil"
)

const patience = 30 * time.Second

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// written is the path of a bootstrap for a server.
func written(t *testing.T, address string) string {
	path := filepath.Join(t.TempDir(), "bootstrap.json")
	must(t, os.WriteFile(path, []byte(`{"node": {"id": "prometheus"}, "authorities": {"prod": {}}, "xds_servers": [
		{"server_uri": "`+address+`", "channel_creds": [{"type": "insecure"}]}]}`), 0o600))
	return path
}

// manage runs Prometheus' own discovery manager with a configuration as it stands in a file.
func manage(t *testing.T, config string) (targets func() []string) {
	var scrape struct {
		Configs []*Config `yaml:"xds_eds_sd_configs"`
	}
	must(t, yaml.UnmarshalStrict([]byte(config), &scrape))
	var configs discovery.Configs
	for _, c := range scrape.Configs {
		configs = append(configs, c)
	}
	metrics, err := discovery.CreateAndRegisterSDMetrics(registry.NewRegistry())
	must(t, err)
	m := discovery.NewManager(t.Context(), slog.New(slog.DiscardHandler), registry.NewRegistry(), metrics, discovery.Updatert(10*time.Millisecond))
	go m.Run()
	must(t, m.ApplyConfig(map[string]discovery.Configs{"mesh": configs}))
	var last []string
	return func() []string {
		select {
		case all := <-m.SyncCh():
			last = nil
			for _, g := range all["mesh"] {
				for _, target := range g.Targets {
					last = append(last, string(g.Labels["__meta_xds_cluster"])+"="+string(target[model.AddressLabel])+" "+string(target["__meta_xds_zone"]))
				}
			}
			slices.Sort(last)
		case <-time.After(10 * time.Millisecond):
		}
		return last
	}
}

func await(t *testing.T, targets func() []string, want ...string) {
	t.Helper()
	var got []string
	for deadline := time.Now().Add(patience); ; {
		if got = targets(); slices.Equal(got, want) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("targets are %q, want %q", got, want)
		}
	}
}

// Named clusters: their endpoints come, change and go as the server says.
func TestClusters(t *testing.T) {
	m := testutil.StartManagementServer(t, testutil.ManagementConfig{})
	must(t, m.Set("1",
		testutil.EndpointsIn("shop", testutil.Locality("a", 0, 1, "10.0.0.1:80"), testutil.Locality("b", 0, 1, "10.0.0.2:80")),
		testutil.Endpoints("other", "10.0.0.9:80")))
	targets := manage(t, "xds_eds_sd_configs: [{bootstrap: "+written(t, m.Addr())+", clusters: [shop, blog]}]")
	await(t, targets, "shop=10.0.0.1:80 a", "shop=10.0.0.2:80 b")
	must(t, m.Set("2",
		testutil.EndpointsIn("shop", testutil.Locality("b", 0, 1, "10.0.0.2:80")),
		testutil.EndpointsIn("blog", testutil.Locality("c", 0, 1, "10.0.0.3:80"))))
	await(t, targets, "blog=10.0.0.3:80 c", "shop=10.0.0.2:80 b")
	m.Stop() // the targets stay
	must(t, m.Restart(false))
	must(t, m.Set("3", testutil.EndpointsIn("blog", testutil.Locality("c", 0, 1, "10.0.0.4:80"))))
	await(t, targets, "blog=10.0.0.4:80 c", "shop=10.0.0.2:80 b")
}

// All that a server has, and what it deletes (delta says so at once).
func TestCollection(t *testing.T) {
	m := testutil.StartManagementServer(t, testutil.ManagementConfig{})
	must(t, m.Set("1", testutil.EndpointsIn("shop", testutil.Locality("a", 0, 1, "10.0.0.1:80")),
		testutil.EndpointsIn("blog", testutil.Locality("a", 0, 1, "10.0.0.2:80"))))
	targets := manage(t, "xds_eds_sd_configs: [{bootstrap: "+written(t, m.Addr())+`, collections: ["*"], delta: true}]`)
	await(t, targets, "blog=10.0.0.2:80 a", "shop=10.0.0.1:80 a")
	must(t, m.Set("2", testutil.EndpointsIn("blog", testutil.Locality("a", 0, 1, "10.0.0.2:80"))))
	await(t, targets, "blog=10.0.0.2:80 a")
}

// The members of a glob of structured names, as they come and go.
func TestGlob(t *testing.T) {
	const eu = "xdstp://prod/envoy.config.endpoint.v3.ClusterLoadAssignment/eu/"
	m := testutil.StartCollectionServer(t)
	of := func(cluster, address string) *discoveryv3.Resource {
		return testutil.Wrapped(cluster, "1", testutil.EndpointsIn(cluster, testutil.Locality("a", 0, 1, address)))
	}
	must(t, m.Set(of(eu+"shop", "10.0.0.1:80"), of(eu+"deep/shop", "10.0.0.2:80"), of("shop", "10.0.0.3:80")))
	targets := manage(t, "xds_eds_sd_configs: [{bootstrap: "+written(t, m.Addr())+`, collections: ["`+eu+`*"], delta: true}]`)
	await(t, targets, eu+"shop=10.0.0.1:80 a")
	must(t, m.Set(of(eu+"blog", "10.0.0.4:80")))
	await(t, targets, eu+"blog=10.0.0.4:80 a", eu+"shop=10.0.0.1:80 a")
	m.Remove(eds.Type.TypeURL(), eu+"shop")
	await(t, targets, eu+"blog=10.0.0.4:80 a")
}

func TestBadConfigs(t *testing.T) {
	for config, want := range map[string]string{
		"{}":                   "no bootstrap is given",
		"{bootstrap: x}":       "no clusters or collections",
		"{bootstrap: x, c: 1}": "field c not found",
	} {
		var c Config
		if err := yaml.UnmarshalStrict([]byte(config), &c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", config, err, want)
		}
	}
	if _, err := (&Config{Bootstrap: filepath.Join(t.TempDir(), "none.json")}).NewDiscoverer(discovery.DiscovererOptions{}); err == nil {
		t.Error("a bootstrap that is not there is taken")
	}
}

// Run returns when its context is cancelled, as Prometheus asks for. Prometheus' own discovery
// over xDS, of Kuma, goes on until it would ask the server again.
func TestRunReturns(t *testing.T) {
	ours := func(t *testing.T, asked func()) discovery.Discoverer {
		m := testutil.StartManagementServer(t, testutil.ManagementConfig{OnRequest: func(*testutil.Request) { asked() }})
		d, err := (&Config{Bootstrap: written(t, m.Addr()), Clusters: []string{"shop"}}).NewDiscoverer(
			discovery.DiscovererOptions{Logger: slog.New(slog.DiscardHandler)})
		must(t, err)
		return d
	}
	kuma := func(t *testing.T, asked func()) discovery.Discoverer {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			http.NotFound(w, r)
			asked()
		}))
		t.Cleanup(s.Close)
		c := xds.DefaultKumaSDConfig
		c.Server = s.URL
		c.RefreshInterval = model.Duration(30 * time.Second)
		r := registry.NewRegistry()
		metrics := c.NewDiscovererMetrics(r, discovery.NewRefreshMetrics(r))
		must(t, metrics.Register())
		d, err := c.NewDiscoverer(discovery.DiscovererOptions{Logger: slog.New(slog.DiscardHandler), Metrics: metrics})
		must(t, err)
		return d
	}
	for name, tt := range map[string]struct {
		make   func(t *testing.T, asked func()) discovery.Discoverer
		want   bool
		within time.Duration
	}{"ours": {ours, true, patience}, "kuma": {kuma, false, 2 * time.Second}} {
		t.Run(name, func(t *testing.T) {
			running := make(chan struct{})
			d := tt.make(t, sync.OnceFunc(func() { close(running) }))
			ctx, cancel := context.WithCancel(t.Context())
			returned := make(chan struct{})
			go func() {
				d.Run(ctx, make(chan []*targetgroup.Group))
				close(returned)
			}()
			<-running
			cancel()
			got := false
			select {
			case <-returned:
				got = true
			case <-time.After(tt.within):
			}
			if got != tt.want {
				t.Errorf("returned within %v: %v, want %v", tt.within, got, tt.want)
			}
		})
	}
}
