package bootstrap_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/xdswatch/xdswatch/bootstrap"
)

// What looks as if it asked for security is not passed over for what gives less: another case,
// letters of other alphabets, characters that are not seen, and keys that are there twice, of which
// other readers take the first.
//
// spec: H-6 H-7
func TestLooksSecure(t *testing.T) {
	const (
		at    = "b: xds_servers[0].channel_creds[0].type = "
		tls   = `: is no known type; did you mean "tls"?`
		creds = `,"channel_creds":[{"type":"insecure"}]`
	)
	server := func(more string) string { return `{"xds_servers":[{"server_uri":"x:1"` + more + `}]}` }
	first := func(typ string) string { return grpcDoc(`[{"type":"` + typ + `"},{"type":"insecure"}]`) }
	for _, c := range []struct{ doc, want string }{
		{first("TLS"), at + `"TLS"` + tls},
		{first("Tls"), at + `"Tls"` + tls},
		{first("tlѕ"), at + `"tlѕ"` + tls}, // Cyrillic
		{first("ｔls"), at + `"ｔls"` + tls}, // full width
		{first("tls\u200b"), at + "\"tls\u200b\"" + tls},
		{first("Google_Default"), at + `"Google_Default": is no known type; did you mean "google_default"?`},
		{first("ALTS"), at + `"ALTS": is no known type; did you mean "alts"?`},
		{server(creds + `,"channel_сreds":[{"type":"tls"}]`), `b: xds_servers[0].channel_сreds: is not known here; did you mean "channel_creds"?`},
		{server(creds + `,"channelCreds":[{"type":"tls"}]`), `b: xds_servers[0].channelCreds: is not known here; did you mean "channel_creds"?`},
		{server(creds + `,"callCreds":[]`), `b: xds_servers[0].callCreds: is not known here; did you mean "call_creds"?`},
		{server(creds + `,"CALL_CREDS":[]`), `b: xds_servers[0].CALL_CREDS: is not known here; did you mean "call_creds"?`},
		{server(`,"channel_creds":[{"type":"tls"}]` + creds), "b: line 1, column 70: a key is there twice"},
		{grpcDoc(`[{"type":"tls","type":"insecure"}]`), "b: line 1, column 68: a key is there twice"},
		{grpcDoc(`[{"type":"tls","typ\u0065":"insecure"}]`), "b: line 1, column 68: a key is there twice"},
		{"# <<\nxds_servers: [{server_uri: x:1, channel_creds: [{type: tls}], channel_creds: [{type: insecure}]}]", "b: line 2: yaml: a key is there twice"},
		{"{\n" + `"a":[{"b":1},{"b":1,"c":{"b":[]}}],` + "\n" + `"a":1}`, "b: line 3, column 1: a key is there twice"},
	} {
		_, err := bootstrap.Parse("b", []byte(c.doc))
		if got := fmt.Sprint(err); got != c.want {
			t.Errorf("%s\ngot:  %s\nwant: %s", c.doc, got, c.want)
		}
	}
}

// A field of Envoy's that is there in both of its spellings is a fault: one of them would be passed over.
//
// spec: H-6
func TestBothSpellings(t *testing.T) {
	const raw = `"transport_socket":{"name":"r","typed_config":{"@type":"type.googleapis.com/envoy.extensions.transport_sockets.raw_buffer.v3.RawBuffer"}},`
	doc := strings.Replace(tlsDoc(`"sni":"x"`), `"transport_socket"`, raw+`"transportSocket"`, 1)
	_, err := bootstrap.Parse("b", []byte(doc))
	if got := fmt.Sprint(err); got != `b: static_resources.clusters[0].transport_socket: is given as transportSocket too` {
		t.Errorf("got %s", got)
	}
}

