package kratos_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-kratos/kratos/v2/log"
	"github.com/go-kratos/kratos/v2/registry"
	transport "github.com/go-kratos/kratos/v2/transport/grpc"
	"google.golang.org/grpc"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/peer"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/examples/integrations/kratos"
	"github.com/xdswatch/xdswatch/testutil"
)

const patience = 30 * time.Second

// The logger is kratos' for the process: it is set before a server runs.
func TestMain(m *testing.M) {
	log.SetLogger(log.NewFilter(log.DefaultLogger, log.FilterLevel(log.LevelFatal)))
	m.Run()
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// service is a server of kratos, which answers health checks.
func service(t *testing.T) (address string, stop func()) {
	s := transport.NewServer(transport.Address("127.0.0.1:0"))
	url, err := s.Endpoint()
	must(t, err)
	go s.Start(context.Background())
	stop = func() { must(t, s.Stop(context.Background())) }
	return url.Host, stop
}

// managed makes a discovery of a real management server, which may be silent for two seconds.
func managed(t *testing.T) (*testutil.ManagementServer, *kratos.Discovery) {
	m := testutil.StartManagementServer(t, testutil.ManagementConfig{})
	c, err := client.New(client.Config{Bootstrap: m.Bootstrap(), ResourceTimeout: 2 * time.Second})
	must(t, err)
	t.Cleanup(func() { c.Close() })
	return m, kratos.New(c, "grpc")
}

// A channel of kratos follows the server's endpoints, and no call fails when one is replaced, also
// if the management server dies.
func TestChannel(t *testing.T) {
	m, d := managed(t)
	blue, stopBlue := service(t)
	green, stopGreen := service(t)
	defer stopGreen()
	must(t, m.Set("1", testutil.Endpoints("orders", blue)))
	channel, err := transport.DialInsecure(t.Context(), transport.WithEndpoint("discovery:///orders"), transport.WithDiscovery(d),
		transport.WithTimeout(patience))
	must(t, err)
	defer channel.Close()
	call := func() string {
		t.Helper()
		var p peer.Peer
		_, err := healthpb.NewHealthClient(channel).Check(t.Context(), &healthpb.HealthCheckRequest{}, grpc.Peer(&p))
		must(t, err)
		return p.Addr.String()
	}
	if got := call(); got != blue {
		t.Fatalf("the first call went to %s, want %s", got, blue)
	}
	must(t, m.Set("2", testutil.Endpoints("orders", green)))
	for begin := time.Now(); call() != green; {
		if time.Since(begin) > patience {
			t.Fatal("calls go to blue for ever")
		}
	}
	stopBlue()
	m.Stop()
	for range 100 {
		if got := call(); got != green {
			t.Fatalf("a call went to %s, want %s", got, green)
		}
	}
}

func TestGetService(t *testing.T) {
	m, d := managed(t)
	must(t, m.Set("1", testutil.EndpointsIn("orders",
		testutil.Locality("a", 0, 1, "10.0.0.1:80"), testutil.Locality("b", 1, 1, "10.0.0.2:80"))))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	all, err := d.GetService(ctx, "orders")
	must(t, err)
	if len(all) != 1 || all[0].Endpoints[0] != "grpc://10.0.0.1:80" || all[0].Metadata["zone"] != "a" {
		t.Errorf("instances are %v, want that of the first priority", all)
	}
	if _, err := d.GetService(ctx, "typo"); !errors.Is(err, client.ErrDoesNotExist) {
		t.Errorf("of a service that nobody knows: %v, want client.ErrDoesNotExist", err)
	}
	ctx, cancel = context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := d.GetService(ctx, "another"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("before the server's time is over: %v, want the context's error", err)
	}
}

// Next tells of each change, and of the newest alone if nobody asked in between.
func TestNext(t *testing.T) {
	m, d := managed(t)
	busy, err := d.Watch(t.Context(), "orders")
	must(t, err)
	defer busy.Stop()
	idle, err := d.Watch(t.Context(), "orders")
	must(t, err)
	defer idle.Stop()
	next := func(w registry.Watcher) string {
		all, err := w.Next()
		must(t, err)
		if len(all) != 1 {
			t.Fatalf("instances are %v, want one", all)
		}
		return all[0].ID
	}
	for _, want := range []string{"10.0.0.1:80", "10.0.0.2:80", "10.0.0.3:80"} {
		must(t, m.Set(want, testutil.Endpoints("orders", want)))
		if got := next(busy); got != want {
			t.Fatalf("Next has %s, want %s", got, want)
		}
	}
	// All watchers have heard of the second when one hears of the third.
	got := next(idle)
	if got == "10.0.0.2:80" {
		got = next(idle)
	}
	if got != "10.0.0.3:80" {
		t.Errorf("Next of one who did not ask has %s, want the newest", got)
	}
}

// Next returns when its watcher is stopped.
func TestStop(t *testing.T) {
	m, d := managed(t)
	must(t, m.Set("1"))
	w, err := d.Watch(t.Context(), "orders")
	must(t, err)
	time.AfterFunc(100*time.Millisecond, func() { w.Stop() })
	if _, err := w.Next(); !errors.Is(err, context.Canceled) {
		t.Errorf("Next returned %v, want context.Canceled", err)
	}
}
