package caddy

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	caddyserver "github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	_ "github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	_ "github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/reverseproxy"

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
	must(t, os.WriteFile(path, []byte(`{"node": {"id": "caddy"}, "xds_servers": [
		{"server_uri": "`+address+`", "channel_creds": [{"type": "insecure"}]}]}`), 0o600))
	return path
}

// backend answers with its name.
func backend(t *testing.T, name string) (address string) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, name) }))
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

// run starts Caddy with a Caddyfile, and gives its address.
func run(t *testing.T, upstreams string) (url string) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	address := free.Addr().String()
	free.Close()
	config, _, err := caddyconfig.GetAdapter("caddyfile").Adapt(fmt.Appendf(nil, `
{
	admin off
	auto_https off
	persist_config off
	log {
		output discard
	}
}
http://%s {
	reverse_proxy {
		lb_policy first
		%s
	}
}
`, address, upstreams), nil)
	must(t, err)
	must(t, caddyserver.Load(config, true))
	t.Cleanup(func() { must(t, caddyserver.Stop()) })
	return "http://" + address
}

func get(t *testing.T, url string) (status int, body string) {
	resp, err := http.Get(url)
	must(t, err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	must(t, err)
	return resp.StatusCode, string(b)
}

// Caddy's requests follow the server's endpoints at once, and go on while the server is dead.
func TestCaddy(t *testing.T) {
	blue, green := backend(t, "blue"), backend(t, "green")
	m := testutil.StartManagementServer(t, testutil.ManagementConfig{})
	must(t, m.Set("1", testutil.EDSCluster("shop"), testutil.Endpoints("shop", blue)))
	url := run(t, "dynamic xds shop {\n bootstrap "+written(t, m.Addr())+"\n}")
	if status, body := get(t, url); status != http.StatusOK || body != "blue" {
		t.Fatalf("%d %q, want blue", status, body)
	}
	must(t, m.Set("2", testutil.EDSCluster("shop"), testutil.Endpoints("shop", green)))
	begin := time.Now()
	for {
		status, body := get(t, url)
		if status != http.StatusOK {
			t.Fatalf("a request failed in between: %d", status)
		}
		if body == "green" {
			break
		}
		if time.Since(begin) > patience {
			t.Fatal("requests go to blue for ever")
		}
	}
	m.Stop()
	for range 100 {
		if status, body := get(t, url); status != http.StatusOK || body != "green" {
			t.Fatalf("without the management server: %d %q, want green", status, body)
		}
	}
}

// A cluster that is not there is an error of its requests, after the timeout at most.
func TestMissing(t *testing.T) {
	m := testutil.StartManagementServer(t, testutil.ManagementConfig{})
	must(t, m.Set("1"))
	url := run(t, "dynamic xds shop {\n bootstrap "+written(t, m.Addr())+"\n timeout 100ms\n}")
	if status, _ := get(t, url); status != http.StatusServiceUnavailable && status != http.StatusBadGateway {
		t.Errorf("status %d, want 502 or 503", status)
	}
}

// The handlers with one bootstrap share a client, and the last one closes it.
func TestSharedClient(t *testing.T) {
	m := testutil.StartManagementServer(t, testutil.ManagementConfig{})
	must(t, m.Set("1"))
	ctx, cancel := caddyserver.NewContext(caddyserver.Context{Context: context.Background()})
	defer cancel()
	path := written(t, m.Addr())
	all := []*Upstreams{{Cluster: "a", Bootstrap: path}, {Cluster: "b", Bootstrap: path}}
	for i, u := range all {
		must(t, u.Provision(ctx))
		if n, _ := clients.References(path); n != i+1 {
			t.Errorf("%d users of the client, want %d", n, i+1)
		}
	}
	for _, u := range all {
		must(t, u.Cleanup())
	}
	if n, there := clients.References(path); there {
		t.Errorf("%d users are left", n)
	}
}

// awaited is a context that tells when it is first waited for.
type awaited struct {
	context.Context
	tell func()
}

func (a awaited) Done() <-chan struct{} {
	a.tell()
	return a.Context.Done()
}

// Requests to one cluster do not wait for another. Caddy's own dynamic upstreams, from DNS, hold
// one lock while they ask: with a name server that is silent every other name waits, too.
func TestOneDoesNotWaitForAnother(t *testing.T) {
	ctx, cancel := caddyserver.NewContext(caddyserver.Context{Context: context.Background()})
	defer cancel()
	request := func(ctx context.Context) *http.Request {
		ctx = context.WithValue(ctx, caddyserver.ReplacerCtxKey, caddyserver.NewReplacer())
		return httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil)
	}
	for name, tt := range map[string]struct {
		make   func(t *testing.T) (slow, quick reverseproxy.UpstreamSource)
		want   bool // whether the quick one answers while the slow one waits
		within time.Duration
	}{
		"ours": {func(t *testing.T) (slow, quick reverseproxy.UpstreamSource) {
			m := testutil.StartManagementServer(t, testutil.ManagementConfig{})
			must(t, m.Set("1", testutil.EDSCluster("shop"), testutil.Endpoints("shop", "10.0.0.1:80")))
			path := written(t, m.Addr())
			silent := &Upstreams{Cluster: "typo", Bootstrap: path, Timeout: caddyserver.Duration(patience)}
			must(t, silent.Provision(ctx))
			good := &Upstreams{Cluster: "shop", Bootstrap: path}
			must(t, good.Provision(ctx))
			t.Cleanup(func() { silent.Cleanup(); good.Cleanup() })
			return silent, good
		}, true, patience},
		"original": {func(t *testing.T) (slow, quick reverseproxy.UpstreamSource) {
			silent, err := net.ListenPacket("udp", "127.0.0.1:0") // it reads and answers nothing
			must(t, err)
			t.Cleanup(func() { silent.Close() })
			of := func(name, server string) reverseproxy.UpstreamSource {
				u := &reverseproxy.SRVUpstreams{Name: name, Resolver: &reverseproxy.UpstreamResolver{Addresses: []string{server}}}
				must(t, u.Provision(ctx))
				return u
			}
			return of("typo.example", silent.LocalAddr().String()), of("shop.example", "127.0.0.1:1") // refused at once
		}, false, 2 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			slow, quick := tt.make(t)
			waits, over, answered := make(chan struct{}), make(chan struct{}), make(chan struct{})
			go func() {
				slow.GetUpstreams(request(awaited{t.Context(), sync.OnceFunc(func() { close(waits) })}))
				close(over)
			}()
			<-waits
			go func() { quick.GetUpstreams(request(t.Context())); close(answered) }()
			got := false
			select {
			case <-answered:
				got = true
			case <-over:
			case <-time.After(tt.within):
			}
			if got != tt.want {
				t.Errorf("answered within %v: %v, want %v", tt.within, got, tt.want)
			}
		})
	}
}