// A secret that stands in the place of a name, a path or a host is refused where it can be seen to be
// one, and is in no text.
//
// spec: H-3
func TestSecretsForNames(t *testing.T) {
	const pem = `-----BEGIN PRIVATE KEY-----\nMARK3R`
	uri := func(uri string) string {
		return `{"xds_servers":[{"server_uri":"` + uri + `","channel_creds":[{"type":"insecure"}]}]}`
	}
	withTLS := func(config string) string { return grpcDoc(`[{"type":"tls","config":{` + config + `}}]`) }
	const password = ": has a password, which gRPC would not use"
	const path = ": want the path of a file, not its content"
	for _, c := range []struct{ doc, want string }{
		{uri("user:MARK3R@host:1"), "b: xds_servers[0].server_uri" + password},
		{uri("dns:///user:MARK3R@host:1"), "b: xds_servers[0].server_uri" + password},
		{uri("dns://user:MARK3R@ns/host:1"), "b: xds_servers[0].server_uri" + password},
		{uri("https://user:MARK3R@host:1"), "b: xds_servers[0].server_uri" + password},
		{adsDoc(`"google_grpc":{"target_uri":"dns:///u:MARK3R@h:1","stat_prefix":"x"}`), "b: dynamic_resources.ads_config.grpc_services[0].google_grpc.target_uri" + password},
		{strings.Replace(tlsDoc(`"sni":"x"`), `"1.2.3.4"`, `"https://u:MARK3R@h"`, 1), `address.socket_address.address: want an IP address or the name of a host`},
		{strings.Replace(tlsDoc(`"sni":"x"`), `"1.2.3.4"`, `"[::1]"`, 1), `address.socket_address.address: want an IP address or the name of a host`},
		{withTLS(`"certificate_file":"c","private_key_file":"` + pem + `"`), "b: xds_servers[0].channel_creds[0].config.private_key_file" + path},
		{withTLS(`"ca_certificate_file":"` + pem + `"`), "b: xds_servers[0].channel_creds[0].config.ca_certificate_file" + path},
		{`{"xds_servers":[{"server_uri":"x:1","channel_creds":[{"type":"tls"}],"call_creds":[{"type":"jwt_token_file","config":{"jwt_token_file":"eyJhbGciOiJSUzI1NiJ9.MARK3R.c2ln"}}]}]}`,
			"b: xds_servers[0].call_creds[0].config.jwt_token_file" + path},
		{tlsDoc(`"common_tls_context":{"tls_certificates":[{"certificate_chain":{"filename":"c"},"private_key":{"filename":"` + pem + `"}}]}`), "private_key.filename" + path},
		{adsDoc(`"google_grpc":{"target_uri":"x:1","stat_prefix":"x"},"initial_metadata":[{"key":"Bearer MARK3R","value":"authorization"}]`), "initial_metadata[0].key: want a key of letters, digits and _-."},
	} {
		_, err := bootstrap.Parse("b", []byte(c.doc))
		if got := fmt.Sprint(err); !strings.Contains(got, c.want) || strings.Contains(got, "MARK3R") {
			t.Errorf("%s\ngot:  %s\nwant: %s", c.doc, got, c.want)
		}
	}
	for _, good := range []string{"dns:///user@host:1", "unix:///a:b@c", "unix-abstract:a:b@c", "mine:///a@b:1", "passthrough:///[fe80::1%25eth0]:1"} {
		if _, err := bootstrap.Parse("b", []byte(uri(good))); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	c := bootstrap.Config{Servers: []bootstrap.ManagementServer{{URI: "dns:///u:MARK3R@h:1", ChannelCreds: bootstrap.ChannelCreds{
		Type: "tls", TLS: &bootstrap.TLS{CACertificateFile: "-----BEGIN MARK3R", CertificateFile: "c\nMARK3R", PrivateKeyFile: "-----BEGIN MARK3R"},
	}, CallCreds: []bootstrap.CallCreds{{Type: "jwt_token_file", TokenFile: "eyJhbGciOiJSUzI1NiJ9.MARK3R.c2ln"}}}}}
	got := fmt.Sprint(c.Validate())
	if n := strings.Count(got, "\n") + 1; n != 5 || strings.Contains(got, "MARK3R") {
		t.Errorf("%d faults, want 5, without the secret: %s", n, got)
	}
	boot := parse(t, `{"xds_servers":[{"server_uri":"x:1","channel_creds":[{"type":"insecure"}]}],"node":{"id":"me","metadata":{"token":"MARK3R"}}}`)
	if text := fmt.Sprintf("%v %+v %#v", boot, boot, *boot); strings.Contains(text, "MARK3R") || !strings.Contains(text, "me") {
		t.Errorf("metadata of the node is printed: %s", text)
	}
}
