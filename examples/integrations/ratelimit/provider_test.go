package ratelimit_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
	"github.com/envoyproxy/ratelimit/src/config"
	"github.com/envoyproxy/ratelimit/src/provider"
	"github.com/envoyproxy/ratelimit/src/server"
	service "github.com/envoyproxy/ratelimit/src/service"
	"github.com/envoyproxy/ratelimit/src/settings"
	"github.com/envoyproxy/ratelimit/src/stats"
	gostats "github.com/lyft/gostats"
	"google.golang.org/grpc/health"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/examples/integrations/ratelimit"
	"github.com/xdswatch/xdswatch/testutil"
)

const patience = 30 * time.Second

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func manager() stats.Manager {
	return stats.NewStatManager(gostats.NewStore(gostats.NewNullSink(), false), settings.Settings{})
}

// limit is a configuration with one limit for each minute. A limit without a unit is none that
// the service can load.
func limit(name string, unit ratelimitv3.RateLimitUnit, requests uint32) *ratelimitv3.RateLimitConfig {
	return &ratelimitv3.RateLimitConfig{Name: name, Domain: name, Descriptors: []*ratelimitv3.RateLimitDescriptor{{
		Key: "path", RateLimit: &ratelimitv3.RateLimitPolicy{Unit: unit, RequestsPerUnit: requests},
	}}}
}

// ours and theirs are the providers, for one server.
func ours(t *testing.T, address string) provider.RateLimitConfigProvider {
	boot, err := bootstrap.Server(address)
	must(t, err)
	c, err := client.New(client.Config{Bootstrap: boot})
	must(t, err)
	t.Cleanup(func() { c.Close() })
	p, err := ratelimit.New(c, manager(), settings.Settings{})
	must(t, err)
	return p
}

func theirs(_ *testing.T, address string) provider.RateLimitConfigProvider {
	return provider.NewXdsGrpcSotwProvider(settings.Settings{
		ConfigGrpcXdsServerUrl: address, ConfigGrpcXdsNodeId: "test", ConfigGrpcXdsServerConnectRetryInterval: time.Second,
		XdsClientBackoffInitialInterval: 10 * time.Second, XdsClientBackoffMaxInterval: time.Minute, XdsClientBackoffRandomFactor: 0.5,
	}, manager())
}

// serve starts the service itself, which waits for a first configuration.
func serve(p provider.RateLimitConfigProvider) (limitOf func(name string) uint32) {
	s := service.NewService(nothing{}, p, manager(), server.NewHealthChecker(health.NewServer(), "ratelimit", false), clock{}, false, false, false)
	return func(name string) uint32 {
		c, _, _ := s.GetCurrentConfig()
		l := c.GetLimit(context.Background(), name, &commonv3.RateLimitDescriptor{
			Entries: []*commonv3.RateLimitDescriptor_Entry{{Key: "path", Value: "/"}},
		})
		if l == nil {
			return 0
		}
		return l.Limit.RequestsPerUnit
	}
}

// nothing is a cache that counts nothing: the tests are about the configuration.
type nothing struct{}

func (nothing) DoLimit(context.Context, *pb.RateLimitRequest, []*config.RateLimit) []*pb.RateLimitResponse_DescriptorStatus {
	return nil
}
func (nothing) Flush() {}

type clock struct{}

func (clock) UnixNow() int64 { return time.Now().Unix() }

func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not in %v: %s", patience, what)
		}
	}
}

// The service follows what the server has: changes, names that come and go, a server that
// restarts.
func TestService(t *testing.T) {
	m := testutil.StartManagementServer(t, testutil.ManagementConfig{})
	must(t, m.Set("1", limit("shop", ratelimitv3.RateLimitUnit_MINUTE, 10)))
	p := ours(t, m.Addr())
	defer p.Stop()
	limitOf := serve(p)
	if got := limitOf("shop"); got != 10 {
		t.Fatalf("the first limit is %d, want 10", got)
	}
	must(t, m.Set("2", limit("shop", ratelimitv3.RateLimitUnit_MINUTE, 20), limit("blog", ratelimitv3.RateLimitUnit_MINUTE, 5)))
	await(t, "limits of version 2", func() bool { return limitOf("shop") == 20 && limitOf("blog") == 5 })
	m.Stop()
	must(t, m.Restart(false))
	must(t, m.Set("3", limit("blog", ratelimitv3.RateLimitUnit_MINUTE, 6)))
	await(t, "limits of version 3", func() bool { return limitOf("shop") == 0 && limitOf("blog") == 6 })
}

