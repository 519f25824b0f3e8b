package validation

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/types/known/anypb"
)

// Filters of Envoy by kind: those that pass on, and those that end a chain of network filters. Their factories
// in Envoy's source say so, in isTerminalFilterByProto or to FactoryBase. What is not here may pass on or not.
var (
	passing = strings.Fields(`http.buffer http.compressor http.cors http.csrf http.decompressor http.ext_authz http.fault
		http.grpc_stats http.grpc_web http.header_mutation http.header_to_metadata http.ip_tagging http.jwt_authn http.local_ratelimit
		http.lua http.oauth2 http.ratelimit http.rbac http.set_metadata http.stateful_session http.wasm
		network.connection_limit network.ext_authz network.local_ratelimit network.ratelimit network.rbac network.set_filter_state
		network.sni_cluster`)
	ending = strings.Fields(`network.direct_response network.dubbo_proxy network.echo network.generic_proxy
		network.http_connection_manager network.redis_proxy network.tcp_proxy network.thrift_proxy`)
)

// kindOf is the kind of a filter with a configuration, as in "http.cors".
func kindOf(config *anypb.Any) string {
	kind, _ := strings.CutPrefix(string(config.MessageName()), "envoy.extensions.filters.")
	kind, _, _ = strings.Cut(kind, ".v3.")
	return kind
}

func envoyHTTPFilters(filters []*hcmv3.HttpFilter, refuses refusal) {
	for i, f := range filters {
		switch last := i == len(filters)-1; {
		case !last && f.GetTypedConfig().MessageIs(&routerv3.Router{}):
			refuses(RuleEnvoyRouter, fmt.Sprintf("httpFilters[%d]", i), "the router is not the last filter")
		case last && slices.Contains(passing, kindOf(f.GetTypedConfig())):
			refuses(RuleEnvoyLast, fmt.Sprintf("httpFilters[%d]", i), "the filter passes on, and is the last one")
		case last && f.GetDisabled():
			refuses(RuleEnvoyLast, fmt.Sprintf("httpFilters[%d].disabled", i), "the filter is disabled, and is the last one")
		}
	}
}

func envoyNetworkFilters(filters []*listenerv3.Filter, refuses refusal) {
	for i, f := range filters {
		switch kind, last := kindOf(f.GetTypedConfig()), i == len(filters)-1; {
		case !last && slices.Contains(ending, kind):
			refuses(RuleEnvoyLast, fmt.Sprintf("filters[%d]", i), "the filter ends the chain, and is not the last one")
		case last && slices.Contains(passing, kind):
			refuses(RuleEnvoyLast, fmt.Sprintf("filters[%d]", i), "the filter passes on, and is the last one")
		}
	}
}

// envoyListener judges what a listener cannot be without. Envoy ignores an API listener that a server sends.
func envoyListener(l *listenerv3.Listener, refuses refusal) {
	switch internal := l.GetInternalListener() != nil; {
	case l.GetApiListener() != nil && internal:
		refuses(RuleEnvoyListener, "internalListener", "the listener is an API listener too")
	case l.GetApiListener() != nil:
	case l.GetAddress() == nil && !internal:
		refuses(RuleEnvoyListener, "address", "the listener has no address")
	case l.GetAddress().GetSocketAddress().GetProtocol() == corev3.SocketAddress_UDP:
	case len(l.GetFilterChains()) == 0 && l.GetDefaultFilterChain() == nil && l.GetFcdsConfig() == nil:
		refuses(RuleEnvoyListener, "filterChains", "the listener has no filter chain")
	}
}

// envoyChains compares chains as Envoy does, which puts each combination of what their matches list into one table.
func envoyChains(l *listenerv3.Listener, refuses refusal) {
	chains := l.GetFilterChains()
	if l.GetFilterChainMatcher() != nil { // which chooses by name
		return
	}
	for i, c := range chains {
		alike := func(before *listenerv3.FilterChain) bool {
			return overlap(c.GetFilterChainMatch(), before.GetFilterChainMatch())
		}
		if slices.ContainsFunc(chains[:i], alike) {
			refuses(RuleEnvoyChains, fmt.Sprintf("filterChains[%d].filterChainMatch", i), "a chain before it matches the same")
		}
	}
}

func overlap(a, b *listenerv3.FilterChainMatch) bool {
	return a.GetDestinationPort().GetValue() == b.GetDestinationPort().GetValue() &&
		a.GetTransportProtocol() == b.GetTransportProtocol() && a.GetSourceType() == b.GetSourceType() &&
		share(a.GetPrefixRanges(), b.GetPrefixRanges(), prefixOf) && share(a.GetServerNames(), b.GetServerNames(), strings.ToLower) &&
		share(a.GetApplicationProtocols(), b.GetApplicationProtocols(), strings.Clone) &&
		share(a.GetDirectSourcePrefixRanges(), b.GetDirectSourcePrefixRanges(), prefixOf) &&
		share(a.GetSourcePrefixRanges(), b.GetSourcePrefixRanges(), prefixOf) &&
		share(a.GetSourcePorts(), b.GetSourcePorts(), func(port uint32) uint32 { return port })
}

// share says whether two lists have an element in common, or nothing.
func share[E any, K comparable](a, b []E, key func(E) K) bool {
	if len(a) == 0 || len(b) == 0 {
		return len(a) == len(b)
	}
	return slices.ContainsFunc(a, func(x E) bool {
		return slices.ContainsFunc(b, func(y E) bool { return key(x) == key(y) })
	})
}

// prefixOf is a range without what lies outside its mask.
func prefixOf(r *corev3.CidrRange) string {
	if address, err := netip.ParseAddr(r.GetAddressPrefix()); err == nil {
		if prefix, err := address.Prefix(int(r.GetPrefixLen().GetValue())); err == nil {
			return prefix.String()
		}
	}
	return fmt.Sprintf("%s/%d", r.GetAddressPrefix(), r.GetPrefixLen().GetValue())
}

// addresses finds the addresses of a listener that another one has. An API listener binds to none.
func (j *judge) addresses(l *listenerv3.Listener, refuses refusal) {
	if l.GetApiListener() != nil {
		return
	}
	judge := func(field string, a *corev3.SocketAddress) {
		if a.GetPortValue() == 0 {
			return
		}
		id := fmt.Sprint(a.GetProtocol(), a.GetNetworkNamespaceFilepath(), "@", strings.ToLower(a.GetAddress()), ":", a.GetPortValue())
		if other, bound := j.bound[id]; bound && other != l.GetName() {
			refuses(RuleEnvoyAddress, field, fmt.Sprintf("listener %q has the address too", other))
			return
		}
		j.bound[id] = l.GetName()
	}
	judge("address", l.GetAddress().GetSocketAddress())
	for i, more := range l.GetAdditionalAddresses() {
		judge(fmt.Sprintf("additionalAddresses[%d].address", i), more.GetAddress().GetSocketAddress())
	}
}
