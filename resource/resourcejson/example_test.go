package resourcejson_test

import (
	"fmt"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"

	"github.com/xdswatch/xdswatch/resource/resourcejson"
)

func Example() {
	secret := &tlsv3.Secret{Name: "web", Type: &tlsv3.Secret_TlsCertificate{TlsCertificate: &tlsv3.TlsCertificate{
		PrivateKey: &corev3.DataSource{Specifier: &corev3.DataSource_InlineString{InlineString: "-----BEGIN PRIVATE KEY-----"}},
	}}}
	fmt.Printf("%s\n", resourcejson.Options{}.Message(secret))
	// Output: {"name":"web","tlsCertificate":{"privateKey":{"inlineString":"[redacted]"}}}
}
