package bootstrap_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/xdswatch/xdswatch/bootstrap"
	"google.golang.org/grpc/credentials"
)

// envoyDoc is a bootstrap whose only gRPC service is the given one, in YAML's flow form.
func envoyDoc(service, clusters string) string {
	return `
node: {id: a, cluster: b}
dynamic_resources: {ads_config: {api_type: GRPC, grpc_services: [` + service + `]}}
static_resources: {clusters: [` + clusters + `]}
`
}

const (
	toCluster = `{envoy_grpc: {cluster_name: c}}`
	assigned  = `load_assignment: {endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: h, port_value: 1}}}}]}]}`
	tlsConfig = `"@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext`
)

func tlsCluster(context string) string {
	return `{name: c, ` + assigned + `, transport_socket: {name: tls, typed_config: {` + tlsConfig + `, ` + context + `}}}`
}

// spec: BOOTE-3 CFG-5
func TestEnvoyFaults(t *testing.T) {
	const service = "envoy: dynamic_resources.ads_config.grpc_services[0]"
	const cluster = "envoy: static_resources.clusters[0]"
	const socket = cluster + ".transport_socket.typed_config.common_tls_context"
	for name, c := range map[string]struct{ doc, want string }{
		"ads referenced and absent": {
			`{"node":{"id":"a","cluster":"b"},"dynamic_resources":{"cds_config":{"ads":{}}}}`,
			"envoy: dynamic_resources.ads_config: required: cds_config refers to it",
		},
		"resources that are none": {
			`{"node":{"id":"a","cluster":"b"},"dynamic_resources":"x"}`,
			`envoy: dynamic_resources: want an object, is a string`,
		},
		"sources that are none": {
			`{"node":{"id":"a","cluster":"b"},"config_sources":"x"}`,
			`envoy: config_sources: want a list, is a string`,
		},
		"clusters that are none": {
			`{"node":{"id":"a","cluster":"b"},"dynamic_resources":{"ads_config":{"api_type":"GRPC","grpc_services":[` +
				`{"envoy_grpc":{"cluster_name":"c"}}]}},"static_resources":"x"}`,
			`envoy: static_resources: want an object, is a string`,
		},
		"source without specifier, old version": {
			`{"node":{"id":"a","cluster":"b"},"dynamic_resources":{"lds_config":{"resource_api_version":"V2"},` +
				`"ads_config":{"api_type":"GRPC","grpc_services":[{"google_grpc":{"target_uri":"x"}}]}}}`,
			"envoy: dynamic_resources.lds_config.resource_api_version = \"V2\": version 2 of the xDS protocol is not supported; want V3\n" +
				"envoy: dynamic_resources.lds_config: names no source",
		},
		"node": {
			`{"node":{"id":7,"cluster":"b","locality":[],"client_features":true},"dynamic_resources":{` +
				`"ads_config":{"api_type":9,"transport_api_version":4,"grpc_services":[{"google_grpc":{"target_uri":"x"}}]}}}`,
			"envoy: node.id = 7: want a string, is a number\n" +
				"envoy: node.locality: want an object, is a list\n" +
				"envoy: dynamic_resources.ads_config.api_type = 9: want GRPC or DELTA_GRPC\n" +
				"envoy: dynamic_resources.ads_config.transport_api_version = 4: want V3 or AUTO",
		},
		"node, by protobuf's rules": {
			`{"node":{"id":"a","cluster":"b","client_features":true},"dynamic_resources":{` +
				`"ads_config":{"api_type":"GRPC","grpc_services":[{"google_grpc":{"target_uri":"x"}}]}}}`,
			"envoy: node.client_features = true: syntax error: unexpected token true",
		},
		"clusters of one name": {
			envoyDoc(toCluster, `{name: c, `+assigned+`}, {name: d}, {name: c, `+assigned+`}`),
			`envoy: static_resources.clusters[2].name = "c": is the name of static_resources.clusters[0] too`,
		},
		"service": {envoyDoc(`{}`, ""), service + ": want envoy_grpc or google_grpc"},
		"both services": {
			envoyDoc(`{envoy_grpc: {cluster_name: c}, google_grpc: {target_uri: x}}`, ""),
			service + ".google_grpc: is given beside envoy_grpc; want one of them",
		},
		"cluster unknown": {
			envoyDoc(toCluster, "{name: d}"),
			service + `.envoy_grpc.cluster_name = "c": no cluster in static_resources has this name`,
		},
		"cluster by EDS": {
			envoyDoc(toCluster, `{name: c, type: EDS, `+assigned+`}`),
			cluster + `.type = "EDS": the cluster of a management server must be STATIC, STRICT_DNS or LOGICAL_DNS`,
		},
		"cluster without endpoint": {
			envoyDoc(toCluster, `{name: c, load_assignment: {endpoints: [{}]}}`),
			cluster + ".load_assignment: has no endpoint",
		},
		"cluster without assignment": {envoyDoc(toCluster, `{name: c}`), cluster + ".load_assignment: required"},
		"port": {
			envoyDoc(toCluster, strings.Replace(`{name: c, `+assigned+`}`, "port_value: 1", "port_value: 70000", 1)),
			cluster + ".load_assignment.endpoints[0].lb_endpoints[0].endpoint.address.socket_address.port_value = 70000: want a port number between 1 and 65535",
		},
		"socket of unknown type": {
			envoyDoc(toCluster, `{name: c, `+assigned+`, transport_socket: {name: q, typed_config: {"@type": x/example.Quic}}}`),
			cluster + ".transport_socket.typed_config: want the type envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext or envoy.extensions.transport_sockets.raw_buffer.v3.RawBuffer",
		},
		"SDS": {
			envoyDoc(toCluster, tlsCluster(`common_tls_context: {tls_certificate_sds_secret_configs: [{name: x}], validation_context: {system_root_certs: {}}}`)),
			socket + `.tls_certificate_sds_secret_configs[0].name = "x": static_resources.secrets has no envoy.extensions.transport_sockets.tls.v3.Secret of this name`,
		},
		"names without CA": {
			envoyDoc(toCluster, tlsCluster(`common_tls_context: {validation_context: {match_typed_subject_alt_names: [{san_type: DNS, matcher: {exact: x}}]}}`)),
			socket + ".validation_context.trusted_ca: required with match_typed_subject_alt_names",
		},
		"matchers": {
			envoyDoc(toCluster, tlsCluster(`common_tls_context: {validation_context: {trusted_ca: {filename: x}, match_typed_subject_alt_names: [{san_type: EMAIL, matcher: {prefix: x}}]}}`)),
			socket + ".validation_context.match_typed_subject_alt_names[0].san_type = \"EMAIL\": want DNS, URI or IP_ADDRESS\n" +
				socket + ".validation_context.match_typed_subject_alt_names[0].matcher: only exact matchers are supported",
		},
		"key without certificate, from the environment": {
			envoyDoc(toCluster, tlsCluster(`common_tls_context: {validation_context: {system_root_certs: {}}, tls_certificates: [{private_key: {environment_variable: KEY}}]}`)),
			socket + ".tls_certificates[0].private_key.environment_variable: is not supported; want filename, inline_string or inline_bytes\n" +
				socket + ".tls_certificates[0].certificate_chain: required with private_key",
		},
		"google_default without the option": {
			envoyDoc(`{google_grpc: {target_uri: x, channel_credentials: {google_default: {}}}}`, ""),
			service + `.google_grpc.channel_credentials.google_default: "google_default" needs the option bootstrap.WithChannelCreds(googledefault.Type, googledefault.New) of package github.com/xdswatch/xdswatch/transport/googledefault`,
		},
		"credentials of another kind": {
			envoyDoc(`{google_grpc: {channel_credentials: {local_credentials: {}}}}`, ""),
			service + ".google_grpc.target_uri: required\n" +
				service + ".google_grpc.channel_credentials.local_credentials: is not supported; want ssl_credentials or google_default",
		},
		"two credentials": {
			envoyDoc(`{google_grpc: {target_uri: x, channel_credentials: {ssl_credentials: {}, google_default: {}}}}`, ""),
			service + ".google_grpc.channel_credentials.google_default: is given beside ssl_credentials; want one of them",
		},
		"credential plugins": {
			envoyDoc(`{google_grpc: {target_uri: x, channel_credentials_plugin: [{"@type": a/example.Unknown}, null]}}`, ""),
			service + ".google_grpc.channel_credentials_plugin: no known type among [\"example.Unknown\" \"\"]",
		},
		"certificate without key, empty sources": {
			envoyDoc(`{google_grpc: {target_uri: x, channel_credentials: {ssl_credentials: {root_certs: {}, cert_chain: {filename: ""}}}}}`, ""),
			service + ".google_grpc.channel_credentials.ssl_credentials.root_certs: want filename, inline_string or inline_bytes\n" +
				service + ".google_grpc.channel_credentials.ssl_credentials.cert_chain.filename = \"\": must not be empty\n" +
				service + ".google_grpc.channel_credentials.ssl_credentials.private_key: required with cert_chain",
		},
		"backoff": {
			envoyDoc(`{google_grpc: {target_uri: x}, retry_policy: {retry_back_off: {max_interval: 1s}}}`, ""),
			service + ".retry_policy.retry_back_off.base_interval: required, more than 0",
		},
		"backoff that is none": {
			envoyDoc(`{google_grpc: {target_uri: x}, retry_policy: {retry_back_off: {base_interval: foo, max_interval: 1s}}}`, ""),
			service + `.retry_policy.retry_back_off.base_interval = "foo": want a duration such as "1.5s", not negative`,
		},
		"SDS that is none": {
			envoyDoc(toCluster, tlsCluster(`common_tls_context: {validation_context_sds_secret_config: {name: x, sds_config: z}}`)),
			socket + `.validation_context_sds_secret_config.sds_config: want an object, is a string`,
		},
		"cluster by an extension": {
			envoyDoc(toCluster, `{name: c, cluster_type: {name: redis}, `+assigned+`}`),
			cluster + ".cluster_type: is not supported for the cluster of a management server; want type STATIC, STRICT_DNS or LOGICAL_DNS",
		},
		"address of another kind": {
			envoyDoc(toCluster, `{name: c, type: true, load_assignment: {endpoints: [{lb_endpoints: [{endpoint: {address: {envoy_internal_address: {}}}}]}]}}`),
			cluster + ".type = true: want a string, is a boolean\n" +
				cluster + ".load_assignment.endpoints[0].lb_endpoints[0].endpoint.address: want socket_address or pipe",
		},
		"port of another type": {
			envoyDoc(toCluster, strings.Replace(`{name: c, `+assigned+`}`, "port_value: 1", "port_value: true", 1)),
			cluster + ".load_assignment.endpoints[0].lb_endpoints[0].endpoint.address.socket_address.port_value = true: want a port number, is a boolean",
		},
		"socket matches": {
			envoyDoc(toCluster, `{name: c, `+assigned+`, transport_socket_matches: [{name: a}]}`),
			cluster + ".transport_socket_matches: is not supported for the cluster of a management server; want transport_socket",
		},
		"call credentials": {
			envoyDoc(`{google_grpc: {target_uri: x, call_credentials: [{access_token: s3cret}]}}`, ""),
			service + ".google_grpc.call_credentials: is not supported; a gRPC bootstrap may have call_creds",
		},
		"headers": {
			envoyDoc(`{google_grpc: {target_uri: x}, initial_metadata: [{key: "a b", value: s3cret}, {key: x-bin, value: "s3cret!"}, {key: ok, value: 5}, {value: v}]}`, ""),
			service + `.initial_metadata[0].key: want a key of letters, digits and _-.` + "\n" +
				service + ".initial_metadata[1].value: want base64\n" +
				service + ".initial_metadata[2].value: want a string, is a number; put the text in quotes\n" +
				service + ".initial_metadata[3].key: the key is required",
		},
	} {
		t.Run(name, func(t *testing.T) { wantError(t, c.doc, c.want) })
	}
}

