package main_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/xdswatch/xdswatch/cmd/xdsctl/internal/recording"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/resource/eds"
	"github.com/xdswatch/xdswatch/resource/sds"
)

// tape writes a recording of responses.
type tape struct {
	t   *testing.T
	out bytes.Buffer
	w   *recording.Writer
}

func newTape(t *testing.T) *tape {
	p := &tape{t: t}
	p.w = recording.NewWriter(&p.out, func(err error) { t.Error(err) })
	return p
}

func (p *tape) response(server string, v recording.Variant, m proto.Message) {
	p.t.Helper()
	b, err := proto.Marshal(m)
	if err != nil {
		p.t.Fatal(err)
	}
	p.w.Write(recording.Frame{Direction: recording.Response, Server: server, Variant: v}, b)
}

func (p *tape) sotw(server, version string, typeURL string, ms ...proto.Message) {
	p.t.Helper()
	r := &discoveryv3.DiscoveryResponse{TypeUrl: typeURL, VersionInfo: version}
	for _, m := range ms {
		r.Resources = append(r.Resources, packed(p.t, m))
	}
	p.response(server, recording.SotW, r)
}

// read gives each state as text, and the faults.
func (p *tape) read() (states []string, faults []error) {
	p.t.Helper()
	file := filepath.Join(p.t.TempDir(), "r")
	if err := os.WriteFile(file, p.out.Bytes(), 0o600); err != nil {
		p.t.Fatal(err)
	}
	moments, faults, err := recording.Read(file)
	if err != nil {
		p.t.Fatal(err)
	}
	for _, m := range moments {
		var parts []string
		for _, url := range slices.Sorted(maps.Keys(m.State)) {
			s := m.State[url]
			text := url[strings.LastIndex(url, ".")+1:] + " " + s.Version + ":"
			for _, name := range slices.Sorted(maps.Keys(s.Resources)) {
				text += fmt.Sprintf(" %s@%s/%d", name, s.Resources[name].Version, len(s.Resources[name].Content.GetResource().GetValue()))
			}
			parts = append(parts, text)
		}
		states = append(states, strings.Join(parts, "; "))
	}
	return states, faults
}

func cluster(name string) *clusterv3.Cluster { return &clusterv3.Cluster{Name: name} }

func assignment(name string, endpoints int) *endpointv3.ClusterLoadAssignment {
	return &endpointv3.ClusterLoadAssignment{ClusterName: name, Endpoints: make([]*endpointv3.LocalityLbEndpoints, endpoints)}
}

// Responses of one version are of one state; a type that a response holds in full loses what is not
// in it, and another does not.
func TestStatesOfStateOfTheWorld(t *testing.T) {
	p := newTape(t)
	p.sotw("s", "1", cds.Type.TypeURL(), cluster("a"), cluster("b"))
	p.sotw("s", "1", eds.Type.TypeURL(), assignment("a", 0))
	p.sotw("s", "1", eds.Type.TypeURL(), assignment("b", 0))
	p.sotw("s", "2", cds.Type.TypeURL(), cluster("a"))
	p.sotw("s", "2", eds.Type.TypeURL(), assignment("b", 1))
	got, faults := p.read()
	want := []string{
		"Cluster 1: a@1/3 b@1/3; ClusterLoadAssignment 1: a@1/3 b@1/3",
		"Cluster 2: a@1/3; ClusterLoadAssignment 1: a@1/3 b@1/3",
		"Cluster 2: a@1/3; ClusterLoadAssignment 2: a@1/3 b@2/5",
	}
	if !slices.Equal(got, want) || len(faults) > 0 {
		t.Errorf("%q, %v", got, faults)
	}
}

// Servers have what they have beside each other; in delta resources have versions of their own.
func TestStatesOfDelta(t *testing.T) {
	p := newTape(t)
	delta := func(version string, removed []string, names ...string) {
		m := &discoveryv3.DeltaDiscoveryResponse{TypeUrl: cds.Type.TypeURL(), SystemVersionInfo: version, RemovedResources: removed}
		for _, name := range names {
			m.Resources = append(m.Resources, &discoveryv3.Resource{Name: name, Version: "v" + version, Resource: packed(t, cluster(name))})
		}
		p.response("d", recording.Delta, m)
	}
	const other = "xdstp://o/envoy.config.cluster.v3.Cluster/c"
	delta("1", nil, "a", "b")
	p.sotw("s", "7", cds.Type.TypeURL(), cluster(other))
	delta("2", []string{"a"}, "b")
	got, faults := p.read()
	want := []string{"Cluster 1,7: a@v1/3 b@v1/3 " + other + "@7/45", "Cluster 7,2: b@v2/3 " + other + "@7/45"}
	if !slices.Equal(got, want) || len(faults) > 0 {
		t.Errorf("%q, %v", got, faults)
	}
}

