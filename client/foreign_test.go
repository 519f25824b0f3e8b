package client

import (
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"github.com/xdswatch/xdswatch/authority"
	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/internal/machine"
	"github.com/xdswatch/xdswatch/xdstp"
)

// An authority is foreign where other servers answer for it, whoever lists them: the bootstrap or the watch.
// spec: H-4
func TestForeignServers(t *testing.T) {
	server := func(uri string) []bootstrap.ManagementServer { return []bootstrap.ManagementServer{{URI: uri}} }
	boot := bootstrap.Config{Node: &corev3.Node{}, Servers: server("top"), Authorities: map[string]bootstrap.Authority{"a": {Servers: server("one")}}}
	table, err := authority.New(boot.WithDefaults())
	if err != nil {
		t.Fatal(err)
	}
	for uri, is := range map[string]bool{"one": false, "other": true} {
		from, err := table.WithPeer(bootstrap.Source{Authorities: []string{"b"}, Servers: server(uri)})
		if err != nil {
			t.Fatal(err)
		}
		counts := &foreign{most: 1, names: map[authorities]map[string]int{}, watches: map[*machine.Watch]authorities{}}
		locator := func(of string) xdstp.Locator {
			return xdstp.Locator{Scheme: xdstp.SchemeXDSTP, Name: xdstp.Name{Authority: of}}
		}
		by := locator("a")
		err = counts.take(from, &by, locator("b"), &machine.Watch{Type: &machine.Type{}})
		if counted := len(counts.watches) > 0; err != nil || counted != is {
			t.Errorf("server %s: %v, counted %t, want %t", uri, err, counted, is)
		}
	}
}
