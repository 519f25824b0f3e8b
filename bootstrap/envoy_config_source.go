package bootstrap

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/xdswatch/xdswatch/xdstp"
)

// Types of which an Envoy bootstrap may ask for a collection.
const (
	listenerType = "envoy.config.listener.v3.Listener"
	clusterType  = "envoy.config.cluster.v3.Cluster"
)

// DefaultInitialFetchTimeout is that of envoy.config.core.v3.ConfigSource.initial_fetch_timeout.
const DefaultInitialFetchTimeout = 15 * time.Second

// WaitForever, like any negative time, is an InitialFetchTimeout that never ends, as for a
// ConfigSource with 0. A resource does not count as absent then, however long the server is
// silent.
const WaitForever time.Duration = -1

// sourceTerms reads what all kinds of an envoy.config.core.v3.ConfigSource have: the time
// to wait for a first answer, and whether resources are of version 2.
func (x field) sourceTerms() (timeout time.Duration, v2 bool) {
	v2 = x.at("resource_api_version").apiVersion()
	t := x.at("initial_fetch_timeout")
	if d := t.duration(); t.present() {
		// E-3: it waits for ever.
		if d == 0 {
			d = WaitForever
		}
		return d, v2
	}
	// DNE-10: 15 seconds by default.
	return DefaultInitialFetchTimeout, v2
}

// specifier is the one field of a ConfigSource that says where resources come from, and
// its name; "" after a fault.
func (x field) specifier() (name string, given field) {
	name, given = x.oneOf("ads", "api_config_source", "path_config_source", "path", "self")
	// CFG-1: none is an error.
	if name == "" {
		x.fault("names no source")
	}
	return name, given
}

// ownSpecifier is the specifier of a source that may be ads_config: so is what is aggregated and names no service.
func (x field) ownSpecifier() (name string, given field) {
	name, given = x.specifier()
	if name == "api_config_source" && given.sharesADS() {
		given.at("transport_api_version").apiVersion()
		for _, key := range []string{"rate_limit_settings", "set_node_on_first_message_only", "config_validators"} {
			if its := given.at(key); its.present() {
				its.notice("is not used; ads_config has its own")
			}
		}
		name = "ads"
	}
	return name, given
}

// sharesADS is whether an ApiConfigSource stands for ads_config.
func (x field) sharesADS() bool {
	// CFG-3: what names no server of its own shares the stream of ads_config.
	switch x.at("api_type").enum(apiTypes, "") {
	case "AGGREGATED_GRPC", "AGGREGATED_DELTA_GRPC":
		return len(x.at("grpc_services").items()) == 0 && len(x.at("cluster_names").items()) == 0
	}
	return false
}

// listedSource reads a member of config_sources, which answers for the authorities that it
// names.
func (x field) listedSource() Source {
	s := x.sharedSource(aggregatedAPI)
	// AUTH-2: a shared source names its authorities.
	if a := x.at("authorities"); len(a.items()) == 0 {
		a.fault("required: at least one")
	}
	return s
}

// sharedSource reads a member of config_sources, or default_config_source, which need not name
// authorities. What is no API, or has a stream for each type, cannot be shared by several types
// and authorities.
func (x field) sharedSource(use apiUse) Source {
	s := Source{Authorities: x.at("authorities").authorityNames()}
	s.InitialFetchTimeout, _ = x.sourceTerms()
	switch name, given := x.specifier(); name {
	case "api_config_source":
		s.Servers = given.apiConfigSource(use)
	case "":
	default:
		given.fault("want api_config_source")
	}
	return s
}

// authorityNames reads a list of xds.core.v3.Authority.
func (x field) authorityNames() []string {
	var names []string
	for _, item := range x.items() {
		if !item.entry() {
			continue
		}
		name := item.at("name")
		text := name.required()
		// AUTH-2: each once.
		if text != "" && slices.Contains(names, text) {
			name.fault("is named twice")
		}
		names = append(names, text)
	}
	return names
}

// nodeParamNames are the fields of a node that can be context parameters. Each entry of
// the two metadata makes a parameter of its own.
func nodeParamNames() []string {
	return []string{
		"id", "cluster", "user_agent_name", "user_agent_version",
		"locality.region", "locality.zone", "locality.sub_zone", "metadata",
		"user_agent_build_version.version", "user_agent_build_version.metadata",
	}
}

// nodeParamFault says what is wrong with an entry of node_context_params.
func nodeParamFault(name string) string {
	if known := nodeParamNames(); !slices.Contains(known, name) {
		return "want one of " + strings.Join(known, ", ")
	}
	return ""
}

func (x field) nodeParams() []string {
	var out []string
	for _, item := range x.items() {
		name := item.required()
		if reason := nodeParamFault(name); name != "" && reason != "" {
			item.fault("%s", reason)
		}
		out = append(out, name)
	}
	return out
}

// collectionFault says what is wrong with the locator of a collection of a type: an xdstp
// URL of a glob or of a list collection, or the URL of a file that holds a list (xRFC TP1).
func collectionFault(url, typ string) string {
	l, err := xdstp.ParseLocator(url)
	if err != nil {
		return locatorReason(err)
	}
	n := l.Name
	for _, p := range n.Params {
		if strings.HasPrefix(p.Key, "xds.") {
			return "the parameter \"" + p.Key + "\" is one that the client adds itself"
		}
	}
	for _, d := range l.Directives {
		if d.Alt == nil {
			return "an entry directive means one resource and no collection"
		}
	}
	glob := n.Type == typ && n.IsGlob()
	list := n.Type == typ+"Collection" && !n.IsGlob()
	if l.Scheme != xdstp.SchemeFile && (l.Scheme != xdstp.SchemeXDSTP || !glob && !list) {
		return "want an xdstp URL of a collection: of type " + typ + " with an id that ends in \"/*\", or of type " + typ + "Collection; or the URL of a file"
	}
	return ""
}

// locatorReason is the error of a locator without its text, which stands beside it.
func locatorReason(err error) string {
	e, ok := errors.AsType[*xdstp.Error](err)
	if !ok {
		return err.Error()
	}
	text := fmt.Sprintf("%s at byte %d: %s", e.Part, e.Offset, e.Reason)
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}
