package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/xdswatch/xdswatch/cmd/xdsctl/internal/report"
	"github.com/xdswatch/xdswatch/cmd/xdsctl/internal/subscription"
	"github.com/xdswatch/xdswatch/testutil"
)

// A graph has all that a root leads to, and says what is not there.
func TestGraph(t *testing.T) {
	t.Parallel()
	m := managed(t, append(shop(), proxyListener("second", "legacy"), aggregate("both", "backend", "both2"), aggregate("both2", "both", "frontend"))...)
	for _, tt := range []struct {
		args          string
		status        int
		edges         string
		missing, says string
	}{
		{"lds:ingress", 0, "cds:backend>eds:backend cds:frontend>eds:frontend lds:ingress>rds:shop rds:shop>cds:backend rds:shop>cds:frontend", "", ""},
		{"rds:shop --host backend.example", 0, "cds:backend>eds:backend rds:shop>cds:backend", "", ""},
		{"cds:both", 0, "cds:backend>eds:backend cds:both2>cds:both cds:both2>cds:frontend cds:both>cds:backend cds:both>cds:both2 cds:frontend>eds:frontend", "", ""},
		{"rds:legacy", 3, "cds:backend>eds:backend rds:legacy>cds:backend rds:legacy>cds:gone", "cds:gone=missing", `cds "gone": xds: `},
		{"lds:none", 3, "", "lds:none=missing", `lds "none": xds: `},
		{"all", 3, "cds:backend>eds:backend cds:frontend>eds:frontend lds:ingress>rds:shop lds:second>rds:legacy rds:legacy>cds:backend rds:legacy>cds:gone rds:shop>cds:backend rds:shop>cds:frontend", "cds:gone=missing", `cds "gone"`},
	} {
		for _, variant := range variants {
			t.Run(tt.args+" "+variant, func(t *testing.T) {
				t.Parallel()
				args := append([]string{"graph", "--server", m.Addr(), "--variant", variant, "--resource-timeout", silence, "-o", "json"}, strings.Fields(tt.args)...)
				status, out, errs := runOnce(t, args...)
				var g report.Graph
				if err := json.Unmarshal([]byte(out), &g); err != nil {
					t.Fatalf("%v\n%s", err, errs)
				}
				short := func(r report.Ref) string { return subscription.Short(r.Type) + ":" + r.Name }
				var edges, missing []string
				for _, e := range g.Edges {
					edges = append(edges, short(e.From)+">"+short(e.To))
				}
				for _, n := range g.Nodes {
					if n.Status != report.NodeOK {
						missing = append(missing, short(n.Ref)+"="+n.Status)
					}
				}
				slices.Sort(edges)
				if status != tt.status || strings.Join(edges, " ") != tt.edges || strings.Join(missing, " ") != tt.missing || len(g.Missing) != len(missing) {
					t.Errorf("status %d, edges %s, missing %s %v", status, edges, missing, g.Missing)
				}
				if !strings.Contains(errs, tt.says) || tt.says == "" && errs != "" {
					t.Errorf("standard error %s", errs)
				}
			})
		}
	}
}

// A root that is named below itself is on top.
func TestGraphOfRing(t *testing.T) {
	t.Parallel()
	m := managed(t, append(shop(), aggregate("both", "backend", "both2"), aggregate("both2", "both", "frontend"))...)
	const ring = `cds both
├── cds backend
│   └── eds backend
└── cds both2
    ├── cds both (above)
    └── cds frontend
        └── eds frontend
`
	if status, out, errs := runOnce(t, "graph", "--server", m.Addr(), "cds:both"); status != 0 || out != ring {
		t.Errorf("status %d, %s%s", status, out, errs)
	}
}

// A server that is gone cannot be reached, and one that says nothing has no answer.
func TestGraphWithoutAnswer(t *testing.T) {
	t.Parallel()
	m := managed(t)
	addr := m.Addr()
	m.Stop()
	for _, root := range []string{"lds:ingress", "all"} {
		if status, _, errs := runOnce(t, "graph", "--server", addr, root); status != 1 || !strings.Contains(errs, "the server cannot be reached") {
			t.Errorf("%s: status %d, %s", root, status, errs)
		}
	}
	silent := server(t)
	if status, out, errs := runOnce(t, "graph", "--server", silent.Target(), "--for", "200ms", "cds:a"); status != 3 || out != "cds a WAITING\n" || !strings.Contains(errs, "no answer when the time was up") {
		t.Errorf("status %d, %s%s", status, out, errs)
	}
	for _, tt := range [][2]string{{"--for", `lds "*": no answer when the time was up`}, {"--resource-timeout", `lds "*": xds: `}} {
		if status, out, errs := runOnce(t, "graph", "--server", silent.Target(), tt[0], "200ms", "all"); status != 3 || out != "" || !strings.Contains(errs, tt[1]) {
			t.Errorf("%s: status %d, %s%s", tt[0], status, out, errs)
		}
	}
}

// Where a server cannot be reached, what is missing elsewhere is told all the same.
func TestGraphTellsAll(t *testing.T) {
	t.Parallel()
	const dead = "xdstp://dead/envoy.config.cluster.v3.Cluster/x"
	m := managed(t, testutil.RouteConfig("r", testutil.VirtualHost("*", testutil.Route("/a", dead), testutil.Route("/", "zz"))))
	boot := file(t, "boot.json", fmt.Sprintf(`{"xds_servers": [{"server_uri": %q, "channel_creds": [{"type": "insecure"}]}],
		"authorities": {"dead": {"xds_servers": [{"server_uri": "127.0.0.1:1", "channel_creds": [{"type": "insecure"}]}]}}}`, m.Addr()))
	status, _, errs := runOnce(t, "graph", "--bootstrap", boot, "--resource-timeout", silence, "rds:r")
	if status != 1 || !strings.Contains(errs, `cds "zz": xds: `) || !strings.Contains(errs, `cds "`+dead+`": xds: `) {
		t.Errorf("status %d, %s", status, errs)
	}
}
