package xdstp_test

import (
	"testing"

	"github.com/xdswatch/xdswatch/xdstp"
)

// gRPC's clients escape no more than RFC 3986 asks for, so that servers which compare texts answer.
// spec: XDSTP-4 C-6
func TestURI(t *testing.T) {
	for name, want := range map[string]string{
		"xdstp://a/T/host%3A8080":              "xdstp://a/T/host:8080",
		"xdstp://a/T/a%20b/c%2Fd~!$&'()*+,;=@": "xdstp://a/T/a%20b/c/d~!$&'()*+,;=@",
		"xdstp://a/T/%5B::1%5D%25%3F%23%7F%C3": "xdstp://a/T/%5B::1%5D%25%3F%23%7F%C3",
		"xdstp://a/T/x?b=2&a=1":                "xdstp://a/T/x?a=1&b=2",
		"xdstp://a/T/":                         "xdstp://a/T",
	} {
		n, err := xdstp.Parse(name)
		if err != nil {
			t.Fatal(err)
		}
		got := n.URI()
		if got != want {
			t.Errorf("%q is %q, want %q", name, got, want)
		}
		if again, err := xdstp.Parse(got); err != nil || !again.Equal(n) {
			t.Errorf("%q parses to %v, %v", got, again, err)
		}
	}
}

// spec: XDSTP-4 C-6
func TestSpelledAs(t *testing.T) {
	more := []xdstp.Param{{Key: "a", Value: "1"}, {Key: "xds.n", Value: "a b:c"}}
	for _, test := range []struct {
		text   string
		params []xdstp.Param // nil for those of text
		want   string
	}{
		{"xdstp://a/T/host:8080", nil, "xdstp://a/T/host:8080"},
		{"xdstp://a/T/host%3a8080", nil, "xdstp://a/T/host%3a8080"},
		{"xdstp://a/T/x?b=%32&a=1", nil, "xdstp://a/T/x?a=1&b=%32"},
		{"xdstp://a/T/x?", nil, "xdstp://a/T/x"},
		{"xdstp://a/T/x:y?%61=%31", more, "xdstp://a/T/x:y?a=1&xds.n=a b:c"},
		{"xdstp://a/T/x:y", more[:1], "xdstp://a/T/x:y?a=1"},
		{"xdstp://a/T/p/%2A", nil, "xdstp://a/T/p/%2A"},
	} {
		n, err := xdstp.Parse(test.text)
		if err != nil {
			t.Fatal(err)
		}
		if test.params != nil {
			n.Params = test.params
		}
		if got := n.SpelledAs(test.text); got != test.want {
			t.Errorf("%q with %v is %q, want %q", test.text, test.params, got, test.want)
		}
	}
}
