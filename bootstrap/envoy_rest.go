package bootstrap

import "strings"

// ownServers reads a source that is none of ads and self, by the name of its field. Of a
// file the version of its resources is that of the transport: it has no other.
func (x field) ownServers(name string, v2 bool) []ManagementServer {
	switch name {
	case "api_config_source":
		return x.apiConfigSource(ownAPI)
	case "path_config_source":
		return x.pathSource(v2)
	case "path":
		return fileServer(File{Path: x.required()}, v2)
	}
	return nil // a fault of its own
}

// pathSource reads an envoy.config.core.v3.PathConfigSource.
func (x field) pathSource(v2 bool) []ManagementServer {
	if !x.object() {
		return nil
	}
	file := File{Path: x.at("path").required()}
	if watched := x.at("watched_directory"); watched.object() {
		file.WatchedDirectory = watched.at("path").required()
	}
	return fileServer(file, v2)
}

func fileServer(file File, v2 bool) []ManagementServer {
	return []ManagementServer{{URI: "file://" + file.Path, Carrier: &file, TransportV2: v2}}
}

// restServer reads an ApiConfigSource of type REST.
func (x field) restServer(v2 bool) []ManagementServer {
	// CFG-5: REST names clusters.
	if services := x.at("grpc_services"); len(services.items()) > 0 {
		services.fault("grpc_services belongs to gRPC; want cluster_names")
	}
	if limit := x.at("rate_limit_settings"); limit.object() {
		limit.notice("is for gRPC and not used; refresh_delay says how often is polled")
	}
	delay, timeout := x.at("refresh_delay"), x.at("request_timeout")
	rest := &REST{RefreshDelay: delay.duration(), RequestTimeout: timeout.duration()}
	// REST-3: there is no default.
	if rest.RefreshDelay == 0 {
		delay.fault("required with REST, more than 0")
	}
	if timeout.present() && rest.RequestTimeout == 0 {
		timeout.fault("must be more than 0")
	}
	names := x.at("cluster_names")
	if len(names.items()) == 0 {
		names.fault("required with REST: at least one cluster")
	}
	var uri []string
	for _, item := range names.items() {
		name, to := item.staticCluster()
		rest.Endpoints = append(rest.Endpoints, RESTEndpoint{Address: to.URI, Authority: name, ChannelCreds: to.ChannelCreds})
		uri = append(uri, name)
	}
	return []ManagementServer{{URI: "rest:" + strings.Join(uri, ","), PerType: true, Carrier: rest, TransportV2: v2}}
}