// One configuration that cannot be loaded holds back itself alone. The original holds back all.
func TestBadConfiguration(t *testing.T) {
	for name, tt := range map[string]struct {
		make func(*testing.T, string) provider.RateLimitConfigProvider
		want uint32
	}{"ours": {ours, 20}, "original": {theirs, 10}} {
		t.Run(name, func(t *testing.T) {
			var refused atomic.Int64
			m := testutil.StartManagementServer(t, testutil.ManagementConfig{OnRequest: func(r *testutil.Request) {
				if r.ErrorDetail() != nil {
					refused.Add(1)
				}
			}})
			must(t, m.Set("1", limit("shop", ratelimitv3.RateLimitUnit_MINUTE, 10)))
			p := tt.make(t, m.Addr())
			defer p.Stop()
			limitOf := serve(p)
			must(t, m.Set("2", limit("shop", ratelimitv3.RateLimitUnit_MINUTE, 20), limit("blog", ratelimitv3.RateLimitUnit_UNKNOWN, 5)))
			if tt.want == 20 {
				await(t, "a refusal", func() bool { return refused.Load() > 0 })
				await(t, "the limit beside the bad one", func() bool { return limitOf("shop") == 20 })
				return
			}
			// By the second refusal the service has taken what it was given before the first.
			await(t, "a second refusal", func() bool { return refused.Load() > 1 })
			if got := limitOf("shop"); got != tt.want {
				t.Errorf("the limit beside the bad one is %d, want %d", got, tt.want)
			}
		})
	}
}

// A server that has a bad configuration is told so now and then, and not as fast as it can
// answer.
func TestNoHotLoop(t *testing.T) {
	refused := func(t *testing.T, make func(*testing.T, string) provider.RateLimitConfigProvider) *atomic.Int64 {
		requests := new(atomic.Int64)
		m := testutil.StartManagementServer(t, testutil.ManagementConfig{OnRequest: func(*testutil.Request) { requests.Add(1) }})
		must(t, m.Set("1", limit("blog", ratelimitv3.RateLimitUnit_UNKNOWN, 5)))
		p := make(t, m.Addr())
		done := t.Context().Done()
		go func() {
			for {
				select {
				case <-p.ConfigUpdateEvent():
				case <-done:
					return
				}
			}
		}()
		await(t, "a refusal", func() bool { return requests.Load() >= 2 })
		return requests
	}
	t.Run("ours", func(t *testing.T) {
		requests := refused(t, ours)
		before, start := requests.Load(), time.Now()
		time.Sleep(2 * time.Second)
		n := requests.Load() - before
		if d := time.Since(start); float64(n) > 10*d.Seconds() {
			t.Errorf("%d requests in %v, want at most 10 a second", n, d)
		}
	})
	// Ten a second would take more than twice as long for them as is waited. Else README.md is wrong.
	t.Run("original", func(t *testing.T) {
		requests := refused(t, theirs)
		await(t, "600 requests in a hot loop", func() bool { return requests.Load() > 600 })
	})
}

// Stop returns, also while there is no server. The original waits for its connection.
func TestStop(t *testing.T) {
	for name, tt := range map[string]struct {
		make   func(*testing.T, string) provider.RateLimitConfigProvider
		want   bool
		within time.Duration
	}{"ours": {ours, true, patience}, "original": {theirs, false, 2 * time.Second}} {
		t.Run(name, func(t *testing.T) {
			p := tt.make(t, "127.0.0.1:1") // nobody listens
			stopped := make(chan struct{})
			go func() { p.Stop(); close(stopped) }()
			got := false
			select {
			case <-stopped:
				got = true
			case <-time.After(tt.within):
			}
			if got != tt.want {
				t.Errorf("stopped within %v: %v, want %v", tt.within, got, tt.want)
			}
		})
	}
}
