package sources

import (
	"fmt"
	"runtime"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"github.com/xdswatch/xdswatch/authority"
	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/internal/engine"
	"github.com/xdswatch/xdswatch/internal/machine"
	"github.com/xdswatch/xdswatch/internal/race"
	"github.com/xdswatch/xdswatch/transport"
)

// The default source of a scope costs nothing for each authority of the bootstrap.
//
// spec: H-10
func TestCostOfScopes(t *testing.T) {
	race.SkipCost(t)
	const authorities, scopes = 5000, 100
	boot := &bootstrap.Config{
		Node: &corev3.Node{}, Servers: servers("one"), Authorities: map[string]bootstrap.Authority{},
		DefaultSource: &bootstrap.Source{Servers: servers("one")},
	}
	for i := range authorities {
		boot.Authorities[fmt.Sprint("a", i)] = bootstrap.Authority{}
	}
	table, err := authority.New(boot.WithDefaults())
	if err != nil {
		t.Fatal(err)
	}
	s, _, _, err := New(Config{
		Override: func(b bootstrap.ManagementServer) bootstrap.ManagementServer { return b },
		Make: func(b bootstrap.ManagementServer) engine.Server {
			return engine.Server{URI: b.URI, Connect: func() (transport.Conn, error) { return conn{}, nil }}
		},
		Extend: func([]engine.Server, []machine.Source) error { return nil },
		Params: func(authority.Key) map[string]string { return nil },
	}, table)
	if err != nil {
		t.Fatal(err)
	}
	r, err := table.Resolve("type.googleapis.com/a.B", "xdstp://other/a.B/x")
	if err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for i := range scopes {
		if _, err := s.Find(table, Place{r.Key(), fmt.Sprint(i)}, r); err != nil {
			t.Fatal(err)
		}
	}
	runtime.ReadMemStats(&after)
	if took := (after.TotalAlloc - before.TotalAlloc) / scopes; took > 64<<10 {
		t.Errorf("a scope took %d KiB", took>>10)
	}
}
