package route

import (
	"cmp"
	"math/rand/v2"
	"net/http"
	"net/textproto"
	"strings"
)

// Request is what is known of a request when its route is looked for. The package keeps nothing
// of it.
type Request struct {
	// Host is the authority, with its port if the request has one.
	Host string
	// Method is the HTTP method, such as GET. gRPC's is POST.
	Method string
	// Scheme is "http" or "https".
	Scheme string
	// Path is the path as it came, escaped and without the query. gRPC's is /service/method.
	Path string
	// Query is what follows the question mark, escaped.
	Query string
	// Header has canonical names, as in http.Header, or those of gRPC's metadata if GRPC is set.
	Header map[string][]string
	// GRPC says that Header is gRPC's metadata: names are lower case, the content type is
	// application/grpc, and binary headers match nothing. Routes with query_parameters, with cluster_header, with
	// inline_cluster_specifier_plugin, with a plugin that is_optional or without a cluster specifier are left out. Conditions
	// on cookies, TLS, dynamic metadata and filter state, treat_missing_header_as_empty and vhost_header do not count
	// (gRFC A28). Pseudo-headers such as :path, and host, are matched as in Envoy, which gRPC's own clients do not do.
	GRPC bool
	// Random decides fractions and weighted clusters; nil is math/rand/v2.
	Random func() uint64
	// Runtime finds the runtime value of a key. Nil, or not ok, leaves the configured default.
	Runtime func(key string) (f Fraction, ok bool)
}

// Fraction is a share of all requests, such as 5 in 10,000.
type Fraction struct{ Numerator, Denominator uint32 }

// FromHTTP describes a request that an http.Handler was given, or that an http.RoundTripper is to
// send: as on the wire the method is GET, and the path /, if they are empty. It shares the request's header.
func FromHTTP(r *http.Request) Request {
	q := Request{
		Host: cmp.Or(r.Host, r.URL.Host), Method: cmp.Or(r.Method, http.MethodGet), Scheme: r.URL.Scheme,
		Path: r.URL.EscapedPath(), Query: r.URL.RawQuery, Header: r.Header,
	}
	if q.Path == "" && q.Method != http.MethodConnect { // which has none
		q.Path = "/"
	}
	switch {
	case q.Scheme != "":
	case r.TLS != nil:
		q.Scheme = "https"
	default:
		q.Scheme = "http"
	}
	return q
}

// random is the next random number.
func (r *Request) random() uint64 {
	if r.Random != nil {
		return r.Random()
	}
	return rand.Uint64()
}

// headerName is a header's name in the two forms in which requests have it.
type headerName struct {
	kind      headerSource
	canonical string
	lower     string
}

// headerSource is where a request has the value of a header.
type headerSource uint8

const (
	inHeader headerSource = iota
	inHost
	inMethod
	inPath
	inScheme
)

func newHeaderName(name string) headerName {
	h := headerName{canonical: textproto.CanonicalMIMEHeaderKey(name), lower: strings.ToLower(name)}
	switch h.lower {
	case ":authority", "host":
		h.kind = inHost
	case ":method":
		h.kind = inMethod
	case ":path":
		h.kind = inPath
	case ":scheme":
		h.kind = inScheme
	}
	return h
}

// value is the value of a header, and whether there is one. Several values are joined with
// commas.
func (r *Request) value(name *headerName) (value string, ok bool) {
	switch name.kind {
	case inHost:
		return r.Host, true
	case inMethod:
		return r.Method, r.Method != ""
	case inPath:
		if r.Query == "" {
			return r.Path, true
		}
		return r.Path + "?" + r.Query, true
	case inScheme:
		return r.Scheme, r.Scheme != ""
	case inHeader:
	}
	values := r.values(name)
	switch len(values) {
	case 0:
		return "", false
	case 1:
		return values[0], true
	default:
		return strings.Join(values, ","), true
	}
}

// first is the first value of a header, or "".
func (r *Request) first(name *headerName) string {
	if name.kind != inHeader {
		value, _ := r.value(name)
		return value
	}
	if values := r.values(name); len(values) > 0 {
		return values[0]
	}
	return ""
}

var grpcContentType = []string{"application/grpc"}

func (r *Request) values(name *headerName) []string {
	switch {
	case !r.GRPC:
		return r.Header[name.canonical]
	case name.lower == "content-type":
		return grpcContentType
	case strings.HasSuffix(name.lower, "-bin"):
		return nil
	default:
		return r.Header[name.lower]
	}
}
