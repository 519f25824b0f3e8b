package bootstrap

import (
	"net/url"
	"strings"
)

// grpcConfig reads a bootstrap in gRPC's format (gRFC A27).
func (x field) grpcConfig(c *Config) {
	x.mayHave(rootKeys...)
	c.Node = x.at("node").grpcNode()
	servers := x.at("xds_servers")
	c.Servers = servers.servers()
	switch list, ok := servers.val.([]any); {
	case !servers.present():
		servers.fault("required (nor has the document any field of an Envoy bootstrap)%s", x.meant(rootKeys...))
	// BOOT-2: at least one server.
	case ok && len(list) == 0:
		servers.fault("must not be empty")
	}
	c.DynamicParameters.Old = x.at(dynamicParameters).texts()
	c.Authorities, c.DynamicParameters.Authorities = x.at("authorities").authorities()
	if reason := c.inheritanceFault(); reason != "" {
		x.at("authorities").fault("%s", reason)
	}
	c.ClientDefaultListenerTemplate = x.at("client_default_listener_resource_name_template").str()
	c.ServerListenerTemplate = x.at("server_listener_resource_name_template").str()
	c.CertificateProviders = x.at("certificate_providers").certificateProviders()
	// E-4: gRFC A102.
	c.AllowedGRPCServices = x.at("allowed_grpc_services").grpcServices()
}

func (x field) servers() []ManagementServer {
	var out []ManagementServer
	for _, item := range x.items() {
		if item.entry() {
			out = append(out, item.server())
		}
	}
	return out
}

func (x field) server() ManagementServer {
	s := ManagementServer{
		URI:          x.at("server_uri").dialled(),
		ChannelCreds: x.at("channel_creds").channelCreds(),
		CallCreds:    x.at("call_creds").callCreds(),
	}
	x.at("server_features").features(&s)
	x.mayHave(serverKeys...)
	return s
}

// authorities reads gRFC A47's map, with the dynamic parameters that entries have (gRFC
// A67); a null entry is an empty one.
func (x field) authorities() (out map[string]Authority, params map[string]map[string]string) {
	names, entries := x.entries()
	out = make(map[string]Authority, len(names))
	for i, name := range names {
		e := entries[i]
		if !e.present() {
			e.val = map[string]any{}
		}
		if !e.object() {
			continue
		}
		e.mayHave(authorityKeys...)
		tmpl := e.at("client_listener_resource_name_template")
		// BOOT-6: an authority has servers and a template of its own.
		a := Authority{
			Servers:                    e.at("xds_servers").servers(),
			ClientListenerTemplate:     tmpl.str(),
			FallbackOnReachabilityOnly: e.at("fallback_on_reachability_only").boolean(),
		}
		if reason := templateFault(name, a.ClientListenerTemplate); reason != "" {
			tmpl.fault("%s", reason)
		}
		out[name] = a
		if texts := e.at(dynamicParameters).texts(); texts != nil {
			if params == nil {
				params = map[string]map[string]string{}
			}
			params[name] = texts
		}
	}
	return out, params
}

// texts is a map of strings; nil if it is absent or empty.
func (x field) texts() (out map[string]string) {
	keys, values := x.entries()
	for i, key := range keys {
		if out == nil {
			out = map[string]string{}
		}
		out[key] = values[i].str()
	}
	return out
}

// templateFault says what is wrong with the listener template of an authority: it must
// be a name of that authority (gRFC A47), whose name may be percent-encoded or, where it
// has no character that would end it, stand as it is.
func templateFault(name, template string) string {
	encoded := authorityPrefix(url.PathEscape(name))
	// BOOT-6: the template begins with the authority's prefix.
	if template == "" || strings.HasPrefix(template, encoded) {
		return ""
	}
	if !strings.ContainsAny(name, "/?#") && strings.HasPrefix(template, authorityPrefix(name)) {
		return ""
	}
	return "must begin with \"" + encoded + "\""
}

func authorityPrefix(name string) string { return "xdstp://" + name + "/" }

// fileWatcher is the plugin of gRFC A29 that gRPC has itself.
const fileWatcher = "file_watcher"

// certificateProviders reads gRFC A29's map. The plugins are the program's own, so their
// names and configs are kept and not judged.
func (x field) certificateProviders() map[string]CertificateProvider {
	names, entries := x.entries()
	out := make(map[string]CertificateProvider, len(names))
	for i, e := range entries {
		if !e.entry() {
			continue
		}
		e.mayHave("plugin_name", "config")
		plugin, config := e.at("plugin_name"), e.at("config").hidden()
		name := plugin.required()
		if _, ok := config.val.(map[string]any); !ok && config.present() && name != fileWatcher {
			// BOOT-8, H-6: it is ignored, and a resource that refers to it is refused.
			plugin.notice("%s is no plugin that gRPC has, and its config is %s, not an object; the provider is ignored%s",
				shown(name), kind(config.val), didYouMean(name, []string{fileWatcher}))
			continue
		}
		config.object()
		// BOOT-8: the plugin is the program's.
		out[names[i]] = CertificateProvider{PluginName: name, Config: config.raw()}
	}
	return out
}

// grpcServices reads gRFC A102's map.
func (x field) grpcServices() map[string]GRPCService {
	names, entries := x.entries()
	out := make(map[string]GRPCService, len(names))
	for i, e := range entries {
		if !e.entry() {
			continue
		}
		e.mayHave("channel_creds", "call_creds")
		out[names[i]] = GRPCService{
			ChannelCreds: e.at("channel_creds").channelCreds(),
			CallCreds:    e.at("call_creds").callCreds(),
		}
	}
	return out
}
