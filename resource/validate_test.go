//go:build !disable_pgv

package resource_test

import (
	"errors"
	"strings"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"

	"github.com/xdswatch/xdswatch/resource"
)

// A cluster without a name breaks a rule of its proto (string.min_len).
func TestProtoValidate(t *testing.T) {
	b := marshal(t, &clusterv3.Cluster{AltStatName: "b"})
	if _, err := cluster.Decode(resource.Source{}, b); err != nil {
		t.Errorf("without validation: %v", err)
	}
	_, err := cluster.Decode(resource.Source{Validate: true}, b)
	if v, ok := errors.AsType[clusterv3.ClusterValidationError](err); !ok || v.Field() != "Name" {
		t.Fatalf("error %v, want the message's own about Name", err)
	}
	if !strings.Contains(err.Error(), "not a valid envoy.config.cluster.v3.Cluster") {
		t.Errorf("error %q does not name the message", err)
	}
}
