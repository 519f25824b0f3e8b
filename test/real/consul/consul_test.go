package consul

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/internal/realtest"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/testutil"
	"github.com/xdswatch/xdswatch/view"
	"github.com/xdswatch/xdswatch/view/endpoint"
)

// connect makes a client as a sidecar proxy has it; Consul speaks delta alone.
func connect(t *testing.T, addr string, config client.Config) *client.Client {
	t.Helper()
	config.Variant = client.VariantDelta
	config.Bootstrap = &bootstrap.Config{
		Node:    &corev3.Node{Id: "web-sidecar-proxy"},
		Servers: []bootstrap.ManagementServer{{URI: addr, ChannelCreds: bootstrap.Insecure()}},
	}
	return realtest.Client(t, config)
}

// sidecar follows everything that the server has for a proxy.
type sidecar struct {
	t         *testing.T
	listeners *view.Listeners
}

func resolve(t *testing.T, c *client.Client) sidecar {
	l, err := view.NewListeners(t.Context(), c, view.Config{OnSnapshot: func(s *view.Snapshot) {
		for c := range s.Clusters() {
			if s.Err == nil && c.Status() != view.StatusOK {
				t.Errorf("listener %q, snapshot %d: cluster %q is %v: %v", s.Root.Name, s.Serial, c.Name, c.Status(), c.Err())
			}
		}
	}}, nil)
	realtest.Must(t, err)
	t.Cleanup(func() {
		l.Stop()
		<-l.Done()
	})
	return sidecar{t, l}
}

// lines are the clusters below each listener with their endpoints, or their leaves.
func (p sidecar) lines() (all []string) {
	for name, v := range p.listeners.All() {
		s := v.Snapshot()
		if s == nil || !s.Complete {
			return []string{name + " is not complete"}
		}
		listener, _, _ := strings.Cut(name, ":")
		for c := range s.Clusters() {
			cluster, _, _ := strings.Cut(c.Name, ".internal.")
			line := fmt.Sprintf("%s > %s %v", listener, cluster, c.Kind())
			if c.Endpoints != nil {
				for _, e := range endpoint.New(c.Endpoints.Assignment(), endpoint.Config{}).Endpoints() {
					line += " " + e.Address.Addr
				}
			}
			if n := len(c.Leaves()); n > 0 {
				line += fmt.Sprintf(" of %d", n)
			}
			all = append(all, line)
		}
	}
	return all
}

func (p sidecar) await(want ...string) {
	p.t.Helper()
	var got []string
	for deadline := time.Now().Add(realtest.Patience); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if got = p.lines(); slices.Equal(got, want) {
			return
		}
	}
	p.t.Fatalf("the proxy has\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
}

const domain = "11111111-2222-3333-4444-555555555555.consul"

// variations are fixtures of Consul, and what they lead to: a service with failover is an aggregate.
var variations = map[string][]string{
	"default": {
		"db > db.default.dc1 eds 10.10.1.1:8080 10.10.1.2:8080",
		"prepared_query > geo-cache.default.dc1.query." + domain + " eds 10.10.1.1:8080 10.20.1.2:8080",
		"public_listener > local_app static 127.0.0.1:8080",
	},
	"failover": {
		"db > db.default.dc1 aggregate of 2",
		"db > failover-target~0~db.default.dc1 eds 10.10.1.1:8080 10.10.1.2:8080",
		"db > failover-target~1~db.default.dc1 eds 10.20.1.1:8080 10.20.1.2:8080",
		"prepared_query > geo-cache.default.dc1.query." + domain + " eds 10.10.1.1:8080 10.20.1.2:8080",
		"public_listener > local_app static 127.0.0.1:8080",
	},
}

// The view resolves all that Consul has for a sidecar, follows a change, and another process.
func TestResolve(t *testing.T) {
	s := start(t, "default")
	proxy, err := testutil.NewTCPProxy(s.Addrs[0])
	realtest.Must(t, err)
	defer proxy.Close()
	p := resolve(t, connect(t, proxy.Addr(), client.Config{}))
	for _, variation := range []string{"default", "failover", "default"} {
		s.Set(variation)
		p.await(variations[variation]...)
	}
	other := start(t, "failover")
	proxy.SetTarget(other.Addrs[0])
	proxy.Cut()
	p.await(variations["failover"]...)
}

// While a client refuses the clusters, it keeps those that it has; then it takes what comes.
func TestRefused(t *testing.T) {
	s := start(t, "default")
	var refuse atomic.Bool
	c := connect(t, s.Addrs[0], client.Config{Guards: map[string][]client.Guard{cds.Type.TypeURL(): {func(*client.Proposal) error {
		if refuse.Load() {
			return errors.New("not now")
		}
		return nil
	}}}})
	clusters := realtest.Watch(t, c, cds.Type, "*")
	p := resolve(t, c)
	p.await(variations["default"]...)
	clusters.Await(t, "synced *")
	refuse.Store(true)
	s.Set("failover")
	clusters.Await(t, "ambient error db.default.dc1.internal."+domain)
	p.await(variations["default"]...)
	refuse.Store(false)
	// Consul sends again what was refused with its next state, if it has heard of the refusal by then.
	for deadline := time.Now().Add(realtest.Patience); !slices.Equal(p.lines(), variations["failover"]) && time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		s.Set("failover")
	}
	p.await(variations["failover"]...)
}
