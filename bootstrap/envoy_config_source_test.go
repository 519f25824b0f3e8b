package bootstrap_test

import (
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"github.com/google/go-cmp/cmp"
	"github.com/xdswatch/xdswatch/bootstrap"
)

// A static cluster that two sources name is read, and noticed, once.
//
// spec: BOOTE-1 BOOTE-3 AUTH-2 CFG-2 DNE-10
func TestEnvoyConfigSources(t *testing.T) {
	const file = "testdata/envoy_config_sources.yaml"
	got, err := bootstrap.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	first := bootstrap.ManagementServer{
		URI: "dns:///192.0.2.1:18000", ChannelCreds: bootstrap.Insecure(), HostAuthority: "xds-1",
	}
	delta := first
	delta.Delta = true
	want := &bootstrap.Config{
		Node: &corev3.Node{Id: "edge-3", Cluster: "edge"},
		Sources: []bootstrap.Source{{
			Authorities: []string{"a.example", "b.example"}, InitialFetchTimeout: 5 * time.Second,
			Servers: []bootstrap.ManagementServer{delta, {
				URI: "dns:///xds-2.example:18000", ChannelCreds: bootstrap.Insecure(), HostAuthority: "xds-2", Delta: true,
			}},
		}, {
			Authorities: []string{"b.example", "c.example"}, InitialFetchTimeout: 15 * time.Second,
			Servers: []bootstrap.ManagementServer{first},
		}},
		DefaultSource: &bootstrap.Source{
			InitialFetchTimeout: 15 * time.Second,
			Servers:             []bootstrap.ManagementServer{{URI: "dns:///xds-3.example:443", ChannelCreds: bootstrap.Insecure()}},
		},
		ClientDefaultListenerTemplate: "%s",
		Startup: []bootstrap.Subscription{
			{TypeURL: clustersType, Collection: "xdstp://b.example/envoy.config.cluster.v3.ClusterCollection/edge", InitialFetchTimeout: 5 * time.Second},
			{TypeURL: listenersType, Collection: "xdstp://a.example/envoy.config.listener.v3.Listener/edge/*?region=eu", InitialFetchTimeout: 5 * time.Second},
		},
		NodeContextParams: []string{"id", "locality.zone", "metadata"},
		Notices: []string{
			file + ": static_resources.clusters[1].load_assignment: 2 endpoints are given; only the first of the best priority is used",
		},
	}
	if diff := cmp.Diff(want, got, sameConfig); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if err := got.Validate(); err != nil {
		t.Error(err)
	}
}

