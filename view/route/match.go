package route

import (
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
)

// match is the conditions of a route. All of them have to hold.
type match struct {
	path     pathMatch
	headers  []header
	queries  []param
	cookies  []param
	grpc     bool
	fraction *fraction
}

// fraction is the share of requests that a route is for.
type fraction struct {
	key string // of the runtime
	Fraction
}

var (
	contentType = newHeaderName("content-type")
	cookie      = newHeaderName("cookie")
)

func compileMatch(m *routev3.RouteMatch, f *faults) match {
	c := match{path: compilePath(m, f), grpc: m.GetGrpc() != nil}
	for _, hm := range m.GetHeaders() {
		h, err := compileHeader(hm, f)
		if err != nil {
			f.addf("match.headers", "%q: %w", hm.GetName(), err)
		}
		c.headers = append(c.headers, h)
	}
	for _, qm := range m.GetQueryParameters() {
		p, err := compileQuery(qm, f)
		if err != nil {
			f.addf("match.query_parameters", "%q: %w", qm.GetName(), err)
		}
		c.queries = append(c.queries, p)
	}
	for _, cm := range m.GetCookies() {
		p, err := compileCookie(cm, f)
		if err != nil {
			f.addf("match.cookies", "%q: %w", cm.GetName(), err)
		}
		c.cookies = append(c.cookies, p)
	}
	if rf := m.GetRuntimeFraction(); rf != nil {
		c.fraction = compileFraction(rf.GetRuntimeKey(), rf.GetDefaultValue(), f)
	}
	if m.GetTlsContext() != nil {
		f.add("match.tls_context", errUnknown)
	}
	if len(m.GetDynamicMetadata()) > 0 {
		f.add("match.dynamic_metadata", errUnknown)
	}
	if len(m.GetFilterState()) > 0 {
		f.add("match.filter_state", errUnknown)
	}
	return c
}

func compileFraction(key string, p *typev3.FractionalPercent, f *faults) *fraction {
	c := &fraction{key, Fraction{Numerator: p.GetNumerator()}}
	switch p.GetDenominator() {
	case typev3.FractionalPercent_HUNDRED:
		c.Denominator = 100
	case typev3.FractionalPercent_TEN_THOUSAND:
		c.Denominator = 10_000
	case typev3.FractionalPercent_MILLION:
		c.Denominator = 1_000_000
	default:
		f.addf("match.runtime_fraction", "unknown denominator %v", p.GetDenominator())
		c.Fraction = Fraction{1, 1}
	}
	return c
}

// holds looks at the path first, since it decides most often and costs least.
func (m *match) holds(r *Request, path string) bool {
	if !m.path.holds(r, path) {
		return false
	}
	if m.fraction != nil && !m.fraction.holds(r) {
		return false
	}
	if m.grpc && !isGRPC(r) {
		return false
	}
	for i := range m.headers {
		if !m.headers[i].holds(r) {
			return false
		}
	}
	for i := range m.queries {
		p := &m.queries[i]
		if !p.holds(parameterOf(r.Query, p.name)) {
			return false
		}
	}
	for i := range m.cookies {
		if r.GRPC {
			break // it ignores them
		}
		p := &m.cookies[i]
		if !p.holds(cookieOf(r, p.name)) {
			return false
		}
	}
	return true
}

func (f *fraction) holds(r *Request) bool {
	use := f.Fraction
	if f.key != "" && r.Runtime != nil {
		if now, ok := r.Runtime(f.key); ok && now.Denominator > 0 {
			use = now
		}
	}
	return r.random()%uint64(use.Denominator) < uint64(use.Numerator)
}

func isGRPC(r *Request) bool {
	value, _ := r.value(&contentType)
	rest, ok := strings.CutPrefix(value, "application/grpc")
	return ok && (rest == "" || rest[0] == '+')
}

// parameterOf finds the first value of a parameter of a query. Nothing is unescaped.
func parameterOf(query, name string) (string, bool) {
	for query != "" {
		var item string
		item, query, _ = strings.Cut(query, "&")
		key, value, _ := strings.Cut(item, "=")
		if key == name && item != "" {
			return value, true
		}
	}
	return "", false
}

// cookieOf finds the first cookie of a name. A pair of quotes around its value is no part of it.
func cookieOf(r *Request, name string) (string, bool) {
	for _, line := range r.values(&cookie) {
		for line != "" {
			var item string
			item, line, _ = strings.Cut(line, ";")
			key, value, ok := strings.Cut(strings.TrimLeft(item, " "), "=")
			if !ok || key != name {
				continue
			}
			if n := len(value); n > 1 && value[0] == '"' && value[n-1] == '"' {
				return value[1 : n-1], true
			}
			return value, true
		}
	}
	return "", false
}

// pathMatch is the condition on the path.
type pathMatch struct {
	kind pathKind
	want string
	fold bool
	text text // of pathRegex
}

type pathKind uint8

const (
	pathAlways pathKind = iota // in fault: see the package's comment
	pathPrefix
	pathSeparated // a prefix that ends where a segment ends
	pathExact
	pathRegex
	pathConnect
)

func compilePath(m *routev3.RouteMatch, f *faults) pathMatch {
	c := pathMatch{fold: m.GetCaseSensitive() != nil && !m.GetCaseSensitive().GetValue()}
	switch p := m.GetPathSpecifier().(type) {
	case *routev3.RouteMatch_Prefix:
		c.kind, c.want = pathPrefix, p.Prefix
	case *routev3.RouteMatch_PathSeparatedPrefix:
		c.kind, c.want = pathSeparated, p.PathSeparatedPrefix
	case *routev3.RouteMatch_Path:
		c.kind, c.want = pathExact, p.Path
	case *routev3.RouteMatch_SafeRegex:
		t, err := compileRegex(p.SafeRegex, f)
		if err != nil {
			f.add("match.safe_regex", err)
			return c
		}
		c.kind, c.text = pathRegex, t
	case *routev3.RouteMatch_ConnectMatcher_:
		c.kind = pathConnect
	case nil:
		f.addf("match", "no path specifier")
	default:
		f.add("match.path_match_policy", errUnknown)
	}
	return c
}

func (p *pathMatch) holds(r *Request, path string) bool {
	if path == "" && r.Method == "CONNECT" { // of HTTP/1.1, which has no path
		return p.kind == pathConnect || p.kind == pathAlways
	}
	switch p.kind {
	case pathPrefix:
		return hasPrefix(path, p.want, p.fold)
	case pathSeparated:
		return hasPrefix(path, p.want, p.fold) && (len(path) == len(p.want) || path[len(p.want)] == '/')
	case pathExact:
		return equal(path, p.want, p.fold)
	case pathRegex:
		return p.text.matches(path)
	case pathConnect:
		return r.Method == "CONNECT"
	case pathAlways:
		return true
	}
	return true
}

// matched is the part of a path that a rewrite of the prefix replaces.
func (p *pathMatch) matched(path string) string {
	switch p.kind {
	case pathPrefix, pathSeparated:
		return path[:min(len(p.want), len(path))]
	default:
		return path
	}
}
