package main

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/cmd/xdsctl/internal/report"
)

// What a bootstrap means, in either format, without what is secret in it.
//
// spec: H-3
func TestBootstrap(t *testing.T) {
	t.Parallel()
	grpc := file(t, "grpc.json", `{
		"node": {"id": "me", "metadata": {"a": 1}},
		"xds_servers": [{"server_uri": "one:1", "channel_creds": [{"type": "tls", "config": {"ca_certificate_file": "/ca.pem"}}],
			"call_creds": [{"type": "jwt_token_file", "config": {"jwt_token_file": "/token"}}],
			"server_features": ["trusted_xds_server", "xdswatch.delta"]}],
		"authorities": {"": {}, "b": {"xds_servers": [{"server_uri": "two:2?token=MARK3R", "channel_creds": [{"type": "insecure"}]}], "fallback_on_reachability_only": true}},
		"allowed_grpc_services": {"dns:///three:3?token=MARK3R": {"channel_creds": [{"type": "insecure"}]}},
		"certificate_providers": {"p": {"plugin_name": "file_watcher", "config": {"secret": "MARK3R"}}}
	}`)
	envoy := file(t, "envoy.yaml", `
node: {id: me, cluster: c}
dynamic_resources:
  ads_config:
    api_type: DELTA_GRPC
    transport_api_version: V3
    grpc_services:
    - envoy_grpc: {cluster_name: xds}
      initial_metadata: [{key: x-token, value: MARK3R}]
  cds_config: {ads: {}, resource_api_version: V3}
  lds_config: {path_config_source: {path: /lds.yaml}}
static_resources:
  clusters:
  - name: xds
    type: STRICT_DNS
    http2_protocol_options: {}
    load_assignment: {cluster_name: xds, endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: xds.example, port_value: 443}}}}]}]}
`)
	for _, tt := range []struct {
		path string
		want []string
	}{
		{grpc, []string{
			`"serves": "names without an authority"`, `"uri": "one:1"`, `"variant": "delta"`, `"streams": "ads"`, `"trusted_ca": "/ca.pem"`,
			`"jwt_token_file /token"`, `"trusted_xds_server"`, `"serves": "authority \"\""`, `"serves": "authority b"`,
			`"fallback_on_reachability_only": true`, `"type": "insecure"`, `"certificate_providers": [`, `"a": 1`, `"faults": []`,
		}},
		{envoy, []string{
			`"uri": "dns:///xds.example:443"`, `"x-token"`, `"variant": "delta"`, `"collection": "*"`, `"serves": "lds from the start"`, `"carrier": "file"`, `"cluster": "c"`,
		}},
	} {
		for _, format := range []string{"json", "text"} {
			status, out, errs := runOnce(t, "bootstrap", "-o", format, tt.path)
			if status != 0 || errs != "" || strings.Contains(out, "MARK3R") {
				t.Errorf("%s: status %d, %s\n%s", tt.path, status, errs, out)
			}
			for _, want := range tt.want {
				if format == "json" && !strings.Contains(out, want) {
					t.Errorf("%s lacks %s:\n%s", tt.path, want, out)
				}
			}
		}
	}
}

// Each feature of a server is told.
func TestFeaturesOf(t *testing.T) {
	told := map[string]bool{}
	for i := range reflect.TypeFor[bootstrap.Features]().NumField() {
		var s bootstrap.ManagementServer
		reflect.ValueOf(&s.Features).Elem().Field(i).SetBool(true)
		words := featuresOf(s)
		if len(words) != 1 || told[words[0]] {
			t.Errorf("Features.%s is told as %q", reflect.TypeFor[bootstrap.Features]().Field(i).Name, words)
			continue
		}
		told[words[0]] = true
	}
}

// All that is wrong is told at once, in JSON too.
func TestBootstrapFaults(t *testing.T) {
	t.Setenv(bootstrap.EnvPath, "")
	t.Setenv(bootstrap.EnvConfig, "")
	bad := file(t, "bad.json", `{"xds_servers": [{"channel_creds": [{"type": "tsl"}]}]}`)
	status, out, errs := runOnce(t, "bootstrap", "-o", "json", bad)
	var b struct {
		Source string
		Faults []report.BootstrapFault
	}
	if err := json.Unmarshal([]byte(out), &b); err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprintf("%q", b.Faults)
	const want = `[{"xds_servers[0].server_uri" "" "required"} {"xds_servers[0].channel_creds[0].type" "\"tsl\"" "is no known type; did you mean \"tls\"?"}]`
	if status != 2 || b.Source != bad || got != want || !strings.Contains(errs, "server_uri: required\n  also: ") {
		t.Errorf("status %d, source %s, faults %s, standard error %s", status, b.Source, got, errs)
	}
	useless := file(t, "useless.json", `{"xds_servers": [{"server_uri": "x", "channel_creds": [{"type": "insecure"}],
		"call_creds": [{"type": "jwt_token_file", "config": {"jwt_token_file": "/t"}}]}]}`)
	for args, want := range map[string]string{
		"":                "neither GRPC_XDS_BOOTSTRAP nor GRPC_XDS_BOOTSTRAP_CONFIG is set; give a FILE",
		"/does/not/exist": "no such file",
		useless:           `call_creds "jwt_token_file"`,
		"a b":             "accepts at most 1 arg",
	} {
		if status, out, errs := runOnce(t, append([]string{"bootstrap"}, words(args)...)...); status != 2 || out != "" || !strings.Contains(errs, want) {
			t.Errorf("%s: status %d, %s%s", args, status, out, errs)
		}
	}
	t.Setenv(bootstrap.EnvConfig, `{"xds_servers": [{"server_uri": "x", "channel_creds": [{"type": "insecure"}]}]}`)
	if status, out, errs := runOnce(t, "bootstrap"); status != 0 || !strings.Contains(out, "plaintext") {
		t.Errorf("status %d, %s%s", status, out, errs)
	}
}
