package bootstrap_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/xdswatch/xdswatch/bootstrap"
)

// everythingDoc is an Envoy bootstrap with nearly all that is read of one.
const everythingDoc = `{
	"node": {"id": "a", "cluster": "b", "metadata": {"k": 1}, "locality": {"region": "r"}},
	"node_context_params": ["id"],
	"config_sources": [{"authorities": [{"name": "au"}], "api_config_source": {
		"api_type": "AGGREGATED_GRPC", "grpc_services": [{"envoy_grpc": {"cluster_name": "c"}}]
	}}],
	"default_config_source": {"initial_fetch_timeout": "1s", "api_config_source": {
		"api_type": "AGGREGATED_DELTA_GRPC", "grpc_services": [{"envoy_grpc": {"cluster_name": "tls"}}]
	}},
	"dynamic_resources": {
		"ads_config": {
			"api_type": "GRPC", "transport_api_version": "V3", "set_node_on_first_message_only": true,
			"rate_limit_settings": {"max_tokens": 5, "fill_rate": 1.5},
			"grpc_services": [{
				"google_grpc": {"target_uri": "x:1", "channel_credentials": {"ssl_credentials": {"root_certs": {"filename": "f"}}}},
				"initial_metadata": [{"key": "k"}],
				"retry_policy": {"retry_back_off": {"base_interval": "1s", "max_interval": "2s"}}
			}]
		},
		"lds_config": {"initial_fetch_timeout": "1s", "resource_api_version": "V3", "api_config_source": {
			"api_type": "REST", "cluster_names": ["c"], "refresh_delay": "1s", "request_timeout": "1s"
		}},
		"cds_config": {"path_config_source": {"path": "p", "watched_directory": {"path": "d"}}},
		"cds_resources_locator": "file:///x"
	},
	"static_resources": {"clusters": [
		{"name": "c", "type": "STATIC", "load_assignment": {"endpoints": [{"lb_endpoints": [
			{"endpoint": {"address": {"socket_address": {"address": "h", "port_value": 1}}}}
		]}]}},
		{
			"name": "tls",
			"load_assignment": {"endpoints": [{"lb_endpoints": [{"endpoint": {"address": {"pipe": {"path": "p"}}}}]}]},
			"transport_socket": {"name": "t", "typed_config": {
				"@type": "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext",
				"sni": "s", "auto_sni_san_validation": true,
				"common_tls_context": {
					"tls_certificates": [{"certificate_chain": {"filename": "c"}, "private_key": {"filename": "k"}}],
					"validation_context": {
						"trusted_ca": {"filename": "f"},
						"match_typed_subject_alt_names": [{"san_type": "DNS", "matcher": {"exact": "x"}}]
					}
				}
			}}
		}
	]}
}`

// What is of the wrong type is told once, and not what follows from it.
func TestOneFault(t *testing.T) {
	if _, err := bootstrap.Parse("envoy", []byte(everythingDoc)); err != nil {
		t.Fatal(err)
	}
	var root map[string]any
	if err := json.Unmarshal([]byte(everythingDoc), &root); err != nil {
		t.Fatal(err)
	}
	ignored := []string{"node.metadata.k", "static_resources.clusters[1].transport_socket.name"}
	named := []string{"static_resources.clusters[0].name", "static_resources.clusters[1].name"} // by others, which are at fault
	spoil(root, "", func(path string) {
		text, err := json.Marshal(root)
		if err != nil {
			t.Fatal(err)
		}
		_, err = bootstrap.Parse("envoy", text)
		switch {
		case slices.Contains(ignored, path):
			if err != nil {
				t.Errorf("%s: %v", path, err)
			}
		case err == nil:
			t.Errorf("%s: no fault", path)
		case slices.Contains(named, path):
		case strings.Contains(err.Error(), "\n") || !strings.HasPrefix(err.Error(), "envoy: "+path+" = ") && !strings.HasPrefix(err.Error(), "envoy: "+path+": "):
			t.Errorf("%s:\n%v", path, err)
		}
	})
}

// spoil calls a function with each value of a tree of the wrong type in turn.
func spoil(v any, path string, try func(path string)) {
	change := func(at string, was any, set func(any)) {
		set(true)
		if was == true {
			set("-1s")
		}
		try(at)
		set(was)
		spoil(was, at, try)
	}
	switch v := v.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			at := strings.TrimPrefix(path+"."+key, ".")
			if key == "@type" {
				at = path + `["@type"]`
			}
			change(at, v[key], func(to any) { v[key] = to })
		}
	case []any:
		for i := range v {
			change(fmt.Sprintf("%s[%d]", path, i), v[i], func(to any) { v[i] = to })
		}
	}
}
