package bootstrap_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/xdswatch/xdswatch/bootstrap"
)

// misplaced are documents with a hole where a secret stands by mistake: in the place of the object
// or list that would hold it.
var misplaced = map[string]string{
	"a key for its source":           tlsDoc(`"common_tls_context":{"tls_certificates":[{"private_key":HOLE}]}`),
	"a key for its pair":             tlsDoc(`"common_tls_context":{"tls_certificates":[HOLE]}`),
	"a key for the list":             tlsDoc(`"common_tls_context":{"tls_certificates":HOLE}`),
	"a key as inline text":           tlsDoc(`"common_tls_context":{"tls_certificates":[{"private_key":{"inline_string":HOLE}}]}`),
	"a key as bytes":                 tlsDoc(`"common_tls_context":{"tls_certificates":[{"private_key":{"inline_bytes":HOLE}}]}`),
	"a key for a variable":           tlsDoc(`"common_tls_context":{"tls_certificates":[{"private_key":{"environment_variable":HOLE}}]}`),
	"a password":                     tlsDoc(`"common_tls_context":{"tls_certificates":[{"password":HOLE}]}`),
	"keys of tickets":                tlsDoc(`"session_ticket_keys":{"keys":[HOLE]}`),
	"a token for a header":           adsDoc(`"envoy_grpc":{"cluster_name":"x"},"initial_metadata":[HOLE]`),
	"a token for the headers":        adsDoc(`"envoy_grpc":{"cluster_name":"x"},"initial_metadata":HOLE`),
	"a token of a header":            adsDoc(`"envoy_grpc":{"cluster_name":"x"},"initial_metadata":[{"key":"authorization","value":HOLE}]`),
	"a token that gRPC would fetch":  adsDoc(`"google_grpc":{"target_uri":"x:1","stat_prefix":"x","call_credentials":[{"access_token":HOLE}]}`),
	"credentials for a call":         adsDoc(`"google_grpc":{"target_uri":"x:1","stat_prefix":"x","call_credentials":HOLE}`),
	"credentials of a channel":       adsDoc(`"google_grpc":{"target_uri":"x:1","stat_prefix":"x","channel_credentials":HOLE}`),
	"a configuration of credentials": `{"xds_servers":[{"server_uri":"x:1","channel_creds":[{"type":"tls","config":HOLE}]}]}`,
	"credentials of a server":        `{"xds_servers":[{"server_uri":"x:1","channel_creds":HOLE}]}`,
	"a token beside the server":      `{"xds_servers":[{"server_uri":"x:1","channel_creds":[{"type":"tls"}],"call_creds":[HOLE],"token":HOLE}]}`,
	"an alias of YAML":               "xds_servers: *MARK3R",
	"a tag of YAML":                  "xds_servers: !!int MARK3R",
	"a key of YAML":                  "? [MARK3R]\n: x",
	"a key of YAML twice":            "MARK3R: 1\nMARK3R: 2",
}

func adsDoc(service string) string {
	return `{"node":{"id":"n","cluster":"c"},"dynamic_resources":{"ads_config":{"api_type":"GRPC","grpc_services":[{` + service + `}]},"cds_config":{"ads":{}}}}`
}

func tlsDoc(context string) string {
	return `{"node":{"id":"n","cluster":"c"},"static_resources":{"clusters":[{"name":"x","type":"STATIC",` +
		`"load_assignment":{"cluster_name":"x","endpoints":[{"lb_endpoints":[{"endpoint":{"address":{"socket_address":{"address":"1.2.3.4","port_value":1}}}}]}]},` +
		`"transport_socket":{"name":"t","typed_config":{"@type":"type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext",` + context + `}}}]},` +
		`"dynamic_resources":{"ads_config":{"api_type":"GRPC","grpc_services":[{"envoy_grpc":{"cluster_name":"x"}}]},"cds_config":{"ads":{}}}}`
}

// A secret that stands where it should not is in no error, notice or printed value.
//
// spec: H-3
func TestMisplacedSecrets(t *testing.T) {
	const text, number = "MARK3R", "271828314159"
	for name, doc := range misplaced {
		for _, hole := range []string{`"` + text + `"`, `"` + text + `\n"`, `["` + text + `"]`, `{"a":"` + text + `"}`, number} {
			for _, format := range []string{"", "# YAML\n"} {
				c, err := bootstrap.Parse("boot", []byte(format+strings.ReplaceAll(doc, "HOLE", hole)))
				told := fmt.Sprintf("%v %+v %#v", err, err, err)
				if c != nil {
					told += fmt.Sprintf("%v %+v %#v %q", c, c, c, c.Notices)
				}
				for _, secret := range []string{text, number} {
					if strings.Contains(told, secret) {
						t.Errorf("%s, %s%s: %s tells the secret", name, format, hole, told)
					}
				}
			}
		}
	}
}
