package xdstp

import "testing"

// What Envoy's xds_resource_test (DecodeEncode) gives in its canonical form comes back as it was, both as a
// name and as a locator. testdata/xdstp.yaml has some of these in one of the two forms only.
//
// spec: XDSTP-1 XDSTP-2 XDSTP-4
func TestEnvoyRoundTrips(t *testing.T) {
	const (
		path = "xdstp://foo/envoy.config.listener.v3.Listener"
		odd  = "xdstp://f123%25%2F%3F%23o/envoy.config.listener.v3.Listener/b%25%3A%3F%23%5B%5Dar//baz"
	)
	for _, text := range []string{
		"xdstp:///envoy.config.listener.v3.Listener", path, path + "/bar", path + "/bar/baz", path + "/bar////baz", path + "?ab=cde",
		path + "/bar?ab=cd", path + "/bar/baz?ab=cde", path + "/bar/baz?ab=", path + "/bar/baz?=cd", path + "/bar/baz?ab=cde&ba=edc&z=f",
		odd + "?%25%23%5B%5D%26%3Dab=cde%25%23%5B%5D%26%3Df",
		odd + "?%25%23%5B%5D%26%3D=bar&%25%23%5B%5D%26%3Dab=cde%25%23%5B%5D%26%3Df&foo=%25%23%5B%5D%26%3D",
	} {
		n, err := Parse(text)
		if err != nil || n.String() != text {
			t.Errorf("name %q: %q, %v", text, n, err)
		}
		l, err := ParseLocator(text)
		if err != nil || l.String() != text {
			t.Errorf("locator %q: %q, %v", text, l, err)
		}
	}
}
