package route

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/xdswatch/xdswatch/internal/domains"
)

// Normalization is what an HttpConnectionManager does to the path and the host of a request before it is
// routed. Routes that keep requests away from something rely on it. The zero value changes nothing, as Envoy's
// defaults do.
type Normalization struct {
	// Path makes paths canonical (normalize_path; RFC 3986, section 6): letters, digits, and "-._~" are
	// unescaped, "." and ".." resolved, backslashes made slashes; characters that a path must not have, and a %
	// that begins no escape, are escaped. A path with a NUL, or that is no UTF-8, is refused.
	Path bool
	// MergeSlashes makes adjacent slashes one (merge_slashes).
	MergeSlashes bool
	// EscapedSlashes is what becomes of %2F and %5C (path_with_escaped_slashes_action).
	EscapedSlashes EscapedSlashes
	// StripPort removes any port from the host (strip_any_host_port), StripMatchingPort that at which
	// the request came in (strip_matching_host_port), and StripDot the dot after the host's name
	// (strip_trailing_host_dot).
	StripPort, StripMatchingPort, StripDot bool
}

// EscapedSlashes is an action.
type EscapedSlashes uint8

// The actions.
const (
	KeepSlashes     EscapedSlashes = iota
	RejectSlashes                  // the request is refused
	RedirectSlashes                // they are unescaped, and the client is sent there
	UnescapeSlashes
)

// ErrPath is a path that is refused. Envoy answers with the status 400, and gRPC requests with INTERNAL.
var ErrPath = errors.New("the request's path is refused")

// Apply changes the path and the host of a request, which is to be routed and forwarded with them. Port is that at
// which the request came in; 0 if it is not known. With a redirect, whose status is 307, the request goes
// no further: redirect is its location, an absolute URL. The error is [ErrPath], or nil.
func (n *Normalization) Apply(r *Request, port uint16) (redirect string, err error) {
	sentTo := r.Host
	n.host(r, port)
	if r.Path == "" && r.Method == "CONNECT" {
		return "", nil
	}
	// The order is Envoy's: what is unescaped is resolved, and what is resolved is merged.
	path, found := r.Path, false
	if n.EscapedSlashes != KeepSlashes {
		path, found = unescapeSlashes(path)
	}
	if found && (n.EscapedSlashes == RejectSlashes || n.EscapedSlashes == RedirectSlashes && isGRPC(r)) {
		return "", ErrPath
	}
	if n.Path {
		if path, err = canonicalPath(path); err != nil {
			return "", err
		}
	}
	if n.MergeSlashes {
		path = mergeSlashes(path)
	}
	r.Path = path
	if !found || n.EscapedSlashes != RedirectSlashes {
		return "", nil
	}
	// Alone, a path that begins with // would be another host.
	if redirect = r.Scheme + "://" + sentTo + "/" + strings.TrimPrefix(path, "/"); r.Query != "" {
		redirect += "?" + r.Query
	}
	return redirect, nil
}

func (n *Normalization) host(r *Request, port uint16) {
	name := domains.WithoutPort(r.Host)
	suffix := r.Host[len(name):]
	if n.StripDot {
		name = strings.TrimSuffix(name, ".")
	}
	if number, err := strconv.ParseUint(strings.TrimPrefix(suffix, ":"), 10, 32); err == nil &&
		(n.StripPort || n.StripMatchingPort && port != 0 && number == uint64(port)) {
		suffix = ""
	}
	r.Host = name + suffix
}

func unescapeSlashes(path string) (unescaped string, found bool) {
	if !strings.Contains(path, "%") {
		return path, false
	}
	unescaped = escapedSlashes.Replace(path)
	return unescaped, unescaped != path
}

var escapedSlashes = strings.NewReplacer("%2F", "/", "%2f", "/", "%5C", `\`, "%5c", `\`)

// mergeSlashes keeps one of adjacent slashes.
func mergeSlashes(path string) string {
	for strings.Contains(path, "//") {
		path = strings.ReplaceAll(path, "//", "/")
	}
	return path
}

// canonicalPath unescapes once: what comes of that begins no escape.
func canonicalPath(path string) (string, error) {
	if !utf8.ValidString(path) {
		return "", ErrPath
	}
	var b strings.Builder
	for i := 0; i < len(path); i++ {
		c := path[i]
		switch {
		case c == '%' && i+2 < len(path) && isHex(path[i+1]) && isHex(path[i+2]):
			v, _ := strconv.ParseUint(path[i+1:i+3], 16, 8)
			switch {
			case v == 0:
				return "", ErrPath
			case isUnreserved(byte(v)):
				b.WriteByte(byte(v))
			default:
				b.WriteString(path[i : i+3])
			}
			i += 2
		case c == '%': // %%32e must not become %2e
			b.WriteString("%25")
		case c == 0:
			return "", ErrPath
		case c == '\\':
			b.WriteByte('/')
		case c <= ' ' || c >= 0x7f || strings.IndexByte("\"#<>`{}", c) >= 0:
			fmt.Fprintf(&b, "%%%02X", c)
		default:
			b.WriteByte(c)
		}
	}
	return withoutDots(b.String()), nil
}

func isUnreserved(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("-._~", c) >= 0
}

// withoutDots resolves the segments . and .. of a path. One at its end leaves a slash there.
func withoutDots(path string) string {
	var kept []string
	segments := strings.Split(strings.TrimPrefix(path, "/"), "/")
	for i, s := range segments {
		switch s {
		case ".":
		case "..":
			kept = kept[:max(len(kept)-1, 0)]
		default:
			kept = append(kept, s)
			continue
		}
		if i == len(segments)-1 {
			kept = append(kept, "")
		}
	}
	return "/" + strings.Join(kept, "/")
}
