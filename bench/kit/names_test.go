package kit

import (
	"slices"
	"testing"
)

func TestNames(t *testing.T) {
	for _, sc := range []Scenario{
		{Type: "cds", N: 100_000_000},
		{Type: "cds", N: 100_000_000, Authorities: 1},
		{Type: EDSType, N: 100_000_000, Authorities: 100},
	} {
		for _, i := range []int{0, 7, 99_999_999} {
			name := sc.Name(i)
			if got := Index(name); got != i || len(name) != len(sc.Name(0)) {
				t.Errorf("name %q has number %d, want %d", name, got, i)
			}
		}
	}
}

func TestGlobs(t *testing.T) {
	sc := Scenario{Type: "cds", N: 4, Authorities: 2, Servers: 2, Glob: true}
	want := []string{"xdstp://bench-000/envoy.config.cluster.v3.Cluster/p/*", "xdstp://bench-001/envoy.config.cluster.v3.Cluster/p/*"}
	if got := sc.Names(); !slices.Equal(got, want) {
		t.Errorf("globs %q, want %q", got, want)
	}
	sc.Glob = false
	want = []string{
		"xdstp://bench-000/envoy.config.cluster.v3.Cluster/p/svc-00000000.prod.svc.cluster.local",
		"xdstp://bench-000/envoy.config.cluster.v3.Cluster/p/svc-00000001.prod.svc.cluster.local",
		"xdstp://bench-001/envoy.config.cluster.v3.Cluster/p/svc-00000002.prod.svc.cluster.local",
		"xdstp://bench-001/envoy.config.cluster.v3.Cluster/p/svc-00000003.prod.svc.cluster.local",
	}
	if got := sc.Names(); !slices.Equal(got, want) {
		t.Errorf("names %q, want %q", got, want)
	}
}

func TestServers(t *testing.T) {
	sc := Scenario{Work: Load, N: 20_000, Authorities: 200, Servers: 10}
	if err := sc.validate(); err != nil {
		t.Fatal(err)
	}
	for i := range sc.N {
		server := sc.ServerOf(i * sc.Authorities / sc.N)
		if from, to := sc.Range(server); i < from || i >= to {
			t.Fatalf("resource %d is of an authority at server %d, which has %d to %d", i, server, from, to)
		}
	}
	if got := sc.Subscriptions(); got != 2000 {
		t.Errorf("%d subscriptions a server, want 2000", got)
	}
	if sc.Glob = true; sc.Subscriptions() != 20 {
		t.Errorf("%d globs a server, want 20", sc.Subscriptions())
	}
}

func TestScenarioFaults(t *testing.T) {
	for _, sc := range []Scenario{
		{Work: Load, N: 10},
		{Work: Load, N: 10, Servers: MaxServers + 1},
		{Work: Load, N: 10, Servers: 1, Authorities: 3},
		{Work: Load, N: 12, Servers: 2, Authorities: 3},
		{Work: Load, N: 10, Servers: 2},
		{Work: Load, N: 10, Servers: 1, Glob: true},
		{Work: Reconnect, N: 10, Servers: 1, Authorities: 1, Glob: true},
		{Work: Update, N: 10, Servers: 2, Authorities: 2},
	} {
		if sc.validate() == nil {
			t.Errorf("%+v is no fault", sc)
		}
	}
}
