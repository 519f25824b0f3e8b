package grpcrules

//lint:file-ignore SA1019 gRPC reads deprecated fields too

import (
	"maps"
	"math"
	"regexp/syntax"
	"slices"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/types/known/anypb"
)

// routes judges a route configuration: all its virtual hosts, also those that no channel would choose
// (gRFC A28, A41, A44).
func (j *judge) routes(path string, rc *routev3.RouteConfiguration) {
	plugins := j.plugins(path, rc)
	for i, vh := range rc.GetVirtualHosts() {
		path := at(path, "virtualHosts", i)
		for k, r := range vh.GetRoutes() {
			j.route(at(path, "routes", k), r, plugins)
		}
		j.retry(join(path, "retryPolicy"), vh.GetRetryPolicy())
		j.overrides(path, vh.GetTypedPerFilterConfig())
	}
}

// rlsPlugin is the one plugin that gRPC has, for which a program has to register a policy.
const rlsPlugin = "type.googleapis.com/grpc.lookup.v1.RouteLookupClusterSpecifier"

// plugins judges cluster specifier plugins and returns the names of those that are declared. None of
// them can be used.
func (j *judge) plugins(path string, rc *routev3.RouteConfiguration) map[string]bool {
	names := map[string]bool{}
	for i, p := range rc.GetClusterSpecifierPlugins() {
		names[p.GetExtension().GetName()] = true
		if !p.GetIsOptional() || p.GetExtension().GetTypedConfig().GetTypeUrl() == rlsPlugin {
			j.refuses(RulePlugin, at(path, "clusterSpecifierPlugins", i), "gRPC cannot use the plugin")
		}
	}
	return names
}

func (j *judge) route(path string, r *routev3.Route, plugins map[string]bool) {
	m := r.GetMatch()
	if m == nil {
		j.refuses(RuleRouteMatch, join(path, "match"), "the route has no match")
		return
	}
	if len(m.GetQueryParameters()) > 0 {
		j.ignores(RuleRouteIgnored, join(path, "match.queryParameters"), "gRPC does not match query parameters, and ignores the route")
		return
	}
	switch p := m.GetPathSpecifier().(type) {
	case *routev3.RouteMatch_Prefix, *routev3.RouteMatch_Path:
	case *routev3.RouteMatch_SafeRegex:
		j.safeRegex(join(path, "match.safeRegex.regex"), p.SafeRegex.GetRegex())
	default:
		j.refuses(RuleRouteMatch, join(path, "match"), "the path is matched neither by prefix nor by path nor by safe_regex")
	}
	for i, h := range m.GetHeaders() {
		j.header(at(path, "match.headers", i), h)
	}
	if action, ok := r.GetAction().(*routev3.Route_Route); ok && !j.action(join(path, "route"), action.Route, plugins) {
		return
	}
	j.overrides(path, r.GetTypedPerFilterConfig())
}

// action judges where a route leads, and says whether the route counts.
func (j *judge) action(path string, a *routev3.RouteAction, plugins map[string]bool) bool {
	for i, p := range a.GetHashPolicy() {
		rewrite := p.GetHeader().GetRegexRewrite()
		if rewrite == nil {
			continue
		}
		if !compiles(rewrite.GetPattern().GetRegex()) {
			j.refuses(RuleRegex, at(path, "hashPolicy", i)+".header.regexRewrite.pattern.regex", "the regular expression does not compile")
		}
	}
	switch to := a.GetClusterSpecifier().(type) {
	case *routev3.RouteAction_Cluster:
	case *routev3.RouteAction_WeightedClusters:
		j.weighted(path+".weightedClusters", to.WeightedClusters)
	case *routev3.RouteAction_ClusterSpecifierPlugin:
		if !plugins[to.ClusterSpecifierPlugin] {
			j.refuses(RulePlugin, path+".clusterSpecifierPlugin", "the plugin is not declared")
		}
		j.ignores(RuleRouteIgnored, path+".clusterSpecifierPlugin", "gRPC cannot use the plugin, and ignores the route")
		return false
	default:
		j.ignores(RuleRouteIgnored, path, "the route names no cluster that gRPC can choose, and is ignored")
		return false
	}
	j.retry(path+".retryPolicy", a.GetRetryPolicy())
	return true
}

