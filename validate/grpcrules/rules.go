package grpcrules

import "slices"

// Rule is the ID of a rule. IDs are stable.
type Rule string

// Rules of all resources.
const (
	RuleName  Rule = "grpc-name"
	RuleType  Rule = "grpc-type"
	RuleParse Rule = "grpc-parse"
)

// Rules of listeners.
const (
	RuleAPIListener     Rule = "grpc-api-listener"
	RuleXFF             Rule = "grpc-xff"
	RuleRouteSpecifier  Rule = "grpc-route-specifier"
	RuleHTTPFilters     Rule = "grpc-http-filters"
	RuleHTTPFilterName  Rule = "grpc-http-filter-name"
	RuleHTTPFilterType  Rule = "grpc-http-filter-type"
	RuleTerminalFilter  Rule = "grpc-terminal-filter"
	RuleFilterOverride  Rule = "grpc-filter-override"
	RuleRBAC            Rule = "grpc-rbac"
	RuleListenerFields  Rule = "grpc-listener-fields"
	RuleListenerAddress Rule = "grpc-listener-address"
	RuleChainMatch      Rule = "grpc-chain-match"
	RuleChainOverlap    Rule = "grpc-chain-overlap"
	RuleChainNone       Rule = "grpc-chain-none"
	RuleChainFilters    Rule = "grpc-chain-filters"
	RuleChainDropped    Rule = "grpc-chain-dropped"
)

// Rules of TLS, of listeners and clusters.
const (
	RuleTLSSocket     Rule = "grpc-tls-socket"
	RuleTLSDownstream Rule = "grpc-tls-downstream"
	RuleTLSFields     Rule = "grpc-tls-fields"
	RuleTLSProvider   Rule = "grpc-tls-provider"
	RuleTLSBootstrap  Rule = "grpc-tls-bootstrap"
	RuleTLSSNI        Rule = "grpc-tls-sni"
)

// Rules of routes.
const (
	RuleRouteMatch     Rule = "grpc-route-match"
	RuleRegex          Rule = "grpc-regex"
	RuleHeaderMatcher  Rule = "grpc-header-matcher"
	RuleStringMatcher  Rule = "grpc-string-matcher"
	RuleClusterWeights Rule = "grpc-cluster-weights"
	RulePlugin         Rule = "grpc-plugin"
	RuleRetry          Rule = "grpc-retry"
	RuleRouteIgnored   Rule = "grpc-route-ignored"
)

// Rules of clusters.
const (
	RuleLBPolicy       Rule = "grpc-lb-policy"
	RuleRingHash       Rule = "grpc-ring-hash"
	RuleLeastRequest   Rule = "grpc-least-request"
	RuleLBList         Rule = "grpc-lb-list"
	RuleLBConfig       Rule = "grpc-lb-config"
	RuleSocketMatches  Rule = "grpc-socket-matches"
	RuleOutlier        Rule = "grpc-outlier-detection"
	RuleLRSServer      Rule = "grpc-lrs-server"
	RuleClusterType    Rule = "grpc-cluster-type"
	RuleEDSSource      Rule = "grpc-eds-source"
	RuleEDSServiceName Rule = "grpc-eds-service-name"
	RuleLogicalDNS     Rule = "grpc-logical-dns"
	RuleAggregate      Rule = "grpc-aggregate"
)

// Rules of assignments.
const (
	RuleDropDenominator   Rule = "grpc-drop-denominator"
	RuleLocalityID        Rule = "grpc-locality-id"
	RuleLocalityWeights   Rule = "grpc-locality-weights"
	RuleLocalityDuplicate Rule = "grpc-locality-duplicate"
	RulePriorityGap       Rule = "grpc-priority-gap"
	RuleEndpointWeight    Rule = "grpc-endpoint-weight"
	RuleEndpointWeights   Rule = "grpc-endpoint-weights"
	RuleEndpointDuplicate Rule = "grpc-endpoint-duplicate"
	RuleMetadata          Rule = "grpc-metadata"
	RuleLocalityIgnored   Rule = "grpc-locality-ignored"
)