// spec: AUTH-2 CFG-1 CFG-4 CFG-5 BOOTE-2
func TestEnvoyConfigSourceFaults(t *testing.T) {
	const (
		good = `api_config_source: {api_type: AGGREGATED_GRPC, grpc_services: [{google_grpc: {target_uri: "x:1"}}]}`
		node = "node: {id: a, cluster: b}\n"
		def  = "default_config_source: {" + good + "}\n"
		wild = `envoy: dynamic_resources.lds_resources_locator = `
	)
	listed := func(source string) string { return node + "config_sources: [" + source + "]" }
	locator := func(url string) string {
		return node + def + `dynamic_resources: {lds_resources_locator: "` + url + `"}`
	}
	const wants = `want an xdstp URL of a collection: of type envoy.config.listener.v3.Listener with an id that ends in "/*", ` +
		`or of type envoy.config.listener.v3.ListenerCollection; or the URL of a file`
	for name, c := range map[string]struct{ doc, want string }{
		"no source at all": {
			node + "dynamic_resources: {}",
			"envoy: dynamic_resources.ads_config: required, or else config_sources, default_config_source, or an lds_config or cds_config of its own",
		},
		"an empty list of sources": {
			node + "config_sources: []",
			"envoy: dynamic_resources.ads_config: required, or else config_sources, default_config_source, or an lds_config or cds_config of its own",
		},
		"ads without ads_config": {
			node + def + "dynamic_resources: {lds_config: {ads: {}}}",
			"envoy: dynamic_resources.ads_config: required: lds_config refers to it",
		},
		"only a default":  {node + def, ""},
		"null in a list":  {listed("null"), "envoy: config_sources[0]: want an object, is null"},
		"not a list":      {node + "config_sources: 7\n" + def, "envoy: config_sources: want a list, is a number"},
		"alone":           {node + "config_sources: {ads: {}}\n" + def, "envoy: config_sources.ads: want api_config_source\nenvoy: config_sources.authorities: required: at least one"},
		"not an object":   {node + "default_config_source: 7", "envoy: default_config_source: want an object, is a number"},
		"empty":           {node + "default_config_source: {}", "envoy: default_config_source: names no source"},
		"no authorities":  {listed("{authorities: [], " + good + "}"), "envoy: config_sources[0].authorities: required: at least one"},
		"empty authority": {listed(`{authorities: [{name: ""}, {}, null], ` + good + "}"), "envoy: config_sources[0].authorities[0].name = \"\": must not be empty\nenvoy: config_sources[0].authorities[1].name: required\nenvoy: config_sources[0].authorities[2]: want an object, is null"},
		"authority twice": {listed(`{authorities: [{name: x}, {name: z}, {name: x}], ` + good + "}"), `envoy: config_sources[0].authorities[2].name = "x": is named twice`},
		"authority of two sources": {
			listed(`{authorities: [{name: x}], ` + good + "}, {authorities: [{name: x}], " + good + "}"), "",
		},
		"file": {listed(`{authorities: [{name: x}], path: /lds}`), `envoy: config_sources[0].path = "/lds": want api_config_source`},
		"two kinds": {
			listed(`{authorities: [{name: x}], self: {}, ` + good + "}"),
			"envoy: config_sources[0].self: is given beside api_config_source; want one of them",
		},
		"version 2": {
			node + "default_config_source: {resource_api_version: V2, " + good + "}",
			`envoy: default_config_source.resource_api_version = "V2": version 2 of the xDS protocol is not supported; want V3`,
		},
		"REST": {
			node + "default_config_source: {api_config_source: {api_type: REST, cluster_names: [c]}}",
			"envoy: default_config_source.api_config_source.refresh_delay: required with REST, more than 0\n" +
				`envoy: default_config_source.api_config_source.cluster_names[0] = "c": no cluster in static_resources has this name`,
		},
		"REST for a list of authorities": {
			listed(`{authorities: [{name: x}], api_config_source: {api_type: REST, cluster_names: [c]}}`),
			`envoy: config_sources[0].api_config_source.api_type = "REST": want AGGREGATED_GRPC or AGGREGATED_DELTA_GRPC`,
		},
		"no type": {
			node + `default_config_source: {api_config_source: {grpc_services: [{google_grpc: {target_uri: "x:1"}}]}}`,
			"envoy: default_config_source.api_config_source.api_type: required: AGGREGATED_GRPC, AGGREGATED_DELTA_GRPC or REST",
		},
		"unknown cluster": {
			node + `default_config_source: {api_config_source: {api_type: AGGREGATED_GRPC, grpc_services: [{envoy_grpc: {cluster_name: c}}]}}`,
			`envoy: default_config_source.api_config_source.grpc_services[0].envoy_grpc.cluster_name = "c": no cluster in static_resources has this name`,
		},
		"a bad cluster twice": {
			node + `default_config_source: {api_config_source: {api_type: AGGREGATED_GRPC, grpc_services: [{envoy_grpc: {cluster_name: c}}, {envoy_grpc: {cluster_name: c}}]}}` +
				"\nstatic_resources: {clusters: [{name: c, type: EDS, " + assigned + "}]}",
			`envoy: static_resources.clusters[0].type = "EDS": the cluster of a management server must be STATIC, STRICT_DNS or LOGICAL_DNS`,
		},
		"node parameters": {
			node + def + `node_context_params: [id, "", 5, color]`,
			"envoy: node_context_params[1] = \"\": must not be empty\n" +
				"envoy: node_context_params[2] = 5: want a string, is a number; put the text in quotes\n" +
				"envoy: node_context_params[3] = \"color\": want one of id, cluster, user_agent_name, user_agent_version, locality.region, " +
				"locality.zone, locality.sub_zone, metadata, user_agent_build_version.version, user_agent_build_version.metadata",
		},
		"locator":                    {locator("xdstp:///envoy.config.listener.v3.Listener/*?a=b#alt=xdstp:///x/y/*"), ""},
		"locator of a list":          {locator("xdstp://a/envoy.config.listener.v3.ListenerCollection/x"), ""},
		"locator of a file":          {locator("file:///etc/x.yaml#alt=xdstp:///x/y/*"), ""},
		"locator of a file's entry":  {locator("file:///etc/x.yaml#entry=y"), wild + `"file:///etc/x.yaml#entry=y": an entry directive means one resource and no collection`},
		"locator of one":             {locator("xdstp://a/envoy.config.listener.v3.Listener/x"), wild + `"xdstp://a/envoy.config.listener.v3.Listener/x": ` + wants},
		"locator of a glob of lists": {locator("xdstp://a/envoy.config.listener.v3.ListenerCollection/*"), wild + `"xdstp://a/envoy.config.listener.v3.ListenerCollection/*": ` + wants},
		"locator over HTTP":          {locator("http://a/envoy.config.listener.v3.Listener/*"), wild + `"http://a/envoy.config.listener.v3.Listener/*": ` + wants},
		"locator of an entry":        {locator("xdstp://a/envoy.config.listener.v3.ListenerCollection/x#entry=y"), wild + `"xdstp://a/envoy.config.listener.v3.ListenerCollection/x#entry=y": an entry directive means one resource and no collection`},
		"locator with own context":   {locator("xdstp://a/envoy.config.listener.v3.Listener/*?xds.node.id=b"), wild + `"xdstp://a/envoy.config.listener.v3.Listener/*?xds.node.id=b": the parameter "xds.node.id" is one that the client adds itself`},
		"locator with a bad alternative": {
			locator("xdstp://a/envoy.config.listener.v3.Listener/*#alt=x"),
			wild + `"xdstp://a/envoy.config.listener.v3.Listener/*#alt=x": directives at byte 46: the alternative: xdstp: "x": scheme at byte 0: is none of xdstp, http and file`,
		},
		"locator that is none": {locator("all"), wild + `"all": scheme at byte 0: is none of xdstp, http and file`},
	} {
		t.Run(name, func(t *testing.T) { wantError(t, c.doc, c.want) })
	}
}
