package route

import (
	"net"
	"strconv"
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"github.com/xdswatch/xdswatch/internal/domains"
)

// redirect is a compiled redirect.
type redirect struct {
	scheme string
	host   string
	port   uint32
	whole  string // path_redirect
	path   pathRewrite
	code   int
	strip  bool
}

var redirectCodes = map[routev3.RedirectAction_RedirectResponseCode]int{
	routev3.RedirectAction_MOVED_PERMANENTLY:  301,
	routev3.RedirectAction_FOUND:              302,
	routev3.RedirectAction_SEE_OTHER:          303,
	routev3.RedirectAction_TEMPORARY_REDIRECT: 307,
	routev3.RedirectAction_PERMANENT_REDIRECT: 308,
}

func compileRedirect(a *routev3.RedirectAction, f *faults) *redirect {
	d := &redirect{
		scheme: a.GetSchemeRedirect(), host: a.GetHostRedirect(), port: a.GetPortRedirect(),
		code: redirectCodes[a.GetResponseCode()], strip: a.GetStripQuery(),
	}
	if a.GetHttpsRedirect() {
		d.scheme = "https"
	}
	if d.code == 0 {
		f.addf("redirect.response_code", "unknown code %d", a.GetResponseCode())
	}
	switch p := a.GetPathRewriteSpecifier().(type) {
	case *routev3.RedirectAction_PathRedirect:
		d.whole = p.PathRedirect
	case *routev3.RedirectAction_PrefixRewrite:
		d.path.prefix = &p.PrefixRewrite
	case *routev3.RedirectAction_RegexRewrite:
		d.path.regex = compileSubstitution(p.RegexRewrite, "redirect.regex_rewrite", f)
	case *routev3.RedirectAction_PathRewrite:
		d.path.whole = literal(p.PathRewrite, "redirect.path_rewrite", f)
	case nil:
	default:
		f.add("redirect.path_rewrite_specifier", errUnknown)
	}
	return d
}

// Redirect is where a request is sent instead, and the response's status. The location is empty
// if the route is no redirect.
func (c *Route) Redirect(r *Request) (location string, status int) {
	d := c.redirect
	if d == nil {
		return "", 0
	}
	scheme := r.Scheme
	if d.scheme != "" {
		scheme = d.scheme
	}
	return scheme + "://" + d.authority(r) + d.target(r, &c.match.path), d.code
}

func (d *redirect) authority(r *Request) string {
	host := r.Host
	switch {
	case d.host != "":
		host = d.host
	case d.port != 0:
		host = domains.WithoutPort(host)
	case d.scheme != "" && d.scheme != r.Scheme && (r.Scheme == "http" && strings.HasSuffix(host, ":80") || r.Scheme == "https" && strings.HasSuffix(host, ":443")):
		// The port was the default of the old scheme, and would be wrong with the new one.
		host = domains.WithoutPort(host)
	}
	if d.port != 0 {
		return net.JoinHostPort(strings.Trim(host, "[]"), strconv.Itoa(int(d.port)))
	}
	return host
}

// target is the new path with the query. A query in path_redirect takes the place of the
// request's.
func (d *redirect) target(r *Request, m *pathMatch) string {
	path := d.whole
	if path == "" {
		path = d.path.apply(m, r.Path)
	}
	if d.strip || r.Query == "" || d.whole != "" && strings.Contains(path, "?") {
		return path
	}
	return path + "?" + r.Query
}

// Response is a response that the configuration has ready.
type Response struct {
	Status int
	Body   []byte // must not be changed
}

func compileResponse(a *routev3.DirectResponseAction, f *faults) *Response {
	r := &Response{Status: int(a.GetStatus())}
	if r.Status < 200 || r.Status > 599 {
		f.addf("direct_response.status", "%d is not between 200 and 599", r.Status)
	}
	body := a.GetBody()
	switch {
	case body.GetFilename() != "" || body.GetEnvironmentVariable() != "":
		f.addf("direct_response.body", "files and environment variables are %w", errUnknown)
	case body.GetInlineString() != "":
		r.Body = []byte(body.GetInlineString())
	default:
		r.Body = body.GetInlineBytes()
	}
	if a.GetBodyFormat() != nil {
		f.add("direct_response.body_format", errUnknown)
	}
	return r
}

// Response is the response that the route gives itself (direct_response), or nil.
func (c *Route) Response() *Response { return c.response }
