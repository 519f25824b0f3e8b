package bootstrap

import "github.com/xdswatch/xdswatch/xdstp"

// isEnvoy is whether a document is an Envoy bootstrap: it has a field of one, and not the
// field that gRPC's format requires.
func isEnvoy(root map[string]any) bool {
	if root["xds_servers"] != nil {
		return false
	}
	for _, name := range []string{
		"dynamic_resources", "static_resources", "config_sources", "default_config_source",
		"node_context_params", "cluster_manager", "layered_runtime", "admin",
	} {
		if root[name] != nil || root[lowerCamel(name)] != nil {
			return true
		}
	}
	return false
}

// envoyConfig reads the part of envoy.config.bootstrap.v3.Bootstrap that speaks of
// management servers. It is walked and not unmarshalled, so that extensions of types that
// are not linked in do no harm.
func (x field) envoyConfig(c *Config) {
	// BOOTE-1: what is read of an Envoy bootstrap.
	x.known("envoy.config.bootstrap.v3.Bootstrap")
	c.Node = x.at("node").envoyNode()
	c.NodeContextParams = x.at("node_context_params").nodeParams()
	dynamic := x.at("dynamic_resources")
	static := x.at("static_resources")
	x.doc.clusters = static.at("clusters").clusterIndex()
	x.doc.secrets = static.at("secrets")

	sources := x.at("config_sources")
	for _, item := range sources.items() {
		if item.entry() {
			c.Sources = append(c.Sources, item.listedSource())
		}
	}
	if d := x.at("default_config_source"); d.object() {
		s := d.sharedSource(defaultAPI)
		c.DefaultSource = &s
	}
	if ads := dynamic.at("ads_config"); ads.present() {
		c.Servers = ads.apiConfigSource(anyAPI)
	} else {
		list, ok := sources.val.([]any)
		others := len(list) > 0 || sources.present() && !ok || x.at("default_config_source").present()
		ads.missing(dynamic, others)
	}
	dynamic.startup(c, "cds_config", "cds_resources_locator", clusterType)
	dynamic.startup(c, "lds_config", "lds_resources_locator", listenerType)
}

// missing is a fault of an absent ads_config if something refers to it, or if nothing else
// is a source of configuration.
func (x field) missing(dynamic field, others bool) {
	for _, name := range []string{"lds_config", "cds_config"} {
		source := dynamic.at(name)
		// BOOTE-2: ads needs ads_config.
		if source.at("ads").present() || source.at("api_config_source").sharesADS() {
			x.fault("required: %s refers to it", name)
			return
		}
		others = others || source.present()
	}
	for _, name := range []string{"lds_resources_locator", "cds_resources_locator"} {
		url, _ := dynamic.at(name).val.(string)
		others = others || xdstp.IsFile(url)
	}
	if !others {
		x.fault("required, or else config_sources, default_config_source, or an lds_config or cds_config of its own")
	}
}