// Servers that speak of the same names stand in for each other: the one that spoke last counts, of clusters for all of them,
// and of assignments for those that it has. A server that comes back with the version that it had is one that spoke.
//
// spec: FALLBACK-1 FALLBACK-5
func TestStatesOfFallback(t *testing.T) {
	p := newTape(t)
	const structured = "xdstp://o/envoy.config.cluster.v3.Cluster/c"
	p.sotw("one", "1", cds.Type.TypeURL(), cluster("a"), cluster("b"))
	p.sotw("one", "1", eds.Type.TypeURL(), assignment("a", 0), assignment("b", 0))
	p.sotw("other", "9", cds.Type.TypeURL(), cluster(structured))
	p.sotw("two", "5", cds.Type.TypeURL(), cluster("b"))
	p.sotw("two", "5", eds.Type.TypeURL(), assignment("b", 1))
	p.sotw("one", "1", cds.Type.TypeURL(), cluster("a"), cluster("b"))
	got, faults := p.read()
	want := []string{
		"Cluster 1,9: a@1/3 b@1/3 " + structured + "@9/45; ClusterLoadAssignment 1: a@1/3 b@1/3",
		"Cluster 9,5: b@5/3 " + structured + "@9/45; ClusterLoadAssignment 1: a@1/3 b@1/3",
		"Cluster 9,5: b@5/3 " + structured + "@9/45; ClusterLoadAssignment 1,5: a@1/3 b@5/5",
		"Cluster 9,1: a@1/3 b@1/3 " + structured + "@9/45; ClusterLoadAssignment 1,5: a@1/3 b@5/5",
	}
	if !slices.Equal(got, want) || len(faults) > 0 {
		t.Errorf("%q, %v", got, faults)
	}
}

// Content that is not what its type says is kept as it is; of a Secret what stands for it.
//
// spec: H-3
func TestBrokenContent(t *testing.T) {
	p := newTape(t)
	bad := []byte("\xffMARK3R")
	p.response("d", recording.Delta, &discoveryv3.DeltaDiscoveryResponse{TypeUrl: cds.Type.TypeURL(), SystemVersionInfo: "1", Resources: []*discoveryv3.Resource{
		{Name: "a", Version: "1", Resource: &anypb.Any{TypeUrl: cds.Type.TypeURL(), Value: bad}},
	}})
	p.response("d", recording.Delta, &discoveryv3.DeltaDiscoveryResponse{TypeUrl: sds.Type.TypeURL(), SystemVersionInfo: "1", Resources: []*discoveryv3.Resource{
		{Name: "s", Version: "1", Resource: &anypb.Any{TypeUrl: sds.Type.TypeURL(), Value: bad}},
	}})
	p.w.Write(recording.Frame{Direction: recording.Response, Variant: recording.SotW}, bad)
	got, faults := p.read()
	if !slices.Equal(got, []string{"Cluster 1: a@1/7; Secret 1: s@1/10"}) || len(faults) != 0 {
		t.Errorf("%q, %v", got, faults)
	}
	lines := strings.Split(p.out.String(), "\n")
	if !strings.Contains(lines[1], "W3JlZGFjdGVkXQ==") || strings.Contains(lines[1], "/01BUks") || !strings.Contains(lines[2], `"message":null`) {
		t.Error(p.out.String())
	}
}

// A file is a recording or it is not; a last line may be cut.
func TestParseRecording(t *testing.T) {
	p := newTape(t)
	p.sotw("s", "1", cds.Type.TypeURL())
	whole := p.out.String()
	parse := func(text string) error {
		file := filepath.Join(t.TempDir(), "r")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, _, err := recording.Read(file)
		return err
	}
	for text, ok := range map[string]bool{
		"": false, "{}\n": false, "resources: []\n": false, whole: true, whole + whole[:20]: true,
		"\n" + whole: true, whole[:20]: false, "x\n" + whole: false,
	} {
		if err := parse(text); (err == nil) != ok || err != nil && !errors.Is(err, recording.ErrNotRecording) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if err := parse(whole + "\n" + whole[:20] + "\n" + whole); err == nil || !strings.HasSuffix(err.Error(), "line 3 is no frame of a recording") {
		t.Errorf("a bad line: %v", err)
	}
	if _, _, err := recording.Read(t.TempDir()); !errors.Is(err, recording.ErrNotRecording) {
		t.Error(err)
	}
}

// After the first line that cannot be written nothing is.
func TestWriterFails(t *testing.T) {
	var failed int
	w := recording.NewWriter(broken{}, func(error) { failed++ })
	for range 3 {
		w.Write(recording.Frame{Direction: recording.Response, Variant: recording.SotW, Time: time.Now()}, nil)
	}
	if failed != 1 || w.Frames() != 0 {
		t.Errorf("failed %d times, %d frames", failed, w.Frames())
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("full") }

// A heartbeat is no news of a resource, and no fault.
func TestHeartbeats(t *testing.T) {
	p := newTape(t)
	wrapped := &discoveryv3.Resource{Name: "a", Version: "1", Ttl: durationpb.New(time.Second), Resource: packed(t, cluster("a"))}
	p.sotw("s", "1", cds.Type.TypeURL(), wrapped, cluster("b"))
	p.sotw("s", "1", cds.Type.TypeURL(), &discoveryv3.Resource{Name: "a", Version: "1", Ttl: durationpb.New(time.Second)})
	got, faults := p.read()
	if !slices.Equal(got, []string{"Cluster 1: a@1/3 b@1/3"}) || len(faults) > 0 {
		t.Errorf("%q, %v", got, faults)
	}
}
