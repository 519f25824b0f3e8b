package circuit_test

import (
	"fmt"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/xdswatch/xdswatch/view/circuit"
)

// A cluster that takes one request at a time.
func Example() {
	cluster := &clusterv3.Cluster{Name: "backend", CircuitBreakers: &clusterv3.CircuitBreakers{
		Thresholds: []*clusterv3.CircuitBreakers_Thresholds{{MaxRequests: wrapperspb.UInt32(1)}},
	}}
	var breakers circuit.Breakers // of the program
	limit := breakers.Of(cluster)
	fmt.Println(limit.Enter(), limit.Enter())
	limit.Leave()
	fmt.Println(limit.Enter())
	// Output:
	// true false
	// true
}
