package examples_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/testutil"
	"github.com/xdswatch/xdswatch/watcher"
)

// authorities is a bootstrap with two authorities, each with a management server of its own.
const authorities = `{
  "xds_servers": [{"server_uri": "%[1]s", "channel_creds": [{"type": "insecure"}]}],
  "authorities": {
    "east": {},
    "west": {"xds_servers": [{"server_uri": "%[2]s", "channel_creds": [{"type": "insecure"}]}]}
  }
}`

// timeouts gets the cluster "orders" of each authority. One that is away does not delay the
// watches of the other.
func timeouts(ctx context.Context, c *client.Client) error {
	for _, authority := range []string{"east", "west"} {
		name := "xdstp://" + authority + "/envoy.config.cluster.v3.Cluster/orders"
		cluster, err := watcher.Get(ctx, c, cds.Type, name)
		if err != nil {
			return err
		}
		fmt.Println(name, cluster.GetConnectTimeout().AsDuration())
	}
	return nil
}

func Example_authorities() {
	serve := func(authority string, seconds int) *testutil.CollectionServer {
		s := must(testutil.NewCollectionServer())
		name := "xdstp://" + authority + "/envoy.config.cluster.v3.Cluster/orders"
		check(s.Set(testutil.Wrapped(name, "1", resources(`
"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
name: %q
connect_timeout: %ds
`, name, seconds)[0])))
		return s
	}
	east, west := serve("east", 1), serve("west", 2)
	defer east.Stop()
	defer west.Stop()
	boot := must(bootstrap.Parse("bootstrap.json", fmt.Appendf(nil, authorities, east.Addr(), west.Addr())))
	c := must(client.New(client.Config{Bootstrap: boot}))
	defer c.Close()
	check(timeouts(ctx, c))
	// Output:
	// xdstp://east/envoy.config.cluster.v3.Cluster/orders 1s
	// xdstp://west/envoy.config.cluster.v3.Cluster/orders 2s
}

// fallback is a bootstrap with two servers, of which the second is used while the first cannot be
// reached.
const fallback = `{
  "xds_servers": [
    {"server_uri": "%[1]s", "channel_creds": [{"type": "insecure"}]},
    {"server_uri": "%[2]s", "channel_creds": [{"type": "insecure"}]}
  ]
}`

// followFrom tells which server each version of a cluster is from.
func followFrom(ctx context.Context, c *client.Client, told chan<- string) error {
	_, err := watcher.Watch(ctx, c, cds.Type, "orders", func(ev watcher.Event[*clusterv3.Cluster]) {
		if ev.Kind == client.EventUpdated {
			told <- ev.Server
		}
	})
	return err
}

func Example_fallback() {
	first := manage(slices.Concat(routed("orders"), clustered("orders", "192.0.2.1:80"))...)
	defer first.Stop()
	second := manage(clustered("orders", "192.0.2.1:80")...)
	defer second.Stop()
	boot := must(bootstrap.Parse("bootstrap.json", fmt.Appendf(nil, fallback, first.Addr(), second.Addr())))
	c := must(client.New(client.Config{Bootstrap: boot}))
	defer c.Close()
	names := map[string]string{first.Addr(): "the first", second.Addr(): "the second"}

	first.Stop()
	told := make(chan string, 16)
	check(followFrom(ctx, c, told))
	fmt.Println("from", names[<-told])
	changed := resources(`
"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
name: orders
connect_timeout: 7s
`)
	check(first.Restart(false))
	check(first.Set("2", changed...))
	c.ResetBackoff() // the network is back, so do not wait
	fmt.Println("from", names[<-told])
	// Output:
	// from the second
	// from the first
}

// loadWithFeatures loads a bootstrap of Envoy, whose format has no place for what the servers are like.
func loadWithFeatures(path string) (*bootstrap.Config, error) {
	boot, err := bootstrap.Load(path)
	if err != nil {
		return nil, err
	}
	for i := range boot.Servers {
		boot.Servers[i].Features.ResumeVersion = true
	}
	return boot, nil
}

func TestServerFeatures(t *testing.T) {
	path := filepath.Join(t.TempDir(), "envoy.yaml")
	const text = "node: {id: a, cluster: b}\ndynamic_resources: {ads_config: {api_type: GRPC, grpc_services: [{google_grpc: {target_uri: \"x:1\"}}]}}\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	boot, err := loadWithFeatures(path)
	if err != nil || len(boot.Servers) != 1 || !boot.Servers[0].Features.ResumeVersion {
		t.Errorf("%v, %v", boot, err)
	}
}