// TestEnvoyServers is what a service and the static clusters make of the first server.
//
// spec: BOOTE-3
func TestEnvoyServers(t *testing.T) {
	pipe := strings.NewReplacer(`socket_address: {address: h, port_value: 1}`, `pipe: {path: "/run/xds"}`)
	const noName = "envoy: static_resources.clusters[0].transport_socket.typed_config.common_tls_context.validation_context: " +
		"has no match_typed_subject_alt_names, so the server's certificate must be valid for sni or the endpoint's host, which Envoy would not check"
	for name, c := range map[string]struct {
		service, clusters string
		want              string
		notices           []string
	}{
		"defaults":   {toCluster, `{name: c, ` + assigned + `}`, `dns:///h:1 insecure authority=c`, nil},
		"raw buffer": {toCluster, `{name: c, ` + assigned + `, transport_socket: {name: envoy.transport_sockets.raw_buffer}}`, `dns:///h:1 insecure authority=c`, nil},
		"IPv6":       {toCluster, strings.Replace(`{name: c, type: STATIC, `+assigned+`}`, "address: h", "address: '::1'", 1), `dns:///[::1]:1 insecure authority=c`, nil},
		"pipe":       {toCluster, pipe.Replace(`{name: c, ` + assigned + `}`), `unix:/run/xds insecure authority=c`, nil},
		"abstract":   {toCluster, strings.ReplaceAll(pipe.Replace(`{name: c, `+assigned+`}`), "/run/xds", "@xds"), `unix-abstract:xds insecure authority=c`, nil},
		"two endpoints": {
			toCluster, `{name: c, load_assignment: {endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: h, port_value: 2}}}}, {}]}]}}`,
			`dns:///h:2 insecure authority=c`,
			[]string{"envoy: static_resources.clusters[0].load_assignment: 2 endpoints are given; only the first of the best priority is used"},
		},
		"two priorities": {
			toCluster, `{name: c, load_assignment: {endpoints: [{priority: 1, lb_endpoints: [{}]}, {lb_endpoints: [{endpoint: {address: {socket_address: {address: h, port_value: 2}}}}]}]}}`,
			`dns:///h:2 insecure authority=c`,
			[]string{"envoy: static_resources.clusters[0].load_assignment: 2 endpoints are given; only the first of the best priority is used"},
		},
		"cluster extension": {
			toCluster, `{name: c, cluster_type: {name: envoy.cluster.dns, typed_config: {"@type": type.googleapis.com/envoy.extensions.clusters.dns.v3.DnsCluster}}, ` + assigned + `}`,
			`dns:///h:1 insecure authority=c`, nil,
		},
		"TLS that verifies nothing": {
			toCluster, tlsCluster(`sni: s, common_tls_context: {validation_context: {trust_chain_verification: ACCEPT_UNTRUSTED}}`), `dns:///h:1 tls name=s unverified authority=c`,
			[]string{"envoy: static_resources.clusters[0].transport_socket.typed_config.common_tls_context.validation_context.trust_chain_verification: is ACCEPT_UNTRUSTED, so who issued the server's certificate is not verified"},
		},
		"TLS with the system's roots": {
			toCluster, tlsCluster(`common_tls_context: {validation_context: {system_root_certs: {}}}`), `dns:///h:1 tls name=h authority=c`, []string{noName},
		},
		"TLS with names of the older field": {
			toCluster, tlsCluster(`common_tls_context: {tls_certificates: [{certificate_chain: {filename: c}, private_key: {filename: k}}, {}], validation_context: {trusted_ca: {filename: f}, match_subject_alt_names: [{exact: name}]}}`),
			`dns:///h:1 tls name=h authority=c`,
			[]string{"envoy: static_resources.clusters[0].transport_socket.typed_config.common_tls_context.tls_certificates: 2 certificates are given; only the first is used"},
		},
		"TLS that checks SNI": {
			toCluster, tlsCluster(`sni: s, auto_sni_san_validation: true, common_tls_context: {validation_context: {trusted_ca: {filename: f}}}`), `dns:///h:1 tls name=s authority=c`, nil,
		},
		"google_default": {`{google_grpc: {target_uri: "x:1", channel_credentials: {google_default: {}}}}`, "", `x:1 google_default authority=`, nil},
		"credential plugin": {
			`{google_grpc: {target_uri: "x:1", channel_credentials_plugin: [{"@type": a/example.Unknown}, {"@type": type.googleapis.com/envoy.extensions.grpc_service.channel_credentials.insecure.v3.InsecureCredentials}]}}`,
			"", `x:1 insecure authority=`,
			[]string{`envoy: dynamic_resources.ads_config.grpc_services[0].google_grpc.channel_credentials_plugin[0]: "example.Unknown" cannot be made here; the next entry stands for it`},
		},
		"formatted header": {
			`{google_grpc: {target_uri: "x:1"}, initial_metadata: [{key: k, value: "%HOSTNAME%"}]}`, "", `x:1 insecure authority=`,
			[]string{"envoy: dynamic_resources.ads_config.grpc_services[0].initial_metadata[0].value: is sent as it is written; Envoy's %COMMAND%s are not replaced"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			known := bootstrap.WithChannelCreds("google_default",
				func(json.RawMessage) (credentials.Bundle, error) { return nil, nil })
			boot, err := bootstrap.Parse("envoy", []byte(envoyDoc(c.service, c.clusters)), known)
			if err != nil {
				t.Fatal(err)
			}
			s := boot.Servers[0]
			got := s.URI + " " + s.ChannelCreds.Type
			if tls := s.ChannelCreds.TLS; tls != nil {
				got += " name=" + tls.ServerName
				if tls.SkipVerify {
					got += " unverified"
				}
			}
			got = fmt.Sprintf("%s authority=%s", got, s.HostAuthority)
			if got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			if diff := cmp.Diff(c.notices, boot.Notices, sameConfig); diff != "" {
				t.Errorf("notices, -want +got:\n%s", diff)
			}
		})
	}
}
