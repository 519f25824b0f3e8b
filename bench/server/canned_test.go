package main

import (
	"strings"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/xdswatch/xdswatch/bench/kit"
)

// resource reads what a resource of either type says of itself.
func resource(t *testing.T, a *anypb.Any) (name, stamp string) {
	t.Helper()
	m, err := a.UnmarshalNew()
	if err != nil {
		t.Fatal(err)
	}
	switch m := m.(type) {
	case *clusterv3.Cluster:
		return m.Name, m.AltStatName
	case *endpointv3.ClusterLoadAssignment:
		return m.ClusterName, m.Endpoints[0].LbEndpoints[0].GetEndpoint().GetHostname()
	}
	t.Fatalf("a %T", m)
	return "", ""
}

func TestCannedSotW(t *testing.T) {
	c := build(&kit.Scenario{Variant: "sotw", Type: "cds", N: 12})
	stamp := strings.Repeat("7", kit.StampLen)
	c.change(11, []byte(stamp))
	var m discoveryv3.DiscoveryResponse
	if err := proto.Unmarshal(append(header(kit.CDS, 12, 3, []byte(stamp)), c.arena...), &m); err != nil {
		t.Fatal(err)
	}
	if m.TypeUrl != kit.CDS || m.Nonce != "00000003-"+stamp+"-00000012" || len(m.Resources) != 12 {
		t.Errorf("type %q, nonce %q, %d resources", m.TypeUrl, m.Nonce, len(m.Resources))
	}
	for i, a := range m.Resources {
		want := kit.ZeroStamp
		if i == 11 {
			want = stamp
		}
		if name, got := resource(t, a); name != kit.Host(i) || got != want {
			t.Errorf("resource %d is %q with stamp %q", i, name, got)
		}
	}
}

func TestCannedDelta(t *testing.T) {
	c := build(&kit.Scenario{Variant: "delta", Type: "eds", Eps: 10, N: 3})
	stamp := strings.Repeat("1", 19) + "000042"
	c.change(1, []byte(stamp))
	var m discoveryv3.DeltaDiscoveryResponse
	if err := proto.Unmarshal(c.arena, &m); err != nil {
		t.Fatal(err)
	}
	for i, r := range m.Resources {
		version, want := version0, kit.ZeroStamp
		if i == 1 {
			version, want = "v000042", stamp
		}
		name, got := resource(t, r.Resource)
		if name != kit.Host(i) || r.Name != name || got != want || r.Version != version || string(c.version(i)) != version {
			t.Errorf("resource %d is %q in %q with stamp %q and version %q", i, name, r.Name, got, r.Version)
		}
	}
}

func TestCannedAuthorities(t *testing.T) {
	sc := &kit.Scenario{Variant: "delta", Type: "cds", N: 6, Authorities: 3, Servers: 3, TTL: 600}
	c := build(sc)
	var full, beats discoveryv3.DeltaDiscoveryResponse
	if err := proto.Unmarshal(c.entries(2, 6), &full); err != nil {
		t.Fatal(err)
	}
	if err := proto.Unmarshal(c.heartbeats(2, 6), &beats); err != nil {
		t.Fatal(err)
	}
	if len(full.Resources) != 4 || len(beats.Resources) != 4 {
		t.Fatalf("%d resources and %d heartbeats", len(full.Resources), len(beats.Resources))
	}
	for i, r := range full.Resources {
		name := sc.Name(2 + i)
		if got, _ := resource(t, r.Resource); got != name || r.Name != name || r.Ttl.GetSeconds() != 600 {
			t.Errorf("resource %d is %q in %q, and lives for %v; want %q", i, got, r.Name, r.Ttl, name)
		}
		if b := beats.Resources[i]; b.Name != name || b.Version != r.Version || b.Resource != nil || b.Ttl.GetSeconds() != 600 {
			t.Errorf("heartbeat %d is %v; want one of %q", i, b, name)
		}
	}
}

func TestScanRequest(t *testing.T) {
	sotw, err := proto.Marshal(&discoveryv3.DiscoveryRequest{VersionInfo: "1", TypeUrl: kit.CDS, ResourceNames: []string{"a", "b"}, ResponseNonce: "n"})
	if err != nil {
		t.Fatal(err)
	}
	delta, err := proto.Marshal(&discoveryv3.DeltaDiscoveryRequest{
		ResourceNamesSubscribe: []string{"a"}, ResourceNamesUnsubscribe: []string{"b", "c"},
		InitialResourceVersions: map[string]string{"x": "7"}, ResponseNonce: "n",
	})
	if err != nil {
		t.Fatal(err)
	}
	var versions []string
	keep := func(name, version []byte) { versions = append(versions, string(name)+"="+string(version)) }
	r, d := &request{}, &request{initial: keep}
	if err := r.scan(sotw, false); err != nil || r.names != 2 || string(r.nonce) != "n" {
		t.Errorf("state of the world: %+v, %v", r, err)
	}
	if err := d.scan(delta, true); err != nil || d.names != 1 || d.gone != 2 || d.inits != 1 || string(d.nonce) != "n" || versions[0] != "x=7" {
		t.Errorf("delta: %+v, %v, %v", d, versions, err)
	}
	if err := r.scan([]byte{0x1a, 9}, false); err == nil {
		t.Error("a truncated request was read")
	}
}
