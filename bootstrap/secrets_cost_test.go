package bootstrap_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/xdswatch/xdswatch/bootstrap"
)

// Each Secret of a bootstrap is looked at once, and each file of Secrets read once, however many clusters name them.
//
// spec: H-10
func TestCostOfSecrets(t *testing.T) {
	if testing.Short() {
		t.Skip("long: thousands of Secrets")
	}
	const clusters, secrets = 300, 3000
	var own, file strings.Builder
	for i := range secrets {
		fmt.Fprintf(&own, "  - {name: s%d, validation_context: {trust_chain_verification: ACCEPT_UNTRUSTED}}\n", i)
		fmt.Fprintf(&file, "- {'@type': type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret, name: s%d, validation_context: {trust_chain_verification: ACCEPT_UNTRUSTED}}\n", i)
	}
	path := filepath.Join(t.TempDir(), "secrets.yaml")
	if err := os.WriteFile(path, []byte("resources:\n"+file.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	for what, source := range map[string]string{"own": "", "file": ", sds_config: {path_config_source: {path: " + path + "}}"} {
		var text strings.Builder
		fmt.Fprintf(&text, "node: {id: node, cluster: c}\nstatic_resources:\n  secrets:\n%s  clusters:\n", own.String())
		for i := range clusters {
			fmt.Fprintf(&text, `  - name: c%d
    load_assignment: {endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: h, port_value: 1}}}}]}]}
    transport_socket:
      typed_config:
        '@type': type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext
        common_tls_context: {validation_context_sds_secret_config: {name: s%d%s}}
`, i, secrets-1-i, source)
		}
		text.WriteString("config_sources:\n")
		for i := range clusters {
			fmt.Fprintf(&text, "- {authorities: [{name: a%d}], api_config_source: {api_type: AGGREGATED_GRPC, grpc_services: [{envoy_grpc: {cluster_name: c%d}}]}}\n", i, i)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := bootstrap.Parse("boot", []byte(text.String())); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		runtime.ReadMemStats(&after)
		size := text.Len() + file.Len()
		if took := after.TotalAlloc - before.TotalAlloc; took > 100*uint64(size) {
			t.Errorf("%s: %d bytes took %d MiB", what, size, took>>20)
		}
	}
}
