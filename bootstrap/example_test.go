package bootstrap_test

import (
	"fmt"

	"github.com/xdswatch/xdswatch/bootstrap"
)

func ExampleLoad() {
	boot, err := bootstrap.Load("testdata/envoy_static_cluster.yaml")
	if err != nil {
		fmt.Println(err)
		return
	}
	s := boot.Servers[0]
	fmt.Println("node", boot.Node.GetId())
	fmt.Println("server", s.URI, s.ChannelCreds.Type, "delta:", s.Delta)
	// Output:
	// node edge-1
	// server dns:///xds.example:18000 tls delta: true
}

// All faults of a bootstrap are told at once.
func ExampleParse() {
	_, err := bootstrap.Parse("bootstrap.json", []byte(`{
	  "node": {"id": 7},
	  "xds_servers": [{"channel_creds": [{"type": "kerberos"}]}]
	}`))
	fmt.Println(err)
	// Output:
	// bootstrap.json: node.id = 7: want a string, is a number
	// bootstrap.json: xds_servers[0].server_uri: required
	// bootstrap.json: xds_servers[0].channel_creds: no known type among ["kerberos"]; known: ["insecure" "tls"]
}

// A program may write its bootstrap itself.
func ExampleConfig() {
	boot := &bootstrap.Config{
		Servers: []bootstrap.ManagementServer{{
			URI: "xds.example:443",
			ChannelCreds: bootstrap.ChannelCreds{
				Type: "tls",
				TLS:  &bootstrap.TLS{CACertificateFile: "/certs/ca.pem"},
			},
			Delta: true,
		}},
	}
	fmt.Println(boot.Validate())
	// Output: <nil>
}
