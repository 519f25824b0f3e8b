package route

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
)

// rewrite is how a forwarded request is changed.
type rewrite struct {
	path       pathRewrite
	host       string // literal
	hostHeader headerName
	hostRegex  *substitution
	hostAuto   bool
}

// pathRewrite replaces the matched prefix, what a regular expression matches, or everything.
type pathRewrite struct {
	prefix *string
	regex  *substitution
	whole  string
}

type substitution struct {
	regex *regexp.Regexp
	with  string // in Go's form
}

func compileRewrite(a *routev3.RouteAction, f *faults) (w rewrite) {
	if a.GetPrefixRewrite() != "" {
		prefix := a.GetPrefixRewrite()
		w.path.prefix = &prefix
	}
	if a.GetRegexRewrite() != nil {
		w.path.regex = compileSubstitution(a.GetRegexRewrite(), "route.regex_rewrite", f)
	}
	if a.GetPathRewrite() != "" {
		w.path.whole = literal(a.GetPathRewrite(), "route.path_rewrite", f)
	}
	if a.GetPathRewritePolicy() != nil {
		f.add("route.path_rewrite_policy", errUnknown)
	}
	switch s := a.GetHostRewriteSpecifier().(type) {
	case *routev3.RouteAction_HostRewriteLiteral:
		w.host = s.HostRewriteLiteral
	case *routev3.RouteAction_HostRewriteHeader:
		w.hostHeader = newHeaderName(s.HostRewriteHeader)
	case *routev3.RouteAction_HostRewritePathRegex:
		w.hostRegex = compileSubstitution(s.HostRewritePathRegex, "route.host_rewrite_path_regex", f)
	case *routev3.RouteAction_AutoHostRewrite:
		w.hostAuto = s.AutoHostRewrite.GetValue()
	case *routev3.RouteAction_HostRewrite:
		w.host = literal(s.HostRewrite, "route.host_rewrite", f)
	case nil:
	default:
		f.add("route.host_rewrite_specifier", errUnknown)
	}
	return w
}

// literal is a text of a field that may have format specifiers, which are not supported.
func literal(s, field string, f *faults) string {
	if strings.Contains(s, "%") {
		f.addf(field, "format specifiers are %w", errUnknown)
	}
	return s
}

func compileSubstitution(m *matcherv3.RegexMatchAndSubstitute, field string, f *faults) *substitution {
	expr := m.GetPattern().GetRegex()
	if _, err := f.room.parse(expr); err != nil {
		f.add(field, err)
		return nil
	}
	re, err := regexp.Compile(expr)
	if err != nil {
		f.add(field, err)
		return nil
	}
	with, err := template(m.GetSubstitution(), re.NumSubexp())
	if err != nil {
		f.add(field, err)
		return nil
	}
	return &substitution{re, with}
}

// template turns RE2's form of a substitution (\1) into Go's (${1}).
func template(s string, groups int) (string, error) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '$':
			b.WriteString("$$")
		case c != '\\':
			b.WriteByte(c)
		case i+1 == len(s):
			return "", errors.New("substitution ends in a backslash")
		case s[i+1] == '\\':
			b.WriteByte('\\')
			i++
		case s[i+1] < '0' || s[i+1] > '9':
			return "", fmt.Errorf("substitution has \\%c", s[i+1])
		default:
			group := int(s[i+1] - '0')
			if group > groups {
				return "", fmt.Errorf("substitution has \\%d, and the expression has %d groups", group, groups)
			}
			b.WriteString("${" + strconv.Itoa(group) + "}")
			i++
		}
	}
	return b.String(), nil
}

func (s *substitution) apply(text string) string { return s.regex.ReplaceAllString(text, s.with) }

// apply rewrites a path, which has no query, and which the condition has matched.
func (w *pathRewrite) apply(m *pathMatch, path string) string {
	switch {
	case w.prefix != nil:
		return *w.prefix + path[len(m.matched(path)):]
	case w.regex != nil:
		return w.regex.apply(path)
	case w.whole != "":
		return w.whole
	default:
		return path
	}
}

// RewritePath is the path, escaped and without the query, with which the request is forwarded
// (prefix_rewrite, regex_rewrite, path_rewrite). A % that begins no escape once the path is rewritten
// is escaped.
func (c *Route) RewritePath(r *Request) string {
	path := c.rewrite.path.apply(&c.match.path, r.Path)
	if path == r.Path || !strings.Contains(path, "%") {
		return path
	}
	var b strings.Builder
	for i := range len(path) {
		b.WriteByte(path[i])
		if path[i] == '%' && (i+2 >= len(path) || !isHex(path[i+1]) || !isHex(path[i+2])) {
			b.WriteString("25")
		}
	}
	return b.String()
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

// RewriteHost is the host with which the request is forwarded. Hostname is the endpoint's, which
// auto_host_rewrite uses; a program that follows gRFC A81 passes it only if the server that sent
// the route has the feature trusted_xds_server (VIEW-65). Entry is that of [Choice], or nil.
func (c *Route) RewriteHost(r *Request, entry *routev3.WeightedCluster_ClusterWeight, hostname string) string {
	w := &c.rewrite
	host := entry.GetHostRewriteLiteral()
	switch {
	case host != "":
	case w.host != "":
		host = w.host
	case w.hostHeader.lower != "":
		host = r.first(&w.hostHeader)
	case w.hostRegex != nil:
		host = w.hostRegex.apply(r.Path)
	case w.hostAuto:
		host = hostname
	}
	if host == "" {
		return r.Host
	}
	return host
}
