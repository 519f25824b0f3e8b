package wellknown_test

import (
	"strings"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/xdswatch/xdswatch/resource"
	"github.com/xdswatch/xdswatch/resource/cds"
)

// spec: FED-2
func TestClusterServiceName(t *testing.T) {
	const structured = "xdstp://a/envoy.config.cluster.v3.Cluster/x"
	eds := &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS}
	named := &clusterv3.Cluster_EdsClusterConfig{ServiceName: "s"}
	for _, tt := range []struct {
		what    string
		cluster *clusterv3.Cluster
		good    bool
	}{
		{"structured, EDS, no name", &clusterv3.Cluster{Name: structured, ClusterDiscoveryType: eds}, false},
		{"structured, EDS, empty name", &clusterv3.Cluster{
			Name: structured, ClusterDiscoveryType: eds, EdsClusterConfig: &clusterv3.Cluster_EdsClusterConfig{},
		}, false},
		{"structured, EDS, name", &clusterv3.Cluster{Name: structured, ClusterDiscoveryType: eds, EdsClusterConfig: named}, true},
		{"structured, not EDS", &clusterv3.Cluster{Name: structured}, true},
		{"old-style, EDS, no name", &clusterv3.Cluster{Name: "x", ClusterDiscoveryType: eds}, true},
	} {
		b, err := proto.Marshal(tt.cluster)
		if err != nil {
			t.Fatal(err)
		}
		for _, validate := range []bool{false, true} {
			got, err := cds.Type.Decode(resource.Source{Validate: validate}, b)
			if !tt.good {
				if err == nil || got != any((*clusterv3.Cluster)(nil)) || !strings.Contains(err.Error(), structured) {
					t.Errorf("%s: %v, %v; want an error that tells the name", tt.what, got, err)
				}
				continue
			}
			if err != nil {
				t.Errorf("%s: %v", tt.what, err)
			}
			if diff := cmp.Diff(tt.cluster, got, protocmp.Transform()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.what, diff)
			}
		}
	}
}

func TestClusterBytes(t *testing.T) {
	if got, err := cds.Type.Decode(resource.Source{}, []byte{0xff}); err == nil {
		t.Errorf("%v", got)
	}
}
