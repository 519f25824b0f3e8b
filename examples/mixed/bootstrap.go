package main

import (
	"fmt"
	"strings"
)

// envoyYAML is the bootstrap: listeners of the aggregated stream, clusters of a server that
// is polled. What it has no field for, secrets and endpoints, the resources themselves tell
// the source of.
const envoyYAML = `
node: {id: gateway-1, cluster: gateway}
dynamic_resources:
  ads_config:
    api_type: GRPC
    transport_api_version: V3
    grpc_services: [{envoy_grpc: {cluster_name: control-plane}}]
  lds_config: {ads: {}}
  cds_config:
    api_config_source:
      api_type: REST
      transport_api_version: V3
      cluster_names: [catalogue]
      refresh_delay: 0.1s
      request_timeout: 10s
static_resources:
  clusters:
`

// clusterYAML is a static cluster: how a management server is reached.
const clusterYAML = `
  - name: %s
    type: STATIC
    load_assignment:
      cluster_name: %[1]s
      endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: %s, port_value: %s}}}}]}]
`

// bootstrap is the whole file.
func (s *servers) bootstrap() []byte {
	text := envoyYAML
	for _, c := range []struct{ name, address string }{{"control-plane", s.grpc.Addr()}, {"catalogue", s.rest.Addr()}} {
		host, port, _ := strings.Cut(c.address, ":")
		text += fmt.Sprintf(clusterYAML, c.name, host, port)
	}
	return []byte(text)
}
