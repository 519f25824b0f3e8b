package route_test

import (
	"errors"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/xdswatch/xdswatch/view/route"
)

// The rules are those of Envoy's HttpConnectionManager and of RFC 3986, section 6.
func TestNormalizePath(t *testing.T) {
	path := route.Normalization{Path: true}
	merge := route.Normalization{MergeSlashes: true}
	both := route.Normalization{Path: true, MergeSlashes: true}
	unescape := route.Normalization{EscapedSlashes: route.UnescapeSlashes}
	all := route.Normalization{Path: true, MergeSlashes: true, EscapedSlashes: route.UnescapeSlashes}
	reject := route.Normalization{EscapedSlashes: route.RejectSlashes}
	const refused = "refused"
	for _, test := range []struct {
		n        route.Normalization
		in, want string
	}{
		{route.Normalization{}, "/public/../private//%2e%2Fa\\", "/public/../private//%2e%2Fa\\"},
		{path, "", "/"},
		{path, "/", "/"},
		{path, "/a/b", "/a/b"},
		{path, "/public/../private", "/private"},
		{path, "/public/..", "/"},
		{path, "/public/.", "/public/"},
		{path, "/a/./b", "/a/b"},
		{path, "/a/b/../", "/a/"},
		{path, "/a/b/../..", "/"},
		{path, "/../../etc", "/etc"},
		{path, "/..", "/"},
		{path, "/a/.../b", "/a/.../b"},
		{path, "/a/..b/c..", "/a/..b/c.."},
		{path, "/a/%2e%2E/b", "/b"},
		{path, "/a/.%2e/b", "/b"},
		{path, "/a/%2e/b", "/a/b"},
		{path, "/a/%252e%252e/b", "/a/%252e%252e/b"}, // unescaped once
		{path, "/a/%25%32%65/b", "/a/%252e/b"},
		{path, `/a\..\b`, "/b"},
		{path, `\a`, "/a"},
		{path, "/a/%5c../b", "/a/%5c../b"},
		{path, "/a%2Fb", "/a%2Fb"},
		{path, "/%61%5F%7e%2d%2E%39", "/a_~-.9"},
		{path, "/%4A%c3%A9", "/J%c3%A9"}, // others keep their case
		{path, "/a b\"<>`{}é", "/a%20b%22%3C%3E%60%7B%7D%C3%A9"},
		{path, "/100%", "/100%25"},
		{path, "/100%zz", "/100%25zz"},
		{path, "/%%32e%%32e/x", "/%252e%252e/x"},
		{path, "/a%00b", refused},
		{path, "/a\x00b", refused},
		{path, "/a\xff", refused},
		{path, "/a//b", "/a//b"},
		{path, "/a//../b", "/a/b"},
		{merge, "//a///b//", "/a/b/"},
		{merge, "////", "/"},
		{merge, "/a/%2F/b", "/a/%2F/b"},
		{merge, "/a/..//b", "/a/../b"},
		{both, "/a//../b", "/a/b"}, // resolved before it is merged
		{both, "/a/b/..//c", "/a/c"},
		{unescape, "/a%2Fb%2fc%5Cd%5c", `/a/b/c\d\`},
		{unescape, "/a%252Fb", "/a%252Fb"},
		{all, "/public%2F..%2fprivate", "/private"},
		{all, "/public%5C..%5cprivate%5C%2Fx", "/private/x"},
		{reject, "/a/b", "/a/b"},
		{reject, "/a%2fb", refused},
		{reject, "/a%5Cb", refused},
	} {
		r := route.Request{Host: "a.org", Path: test.in, Query: "q=/../%2F//", Method: "GET"}
		redirect, err := test.n.Apply(&r, 80)
		got := r.Path
		if errors.Is(err, route.ErrPath) {
			got = refused
		}
		if got != test.want || redirect != "" || r.Host != "a.org" || r.Query != "q=/../%2F//" {
			t.Errorf("%+v: %q became %q, want %q (%q, %v)", test.n, test.in, got, test.want, redirect, err)
		}
	}
}

// FuzzNormalize looks for paths that say something else once they are normalized again, or that climb.
func FuzzNormalize(f *testing.F) {
	for _, path := range []string{"/a/../b", "/%2e%2e%2f%5c", "/%%32e//", `\..\.`} {
		f.Add(path)
	}
	n := route.Normalization{Path: true, MergeSlashes: true, EscapedSlashes: route.UnescapeSlashes}
	f.Fuzz(func(t *testing.T, path string) {
		r := route.Request{Path: path}
		if _, err := n.Apply(&r, 0); err != nil {
			return
		}
		once := r.Path
		for _, bad := range []string{"//", "/./", "/../", `\`, "%2f", "%2F", "%5c", "%5C", "%2e", "%2E"} {
			if strings.Contains(once+"/", bad) && bad != "//" || strings.Contains(once, bad) {
				t.Errorf("%q became %q, with %q", path, once, bad)
			}
		}
		if _, err := n.Apply(&r, 0); err != nil || r.Path != once {
			t.Errorf("%q became %q, then %q: %v", path, once, r.Path, err)
		}
	})
}

func TestRedirectSlashes(t *testing.T) {
	plain := route.Normalization{EscapedSlashes: route.RedirectSlashes}
	all := route.Normalization{EscapedSlashes: route.RedirectSlashes, Path: true, MergeSlashes: true, StripPort: true}
	for _, test := range []struct {
		n        route.Normalization
		in, want string
	}{
		{plain, "http://a.org:80/a/b", ""},
		{plain, "http://a.org:80/a%2Fb", "http://a.org:80/a/b"},
		{plain, "http://a.org/%2Fevil.org", "http://a.org//evil.org"}, // no other host
		{plain, "https://a.org/%5C%5Cevil.org?q=%2F", `https://a.org/\\evil.org?q=%2F`},
		{all, "http://a.org:80/x%2F%2e.%2F%2Fevil.org?q", "http://a.org:80/evil.org?q"}, // the port is still needed,
		{all, "http://a.org:80/x/../y", ""},
	} {
		r := route.FromHTTP(httptest.NewRequest("GET", test.in, nil))
		if got, err := test.n.Apply(&r, 0); got != test.want || err != nil {
			t.Errorf("%+v: %s is sent to %q, %v; want %q", test.n, test.in, got, err, test.want)
		}
	}
	call := route.Request{Path: "/a%2Fb", Header: map[string][]string{"Content-Type": {"application/grpc"}}}
	if _, err := plain.Apply(&call, 0); !errors.Is(err, route.ErrPath) {
		t.Errorf("a gRPC request is redirected: %v", err)
	}
}

func TestNormalizeHost(t *testing.T) {
	anyPort := route.Normalization{StripPort: true}
	matching := route.Normalization{StripMatchingPort: true}
	dot := route.Normalization{StripDot: true}
	all := route.Normalization{StripPort: true, StripDot: true}
	for _, test := range []struct {
		n        route.Normalization
		in, want string
	}{
		{route.Normalization{}, "a.org.:8080", "a.org.:8080"},
		{anyPort, "a.org:8080", "a.org"},
		{anyPort, "a.org:1", "a.org"},
		{anyPort, "a.org", "a.org"},
		{anyPort, "a.org:", "a.org:"},
		{anyPort, "a.org:http", "a.org:http"},
		{anyPort, "[::1]:80", "[::1]"},
		{anyPort, "[::1]", "[::1]"},
		{matching, "a.org:8080", "a.org"},
		{matching, "a.org:80", "a.org:80"},
		{dot, "a.org.", "a.org"},
		{dot, "a.org.:8080", "a.org:8080"},
		{dot, "a.org", "a.org"},
		{all, "a.org.:8080", "a.org"},
	} {
		r := route.Request{Host: test.in, Path: "/"}
		if _, err := test.n.Apply(&r, 8080); r.Host != test.want || err != nil {
			t.Errorf("%+v: %q became %q, want %q", test.n, test.in, r.Host, test.want)
		}
	}
	r := route.Request{Host: "a.org:0", Method: "CONNECT"}
	if _, err := matching.Apply(&r, 0); r.Host != "a.org:0" || r.Path != "" || err != nil {
		t.Errorf("without a known port: %q, %q, %v", r.Host, r.Path, err)
	}
}
