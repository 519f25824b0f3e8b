package view

import (
	"errors"
	"fmt"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3" // of each HTTP listener; a store keeps only what is linked
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tcpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/xdswatch/xdswatch/view/route"
)

// routeRef is a route configuration as a listener has it.
type routeRef struct {
	name   string // of a resource
	source *corev3.ConfigSource
	inline *routev3.RouteConfiguration // nil of a resource
	read   *routesRead                 // of inline; nil until it was read
	normal route.Normalization
}

// scopesRef are scopes of routes, as a listener has them.
type scopesRef struct {
	collection string // of scopes (SRDS); "" if the listener contains them
	source     *corev3.ConfigSource
	inline     []*routev3.ScopedRouteConfiguration
	routes     *corev3.ConfigSource // of the route configurations
	normal     route.Normalization
}

// listenerRead is what a Listener names.
type listenerRead struct {
	routes []routeRef       // each resource once
	known  map[string][]int // of routes, those of a name
	scopes []scopesRef
	names  names // clusters of TCP proxies
	needs  []Dependency
	err    error // the listener cannot be the root
	note   error // what of it cannot be read
}

// readListener reads a listener, with a host a client's.
func readListener(l *listenerv3.Listener, host string, h *hooks) *listenerRead {
	r := &listenerRead{known: map[string][]int{}}
	var faults []error
	api := l.GetApiListener().GetApiListener()
	switch {
	case api != nil:
		faults = append(faults, r.filter(api))
	case host != "": // VIEW-22
		r.err = errors.New("the listener has no api_listener, so no host can be looked up in it")
		return r
	}
	if host == "" {
		for _, chain := range append(l.GetFilterChains(), l.GetDefaultFilterChain()) {
			for _, f := range chain.GetFilters() {
				faults = append(faults, r.filter(f.GetTypedConfig()))
			}
		}
	}
	found := h.walk(l)
	r.needs, r.names = found.needs, append(r.names, found.clusters...)
	r.note = errors.Join(append(faults, found.err)...)
	if host != "" && len(r.routes)+len(r.scopes) == 0 {
		r.err = errors.Join(errors.New("the api_listener of the listener leads to no routes"), r.note)
	}
	return r
}

// filter reads a network filter; one that the view does not know names nothing.
func (r *listenerRead) filter(config *anypb.Any) error {
	switch {
	case config == nil:
	case config.MessageIs((*hcmv3.HttpConnectionManager)(nil)):
		var hcm hcmv3.HttpConnectionManager
		if err := unmarshal(config, &hcm); err != nil {
			return err
		}
		return r.httpManager(&hcm)
	case config.MessageIs((*tcpv3.TcpProxy)(nil)):
		var tcp tcpv3.TcpProxy
		if err := unmarshal(config, &tcp); err != nil {
			return err
		}
		r.names.add(tcp.GetCluster(), refListener)
		for _, c := range tcp.GetWeightedClusters().GetClusters() {
			r.names.add(c.GetName(), refListener)
		}
	}
	return nil
}

func (r *listenerRead) httpManager(hcm *hcmv3.HttpConnectionManager) error {
	normal := normalizationOf(hcm)
	if inline := hcm.GetRouteConfig(); inline != nil {
		r.routes = append(r.routes, routeRef{inline: inline, normal: normal})
	}
	if scoped := hcm.GetScopedRoutes(); scoped != nil {
		scopes := scopesOf(scoped)
		scopes.normal = normal
		r.scopes = append(r.scopes, scopes)
	}
	rds := hcm.GetRds()
	if rds == nil {
		return nil
	}
	if rds.GetRouteConfigName() == "" {
		return errors.New("an http_connection_manager has rds without route_config_name")
	}
	for _, i := range r.known[rds.GetRouteConfigName()] {
		if known := r.routes[i]; proto.Equal(known.source, rds.GetConfigSource()) {
			if known.normal != normal {
				return fmt.Errorf("http_connection_managers with the routes %q normalize paths or hosts in different ways; the first counts", known.name)
			}
			return nil
		}
	}
	r.known[rds.GetRouteConfigName()] = append(r.known[rds.GetRouteConfigName()], len(r.routes))
	r.routes = append(r.routes, routeRef{name: rds.GetRouteConfigName(), source: rds.GetConfigSource(), normal: normal})
	return nil
}

func normalizationOf(hcm *hcmv3.HttpConnectionManager) route.Normalization {
	n := route.Normalization{
		Path: hcm.GetNormalizePath().GetValue(), MergeSlashes: hcm.GetMergeSlashes(),
		StripPort: hcm.GetStripAnyHostPort(), StripMatchingPort: hcm.GetStripMatchingHostPort(), StripDot: hcm.GetStripTrailingHostDot(),
	}
	switch hcm.GetPathWithEscapedSlashesAction() {
	case hcmv3.HttpConnectionManager_REJECT_REQUEST:
		n.EscapedSlashes = route.RejectSlashes
	case hcmv3.HttpConnectionManager_UNESCAPE_AND_REDIRECT:
		n.EscapedSlashes = route.RedirectSlashes
	case hcmv3.HttpConnectionManager_UNESCAPE_AND_FORWARD:
		n.EscapedSlashes = route.UnescapeSlashes
	case hcmv3.HttpConnectionManager_KEEP_UNCHANGED, hcmv3.HttpConnectionManager_IMPLEMENTATION_SPECIFIC_DEFAULT: // Envoy keeps them
	}
	return n
}

func scopesOf(scoped *hcmv3.ScopedRoutes) scopesRef {
	ref := scopesRef{inline: scoped.GetScopedRouteConfigurationsList().GetScopedRouteConfigurations(), routes: scoped.GetRdsConfigSource()}
	if srds := scoped.GetScopedRds(); srds != nil {
		ref.source = srds.GetScopedRdsConfigSource()
		if ref.collection = srds.GetSrdsResourcesLocator(); ref.collection == "" {
			ref.collection = "*"
		}
	}
	return ref
}

func unmarshal(a *anypb.Any, m proto.Message) error {
	if err := a.UnmarshalTo(m); err != nil {
		return fmt.Errorf("a %s cannot be read: %w", a.MessageName(), err)
	}
	return nil
}
