package grpcrules_test

import (
	"fmt"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"google.golang.org/protobuf/proto"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/validate/grpcrules"
)

// What gRPC would refuse, all at once.
func ExampleOptions_Judge() {
	cluster := &clusterv3.Cluster{
		Name:                 "backend",
		ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS},
		LbPolicy:             clusterv3.Cluster_MAGLEV,
	}
	for _, f := range (grpcrules.Options{}).Judge(cluster) {
		fmt.Println(f)
	}
	// Output:
	// edsClusterConfig.edsConfig: the source of endpoints is neither ADS nor self (grpc-eds-source)
	// lbPolicy: the policy is not ROUND_ROBIN, RING_HASH or LEAST_REQUEST, which has to be one also beside load_balancing_policy (grpc-lb-policy)
}

// A client that refuses what gRPC would refuse: cluster by cluster with a type of its own, or whole
// responses with a guard.
func ExampleOptions_Guard() {
	rules := grpcrules.Options{}
	typ := resource.With(cds.Type, func(c *clusterv3.Cluster) error { return rules.Check(c) })
	config := client.Config{Guards: map[string][]client.Guard{cds.Type.TypeURL(): {rules.Guard()}}}

	bytes, _ := proto.Marshal(&clusterv3.Cluster{Name: "backend"})
	_, err := typ.Decode(resource.Source{}, bytes)
	fmt.Println(err)
	fmt.Println(len(config.Guards), "guarded type")
	// Output:
	// gRPC refuses the resource: type: the cluster is neither EDS nor LOGICAL_DNS nor envoy.clusters.aggregate (grpc-cluster-type)
	// 1 guarded type
}
