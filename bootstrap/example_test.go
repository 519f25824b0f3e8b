package bootstrap_test

import (
	"fmt"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
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

// A gRPC bootstrap that asks for what is meant for the test environment, and of one
// authority for what is meant for the second version besides.
func ExampleDynamicParameters() {
	boot, err := bootstrap.Parse("bootstrap.json", []byte(`{
	  "xds_servers": [{"server_uri": "xds.example:443", "channel_creds": [{"type": "tls"}]}],
	  "dynamic_parameters": {"env": "test"},
	  "authorities": {"east": {"dynamic_parameters": {"env": "test", "version": "v2"}}}
	}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("backend:", boot.DynamicParameters.Old)
	fmt.Println("xdstp://east/…:", boot.DynamicParameters.Authorities["east"])
	// Output:
	// backend: map[env:test]
	// xdstp://east/…: map[env:test version:v2]
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

// A program that follows eds_config of a Cluster to where its endpoints are.
func ExampleConfig_ConfigSource() {
	boot, err := bootstrap.Load("testdata/envoy_config_sources.yaml")
	if err != nil {
		fmt.Println(err)
		return
	}
	edsConfig := &corev3.ConfigSource{
		ConfigSourceSpecifier: &corev3.ConfigSource_ApiConfigSource{ApiConfigSource: &corev3.ApiConfigSource{
			ApiType: corev3.ApiConfigSource_AGGREGATED_DELTA_GRPC,
			GrpcServices: []*corev3.GrpcService{{TargetSpecifier: &corev3.GrpcService_EnvoyGrpc_{
				EnvoyGrpc: &corev3.GrpcService_EnvoyGrpc{ClusterName: "xds-2"},
			}}},
		}},
	}
	source, err := boot.ConfigSource(edsConfig)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(source.Servers[0].URI, "delta:", source.Servers[0].Delta)
	// Output: dns:///xds-2.example:18000 delta: true
}