func (j *judge) weighted(path string, w *routev3.WeightedCluster) {
	var sum uint64
	for i, c := range w.GetClusters() {
		if c.GetWeight().GetValue() == 0 {
			continue
		}
		sum += uint64(c.GetWeight().GetValue())
		j.overrides(at(path, "clusters", i), c.GetTypedPerFilterConfig())
	}
	switch {
	case sum == 0:
		j.refuses(RuleClusterWeights, path+".clusters", "no cluster has a weight")
	case sum > math.MaxUint32:
		j.refuses(RuleClusterWeights, path+".clusters", "the weights sum up to more than 4294967295")
	}
}

func (j *judge) retry(path string, p *routev3.RetryPolicy) {
	if n := p.GetNumRetries(); n != nil && n.GetValue() == 0 {
		j.refuses(RuleRetry, path+".numRetries", "the number is 0")
	}
	b := p.GetRetryBackOff()
	if b == nil {
		return
	}
	if b.GetBaseInterval().AsDuration() <= 0 {
		j.refuses(RuleRetry, path+".retryBackOff.baseInterval", "the interval is not more than 0")
	}
	if m := b.GetMaxInterval(); m != nil && m.AsDuration() <= 0 {
		j.refuses(RuleRetry, path+".retryBackOff.maxInterval", "the interval is not more than 0")
	}
}

// header judges a header matcher of a route. The old forms follow the rules of the string matcher.
func (j *judge) header(path string, h *routev3.HeaderMatcher) {
	nonEmpty := func(field, pattern string) {
		if pattern == "" {
			j.refuses(RuleStringMatcher, join(path, field), "the pattern is empty")
		}
	}
	switch m := h.GetHeaderMatchSpecifier().(type) {
	case *routev3.HeaderMatcher_ExactMatch, *routev3.HeaderMatcher_RangeMatch, *routev3.HeaderMatcher_PresentMatch:
	case *routev3.HeaderMatcher_SafeRegexMatch:
		j.safeRegex(join(path, "safeRegexMatch.regex"), m.SafeRegexMatch.GetRegex())
	case *routev3.HeaderMatcher_PrefixMatch:
		nonEmpty("prefixMatch", m.PrefixMatch)
	case *routev3.HeaderMatcher_SuffixMatch:
		nonEmpty("suffixMatch", m.SuffixMatch)
	case *routev3.HeaderMatcher_ContainsMatch:
		nonEmpty("containsMatch", m.ContainsMatch)
	case *routev3.HeaderMatcher_StringMatch:
		j.stringMatcher(join(path, "stringMatch"), m.StringMatch)
	default:
		j.refuses(RuleHeaderMatcher, path, "it does not say what it matches, or gRPC does not know that")
	}
}

func (j *judge) stringMatcher(path string, m *matcherv3.StringMatcher) {
	empty := false
	switch p := m.GetMatchPattern().(type) {
	case *matcherv3.StringMatcher_Exact:
	case *matcherv3.StringMatcher_Prefix:
		empty = p.Prefix == ""
	case *matcherv3.StringMatcher_Suffix:
		empty = p.Suffix == ""
	case *matcherv3.StringMatcher_Contains:
		empty = p.Contains == ""
	case *matcherv3.StringMatcher_SafeRegex:
		j.safeRegex(join(path, "safeRegex.regex"), p.SafeRegex.GetRegex())
	default:
		j.refuses(RuleStringMatcher, path, "there is no pattern that gRPC knows")
	}
	if empty {
		j.refuses(RuleStringMatcher, path, "the pattern is empty")
	}
}

// H-5: compiles is whether a regular expression would compile, which its parser decides: compiled, a few bytes
// may take megabytes.
func compiles(expr string) bool {
	_, err := syntax.Parse(expr, syntax.Perl)
	return err == nil
}

// safeRegex judges a regular expression that has to match the whole.
func (j *judge) safeRegex(path, text string) {
	if !compiles(text) || !compiles("^(?:"+text+")$") {
		j.refuses(RuleRegex, path, "the regular expression does not compile")
	}
}

// overrides judges configurations of HTTP filters for a virtual host, a route or a cluster.
func (j *judge) overrides(path string, configs map[string]*anypb.Any) {
	for _, name := range slices.Sorted(maps.Keys(configs)) {
		path, a, optional := atKey(path, "typedPerFilterConfig", name), configs[name], false
		if wrapper := (&routev3.FilterConfig{}); a.MessageIs(wrapper) {
			if !j.read(path, a, wrapper) {
				continue
			}
			path, a, optional = path+".config", wrapper.GetConfig(), wrapper.GetIsOptional()
		}
		j.override(path, a, optional)
	}
}
