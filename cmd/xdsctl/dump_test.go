package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// envoyDump is of the shape that Envoy writes: what it was started with may have no name, localities without a
// weight have the weight 0, what is active stands beside what warms, and scopes have a name as a list.
const envoyDump = `{"configs": [
	{"@type": "type.googleapis.com/envoy.admin.v3.ClustersConfigDump",
		"dynamic_active_clusters": [{"version_info": "1", "cluster": {"@type": "type.googleapis.com/envoy.config.cluster.v3.Cluster", "name": "c", "alt_stat_name": "active"}}],
		"dynamic_warming_clusters": [{"version_info": "2", "cluster": {"@type": "type.googleapis.com/envoy.config.cluster.v3.Cluster", "name": "c", "alt_stat_name": "warming"}}]},
	{"@type": "type.googleapis.com/envoy.admin.v3.EndpointsConfigDump", "static_endpoint_configs": [{"endpoint_config": {
		"@type": "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment", "cluster_name": "e", "endpoints": [{"locality": {}, "load_balancing_weight": 0}]}}]},
	{"@type": "type.googleapis.com/envoy.admin.v3.ListenersConfigDump",
		"static_listeners": [{"listener": {"@type": "type.googleapis.com/envoy.config.listener.v3.Listener", "stat_prefix": "static"}}],
		"dynamic_listeners": [{"name": "l",
			"active_state": {"version_info": "1", "listener": {"@type": "type.googleapis.com/envoy.config.listener.v3.Listener", "name": "l", "stat_prefix": "active"}},
			"warming_state": {"version_info": "2", "listener": {"@type": "type.googleapis.com/envoy.config.listener.v3.Listener", "name": "l", "stat_prefix": "warming"}}}]},
	{"@type": "type.googleapis.com/envoy.admin.v3.RoutesConfigDump", "static_route_configs": [
		{"route_config": {"@type": "type.googleapis.com/envoy.config.route.v3.RouteConfiguration"}}, {"route_config": {"@type": "type.googleapis.com/envoy.config.route.v3.RouteConfiguration"}}]},
	{"@type": "type.googleapis.com/envoy.admin.v3.ScopedRoutesConfigDump", "inline_scoped_route_configs": [{"name": "scopes", "scoped_route_configs": [
		{"@type": "type.googleapis.com/envoy.config.route.v3.ScopedRouteConfiguration", "name": "s", "route_configuration_name": "r", "key": {"fragments": [{"string_key": "a"}]}},
		{"@type": "type.googleapis.com/envoy.config.route.v3.ScopedRouteConfiguration", "name": "t", "route_configuration_name": "r", "key": {"fragments": [{"string_key": "b"}]}}]}]}
]}`

// What an Envoy has is what its server would have to send: what is active, under its own name. It is the same
// from a file and from its administration, and no fault is found in it.
func TestDumpOfEnvoy(t *testing.T) {
	t.Parallel()
	path := file(t, "dump.json", envoyDump)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, envoyDump) }))
	t.Cleanup(srv.Close)
	want := file(t, "want.yaml", `
{"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: c, altStatName: active}
---
{"@type": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment, clusterName: e, endpoints: [{locality: {}}]}
---
{"@type": type.googleapis.com/envoy.config.listener.v3.Listener, name: l, statPrefix: active}
---
{"@type": type.googleapis.com/envoy.config.route.v3.ScopedRouteConfiguration, name: s, routeConfigurationName: r, key: {fragments: [{stringKey: a}]}}
---
{"@type": type.googleapis.com/envoy.config.route.v3.ScopedRouteConfiguration, name: t, routeConfigurationName: r, key: {fragments: [{stringKey: b}]}}
`)
	for _, from := range []string{path, srv.URL} {
		if status, out, errs := runOnce(t, "diff", from, want); status != 0 || out+errs != "" {
			t.Errorf("%s: status %d, %s%s", from, status, out, errs)
		}
		status, out, errs := runOnce(t, "validate", "-o", "json", from)
		if status != 0 || strings.Contains(out, `"error"`) || errs != "" {
			t.Errorf("%s: status %d, %s%s", from, status, out, errs)
		}
		if _, out, _ := runOnce(t, "dump", "--format", "yaml", from); out != "" {
			if status, out, errs := runOnce(t, "diff", file(t, "dump.yaml", out), want); status != 0 || out+errs != "" {
				t.Errorf("%s, as YAML: status %d, %s%s", from, status, out, errs)
			}
		}
		status, out, errs = runOnce(t, "dump", "--format", "json", from)
		var all []struct {
			Name, Version string
			Resource      struct{ StatPrefix, AltStatName string }
		}
		if err := json.Unmarshal([]byte(out), &all); err != nil || status != 0 {
			t.Errorf("%s: status %d, %v, %s", from, status, err, errs)
		}
		for _, r := range all {
			if state := r.Resource.StatPrefix + r.Resource.AltStatName; r.Version != "" && state != "active" {
				t.Errorf("%s: %s is %s of version %s", from, r.Name, state, r.Version)
			}
		}
	}
}
