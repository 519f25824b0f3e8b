package sources

import (
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"github.com/xdswatch/xdswatch/authority"
	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/internal/engine"
	"github.com/xdswatch/xdswatch/internal/machine"
	"github.com/xdswatch/xdswatch/transport"
)

// The loop asks for labels while somebody who makes a source waits for the loop.
//
// spec: METRIC-2
func TestLabelWhileSourceIsMade(t *testing.T) {
	boot := (&bootstrap.Config{
		Node: &corev3.Node{}, Authorities: map[string]bootstrap.Authority{"a": {}}, Servers: servers("one"),
	}).WithDefaults()
	table, err := authority.New(boot)
	if err != nil {
		t.Fatal(err)
	}
	var s *Sources
	s, _, _, err = New(Config{
		Override: func(b bootstrap.ManagementServer) bootstrap.ManagementServer { return b },
		Make: func(b bootstrap.ManagementServer) engine.Server {
			return engine.Server{URI: b.URI, Connect: func() (transport.Conn, error) { return conn{}, nil }}
		},
		Extend: func([]engine.Server, []machine.Source) error {
			label := make(chan string, 1)
			go func() { label <- s.Label("a") }()
			select {
			case got := <-label:
				if got != "a" {
					t.Errorf("label %q", got)
				}
			case <-time.After(5 * time.Second):
				t.Error("the loop waits for the source, which waits for the loop")
			}
			return nil
		},
		Params: func(authority.Key) map[string]string { return nil },
	}, table)
	if err != nil {
		t.Fatal(err)
	}
	r, err := table.Resolve("type.googleapis.com/a.B", "xdstp://a/a.B/x")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Find(table, Place{r.Key(), "scope"}, r); err != nil {
		t.Fatal(err)
	}
}