// About is what a rule wants.
type About struct {
	Rule Rule
	Text string
	// Ignored says that gRPC ignores what breaks the rule, and accepts the resource.
	Ignored bool
}

var rules = []About{
	{Rule: RuleName, Text: "the resource has a name; of an assignment that is cluster_name"},
	{Rule: RuleType, Text: "gRPC asks for Listeners, RouteConfigurations, Clusters and ClusterLoadAssignments only", Ignored: true},
	{Rule: RuleParse, Text: "what an Any contains is a message of its type, where gRPC reads it"},

	{Rule: RuleAPIListener, Text: "the API listener is an HttpConnectionManager"},
	{Rule: RuleXFF, Text: "xff_num_trusted_hops is 0, and original_ip_detection_extensions is empty (gRFC A41)"},
	{Rule: RuleRouteSpecifier, Text: "routes are inline, or come by RDS, with a name, from ADS or self; of a server from ADS"},
	{Rule: RuleHTTPFilters, Text: "there is an HTTP filter, beside optional ones that gRPC does not know"},
	{Rule: RuleHTTPFilterName, Text: "HTTP filters have names, each once"},
	{Rule: RuleHTTPFilterType, Text: "an HTTP filter is known and of this side (clients: fault and router; servers: RBAC and router), or optional (gRFC A39); its configuration is no TypedStruct"},
	{Rule: RuleTerminalFilter, Text: "the last HTTP filter is the router, and no other is (gRFC A39)"},
	{Rule: RuleFilterOverride, Text: "what overrides an HTTP filter is a FilterConfig, HTTPFault or RBACPerRoute, or optional; there is none for the router"},
	{Rule: RuleRBAC, Text: "an RBAC filter has no conditions, no matcher of :scheme and of headers that begin with grpc-, and only actions, permissions, principals and audit loggers that gRPC knows (gRFC A41, A59)"},
	{Rule: RuleListenerFields, Text: "a server's listener has no listener_filters and not use_original_dst (gRFC A36)"},
	{Rule: RuleListenerAddress, Text: "a server's listener has a socket address"},
	{Rule: RuleChainMatch, Text: "prefixes and source types of a filter chain's match can be understood"},
	{Rule: RuleChainOverlap, Text: "no two filter chains match the same"},
	{Rule: RuleChainNone, Text: "there is a filter chain that gRPC does not drop, or a default one"},
	{Rule: RuleChainFilters, Text: "network filters have names, each once; all are HttpConnectionManagers, and there is one"},
	{Rule: RuleChainDropped, Text: "a filter chain with destination_port, server_names, application_protocols, or transport_protocol but raw_buffer is dropped", Ignored: true},

	{Rule: RuleTLSSocket, Text: "a transport socket is envoy.transport_sockets.tls, with an UpstreamTlsContext (a chain's: DownstreamTlsContext) that has a CommonTlsContext (gRFC A29)"},
	{Rule: RuleTLSDownstream, Text: "a DownstreamTlsContext has neither require_sni nor an OCSP policy but LENIENT_STAPLING; with require_client_certificate it has a CA provider"},
	{Rule: RuleTLSFields, Text: "tls_params, custom_handshaker and certificate checks that gRPC does not make are absent; a server has no match_subject_alt_names (gRFC A29)"},
	{Rule: RuleTLSProvider, Text: "certificates come from providers: a client has one of the CA (or system_root_certs, where that is on: gRFC A82), a server one of its identity"},
	{Rule: RuleTLSBootstrap, Text: "certificate providers are in the bootstrap; judged only where the bootstrap is known"},
	{Rule: RuleTLSSNI, Text: "an SNI has at most 255 bytes, where gRPC uses it (gRFC A101)"},

	{Rule: RuleRouteMatch, Text: "a route has a match, with a prefix, path or safe_regex"},
	{Rule: RuleRegex, Text: "a regular expression compiles"},
	{Rule: RuleHeaderMatcher, Text: "a header matcher says what it matches, in a way that gRPC knows"},
	{Rule: RuleStringMatcher, Text: "a string matcher has a pattern; prefix, suffix and contains are not empty"},
	{Rule: RuleClusterWeights, Text: "weights of weighted clusters sum up to 1 at least and 4294967295 at most"},
	{Rule: RulePlugin, Text: "a cluster specifier plugin is optional, since gRPC knows none without its RLS policy; one that a route names is declared"},
	{Rule: RuleRetry, Text: "a retry policy has num_retries of 1 at least; base_interval and max_interval are more than 0 (gRFC A44)"},
	{Rule: RuleRouteIgnored, Text: "a route with query parameters, with an optional plugin, or without a cluster that gRPC can choose is ignored", Ignored: true},

	{Rule: RuleLBPolicy, Text: "lb_policy is ROUND_ROBIN, RING_HASH or LEAST_REQUEST, also where load_balancing_policy counts"},
	{Rule: RuleRingHash, Text: "a ring hash uses XX_HASH (gRFC A42)"},
	{Rule: RuleLeastRequest, Text: "choice_count is 2 at least (gRFC A48)"},
	{Rule: RuleLBList, Text: "load_balancing_policy has a policy that gRPC knows, no more than 16 levels deep (gRFC A52)"},
	{Rule: RuleLBConfig, Text: "the first policy that gRPC knows accepts its configuration: ring sizes of 8388608 at most and in order, no negative penalty"},
	{Rule: RuleSocketMatches, Text: "transport_socket_matches is empty"},
	{Rule: RuleOutlier, Text: "outlier detection has valid durations that are not negative, and percentages of 100 at most (gRFC A50)"},
	{Rule: RuleLRSServer, Text: "lrs_server is self"},
	{Rule: RuleClusterType, Text: "a cluster is EDS, LOGICAL_DNS or envoy.clusters.aggregate (gRFC A37)"},
	{Rule: RuleEDSSource, Text: "endpoints come from ADS or self"},
	{Rule: RuleEDSServiceName, Text: "a cluster whose name begins with xdstp: has a service_name (gRFC A47)"},
	{Rule: RuleLogicalDNS, Text: "a LOGICAL_DNS cluster has one locality with one endpoint: a socket address with host and port, without resolver_name"},
	{Rule: RuleAggregate, Text: "an aggregate cluster names a cluster"},

	{Rule: RuleDropDenominator, Text: "a drop has a denominator that is known"},
	{Rule: RuleLocalityID, Text: "a locality has a locality"},
	{Rule: RuleLocalityWeights, Text: "weights of localities of one priority sum up to 4294967295 at most"},
	{Rule: RuleLocalityDuplicate, Text: "a locality is in a priority once"},
	{Rule: RulePriorityGap, Text: "priorities begin at 0 and have no gap; localities of weight 0 do not count"},
	{Rule: RuleEndpointWeight, Text: "the weight of an endpoint is not 0"},
	{Rule: RuleEndpointWeights, Text: "weights of the endpoints of a locality sum up to 4294967295 at most"},
	{Rule: RuleEndpointDuplicate, Text: "an address is in an assignment once; what is no socket address counts as \":0\""},
	{Rule: RuleMetadata, Text: "a proxy's address in metadata is an IP address with a port, and an audience has a URL, where gRPC uses them (gRFC A83, A86)"},
	{Rule: RuleLocalityIgnored, Text: "a locality of weight 0 is ignored, with its endpoints", Ignored: true},
}

// Rules lists the rules, those of one kind of resource together. The caller may change the slice.
func Rules() []About { return slices.Clone(rules) }
