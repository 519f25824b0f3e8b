package bootstrap

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
	c.Node = x.at("node").envoyNode()
	for _, name := range []string{"config_sources", "default_config_source", "node_context_params"} {
		if waits := x.at(name); waits.present() {
			waits.notice("is not supported yet and not used")
		}
	}
	dynamic := x.at("dynamic_resources")
	dynamic.object()
	static := x.at("static_resources")
	static.object()

	c.WatchListeners = dynamic.wantsAll("lds_config", "lds_resources_locator")
	c.WatchClusters = dynamic.wantsAll("cds_config", "cds_resources_locator")
	ads := dynamic.at("ads_config")
	if !ads.present() {
		ads.fault("required: it is the only source of configuration that is supported")
		return
	}
	c.Servers = ads.apiConfigSource(static.at("clusters"))
}

// wantsAll is whether a source of Listeners or Clusters is `ads: {}` with no locator that
// names a part of them.
func (x field) wantsAll(source, locator string) bool {
	ads := x.at(source).adsSource()
	if l := x.at(locator); l.str() != "" {
		l.notice("is not supported yet and not used")
		return false
	}
	return ads
}

// adsSource reads an envoy.config.core.v3.ConfigSource and is whether it refers to
// ads_config.
func (x field) adsSource() bool {
	if !x.object() {
		return false
	}
	x.at("resource_api_version").apiVersion()
	if t := x.at("initial_fetch_timeout"); t.duration() != 0 {
		t.notice("is not supported yet; the client's own timer for a resource is used")
	}
	if ads := x.at("ads"); ads.present() {
		return ads.object()
	}
	for _, name := range []string{"api_config_source", "path_config_source", "path", "self"} {
		if other := x.at(name); other.present() {
			other.notice("is not supported yet and not used; only ads is")
			return false
		}
	}
	x.fault("names no source")
	return false
}
