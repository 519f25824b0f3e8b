package authority_test

import (
	"fmt"
	"log"

	"github.com/xdswatch/xdswatch/authority"
	"github.com/xdswatch/xdswatch/bootstrap"
)

// A tool says which servers answer for a name.
func Example() {
	boot, err := bootstrap.Parse("bootstrap.json", []byte(`{
		"xds_servers": [{"server_uri": "xds.example:443", "channel_creds": [{"type": "tls"}]}],
		"authorities": {"west": {"xds_servers": [
			{"server_uri": "west-1.example:443", "channel_creds": [{"type": "tls"}]},
			{"server_uri": "west-2.example:443", "channel_creds": [{"type": "tls"}]}
		]}}
	}`))
	if err != nil {
		log.Fatal(err)
	}
	servers, err := authority.New(boot)
	if err != nil {
		log.Fatal(err)
	}
	const cluster = "envoy.config.cluster.v3.Cluster"
	for _, name := range []string{"orders", "xdstp://west/" + cluster + "/orders", "xdstp://east/" + cluster + "/orders"} {
		found, err := servers.Resolve("type.googleapis.com/"+cluster, name)
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Print(found.Name, " by")
		for _, s := range found.Servers {
			fmt.Print(" ", s.URI)
		}
		fmt.Println()
	}
	// Output:
	// orders by xds.example:443
	// xdstp://west/envoy.config.cluster.v3.Cluster/orders by west-1.example:443 west-2.example:443
	// resource name "xdstp://east/envoy.config.cluster.v3.Cluster/orders": authority "east" is not in the bootstrap, which has "west"
}
