package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	"sigs.k8s.io/yaml"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/testutil"
)

var ours = regexp.MustCompile(`\b(grpc_xds_client|xdswatch)_[a-z_]+`)

// The dashboard and the alerts ask for metrics that there are.
func TestNames(t *testing.T) {
	m, err := testutil.NewManagementServer(testutil.ManagementConfig{})
	must(t, err)
	defer m.Stop()
	must(t, m.Set("1", &listenerv3.Listener{Name: "listener"}, &clusterv3.Cluster{Name: "c"}))
	boot, err := bootstrap.Server(m.Addr())
	must(t, err)
	handler, closeAll, err := serve(t.Context(), boot, "listener", t.TempDir())
	must(t, err)
	defer closeAll()
	server := httptest.NewServer(handler)
	defer server.Close()
	// The counters of failures come with the first; what a response changes comes with it, bit by bit.
	served := map[string]bool{"grpc_xds_client_server_failure_total": true, "grpc_xds_client_resource_updates_invalid_total": true}
	answered := func() bool {
		return served["xdswatch_last_update_age_seconds"] && served["xdswatch_last_accepted_response_age_seconds"] &&
			served["grpc_xds_client_resource_updates_valid_total"]
	}
	for begin := time.Now(); !answered(); {
		if time.Since(begin) > 30*time.Second {
			t.Fatal("no listener came")
		}
		resp, err := http.Get(server.URL)
		must(t, err)
		text, err := io.ReadAll(resp.Body)
		must(t, err)
		resp.Body.Close()
		for _, name := range ours.FindAllString(string(text), -1) {
			served[name] = true
		}
	}
	for _, file := range []string{"dashboard.json", "alerts.yaml"} {
		text, err := os.ReadFile(file)
		must(t, err)
		var any map[string]any
		if file == "dashboard.json" {
			err = json.Unmarshal(text, &any)
		} else {
			err = yaml.Unmarshal(text, &any)
		}
		must(t, err)
		names := ours.FindAllString(string(text), -1)
		slices.Sort(names)
		for _, name := range slices.Compact(names) {
			if label := name == "xdswatch_view"; !label && name != "xdswatch_view_blocking" && !served[name] {
				t.Errorf("%s asks for %s, which there is not", file, name)
			}
		}
		if len(names) < 5 {
			t.Errorf("%s asks for %d metrics", file, len(names))
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
