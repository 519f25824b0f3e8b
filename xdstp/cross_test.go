package xdstp

import "testing"

const (
	emptyID     = "Envoy and C-core allow an empty ID; the gRPC clients in Go and Java do not"
	colon       = "Envoy escapes ':' in an ID, net/url does not"
	star        = "net/url escapes '*', which would break globs; Envoy does not"
	goAuthority = "net/url refuses escapes in the authority"
	goRaw       = "grpc-go writes decoded parameters back bare, so different names collide"
	javaRaw     = "grpc-java sorts the raw text and decodes nothing"
	fragment    = "a name has no fragment, so Envoy escapes the '#'; the gRPC clients drop or keep it"
	repeated    = "which value of a repeated key holds is undefined: we refuse the name of a " +
		"watch, and take the last value in a received one"
)

// otherwise says why grpc-go or grpc-java make something else of an input than we do.
var otherwise = map[string]string{
	"xdstp://foo/envoy.config.listener.v3.Listener": emptyID,
	"foo://":                               "not our scheme: an old-style name to gRPC, no structured one to Envoy",
	"xdstp://foo/bar/baz/blah?a=b#entry=m": fragment,
	"xdstp://auth/type/id#entry=x":         fragment,
	"xdstp://auth/type/id?a=1&a=2":         repeated,
	"xdstp://auth/type/id?b=1&a=1&b=0":     repeated,
	"xdstp://auth/type/a%3Ab":              colon,
	"xdstp://auth/type/a%3ab":              colon + "; " + javaRaw,
	"xdstp://auth/type/id?b=x%26y&a=p%3Dq": goRaw,
	"xdstp://auth/type/id?a=b=c":           goRaw + "; " + javaRaw,
	"xdstp://auth/type/id?a":               javaRaw,
	"xdstp://auth/type/id?":                javaRaw,
	"xdstp://auth//id":                     "grpc-go accepts an empty type",
	"xdstp://auth/type/a~b":                "Envoy escapes '~'",
	"xdstp://auth/type/id?a=1;b=2":         "net/url drops a query with ';'; " + javaRaw,
	"xdstp://auth/type/*":                  star,
	"xdstp://auth/type/foo/*?b=2&a=1":      star,
	"xdstp://user@auth/type/id":            "net/url takes the user for a part of its own",
	"xdstp://auth/ty%70e/id":               "the type segment is never decoded",
	"xdstp://a%23b/type/id":                goAuthority,
	"xdstp://auth/type/id?a=%zz":           "a malformed escape is kept as text, as in Envoy",
	"xdstp://f123%25%2F%3F%23o/envoy.config.listener.v3.Listener/b%25%3A%3F%23%5B%5Dar//baz?%25%23%5B%5D%26%3Dab=cde%25%23%5B%5D%26%3Df":                                               goAuthority,
	"xdstp://f123%25%2F%3F%23o/envoy.config.listener.v3.Listener/b%25%3A%3F%23%5B%5Dar//baz?%25%23%5B%5D%26%3D=bar&%25%23%5B%5D%26%3Dab=cde%25%23%5B%5D%26%3Df&foo=%25%23%5B%5D%26%3D": goAuthority,
}

// received are the inputs with a repeated key, and what a server means by them.
var received = map[string]string{
	"xdstp://auth/type/id?a=1&a=2":     "xdstp://auth/type/id?a=2",
	"xdstp://auth/type/id?b=1&a=1&b=0": "xdstp://auth/type/id?a=1&b=0",
}

// The canonical text is Envoy's, and each case in which a gRPC client has another is known.
func TestAcrossImplementations(t *testing.T) {
	unused := make(map[string]bool)
	for input := range otherwise {
		unused[input] = true
	}
	for _, c := range loadSections(t)["cross"] {
		delete(unused, c.Input)
		got := canonicalOrError(Parse(c.Input))
		if want, ok := received[c.Input]; ok { // spec: XDSTP-5
			if got != "error" {
				t.Errorf("Parse(%q) is %q, want an error", c.Input, got)
			}
			if got := canonicalOrError(ParseReceived(c.Input)); got != want {
				t.Errorf("ParseReceived(%q) is %q, want %q", c.Input, got, want)
			}
			continue
		}
		if got != c.Envoy {
			t.Errorf("Parse(%q) is %q, in Envoy %q", c.Input, got, c.Envoy)
		}
		agree := got == c.GRPCGo && got == c.GRPCJava
		if _, known := otherwise[c.Input]; agree == known {
			t.Errorf("%q: agrees with gRPC = %v, but known to differ = %v", c.Input, agree, known)
		}
	}
	for input := range unused {
		t.Errorf("%q is no case of the file", input)
	}
}

func canonicalOrError(n Name, err error) string {
	if err != nil {
		return "error"
	}
	return n.String()
}
