package examples_test

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/testutil"
)

// files is an Envoy bootstrap without a management server: listeners and clusters come from files.
const files = `
node: {id: edge-1, cluster: edge}
dynamic_resources:
  lds_config: {path_config_source: {path: %[1]s/lds.yaml}}
  cds_config: {path_config_source: {path: %[1]s/cds.yaml}}
`

func Example_files() {
	blue, blueAddress := website("blue")
	defer blue.Close()
	green, greenAddress := website("green")
	defer green.Close()
	dir := must(os.MkdirTemp("", "resources"))
	defer os.RemoveAll(dir)
	place := func(name, of, rest string) {
		text := fmt.Sprintf("resources:\n- \"@type\": type.googleapis.com/envoy.config.%s\n%s", of, rest)
		check(testutil.PlaceFile(filepath.Join(dir, name), []byte(text)))
	}
	place("lds.yaml", "listener.v3.Listener", `
  name: ingress
  api_listener:
    api_listener:
      "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
      stat_prefix: ingress
      route_config: {name: all, virtual_hosts: [{name: all, domains: ["*"], routes: [{match: {prefix: /}, route: {cluster: backend}}]}]}
`)
	to := func(address string) {
		host, port, err := net.SplitHostPort(address)
		check(err)
		place("cds.yaml", "cluster.v3.Cluster", fmt.Sprintf(`
  name: backend
  type: STATIC
  load_assignment:
    cluster_name: backend
    endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: %s, port_value: %s}}}}]}]
`, host, port))
	}
	to(blueAddress)
	boot := must(bootstrap.Parse("bootstrap.yaml", fmt.Appendf(nil, files, dir)))
	c := must(client.New(client.Config{Bootstrap: boot}))
	defer c.Close()
	proxy := must(newProxy(ctx, c, "ingress"))
	get := func() string {
		answer := httptest.NewRecorder()
		proxy.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "http://shop.example/", nil))
		return answer.Body.String()
	}
	fmt.Println(get())
	to(greenAddress)
	for get() == "blue" {
	}
	fmt.Println(get())
	// Output:
	// blue
	// green
}
