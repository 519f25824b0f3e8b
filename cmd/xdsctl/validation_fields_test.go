package main_test

import (
	"testing"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

	"github.com/xdswatch/xdswatch/cmd/xdsctl/internal/validation"
)

// What the generated code calls a field is told by its name in JSON, with the place in it.
func TestFieldOf(t *testing.T) {
	d := (&endpointv3.ClusterLoadAssignment{}).ProtoReflect().Descriptor()
	for field, want := range map[string]string{
		"ClusterName": "clusterName", "Endpoints[2]": "endpoints[2]", "NamedEndpoints": "namedEndpoints",
		"NamedEndpoints[a]b]": `namedEndpoints["a]b"]`, "NoSuch": "noSuch",
	} {
		if got, _ := validation.FieldOf(d, field); got != want {
			t.Errorf("%s: %s, want %s", field, got, want)
		}
	}
}
