package wellknown_test

import (
	"fmt"

	"github.com/xdswatch/xdswatch/resource/wellknown"
)

// A tool takes a type as text.
func Example() {
	kind, ok := wellknown.ByShort("eds")
	fmt.Println(kind.TypeURL(), ok)
	entry, ok := wellknown.ByTypeURL("type.googleapis.com/envoy.config.cluster.v3.Cluster")
	fmt.Println(entry.Short, ok)
	// Output:
	// type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment true
	// cds true
}
