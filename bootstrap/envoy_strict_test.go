package bootstrap_test

import (
	"crypto/sha256"
	"crypto/tls"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/xdswatch/xdswatch/bootstrap"
)

// A word that is misspelt may be the one that asks for security, so nothing that a message
// does not have is passed over.
//
// spec: H-6 U-9 BOOTE-1
func TestEnvoyUnknownFields(t *testing.T) {
	const (
		cluster = "envoy: static_resources.clusters[0]"
		service = "envoy: dynamic_resources.ads_config.grpc_services[0]"
		context = cluster + ".transport_socket.typed_config"
		noField = ": is no field of this message"
	)
	google := func(more string) string { return envoyDoc(`{google_grpc: {target_uri: x, `+more+`}}`, "") }
	trusted := func(more string) string {
		return envoyDoc(toCluster, tlsCluster(`common_tls_context: {validation_context: {trusted_ca: {filename: /f}, match_typed_subject_alt_names: [{san_type: DNS, matcher: {exact: a}}], `+more+`}}`))
	}
	for name, c := range map[string]struct{ doc, want string }{
		"transport_sockets": {
			envoyDoc(toCluster, `{name: c, `+assigned+`, transport_sockets: {name: tls}}`),
			cluster + ".transport_sockets" + noField + `; did you mean "transport_socket"?`,
		},
		"in lowerCamelCase": {
			envoyDoc(toCluster, `{name: c, `+assigned+`, transportSokcet: {name: tls}}`),
			cluster + ".transportSokcet" + noField + `; did you mean "transport_socket"?`,
		},
		"version 2's": {
			envoyDoc(toCluster, `{name: c, `+assigned+`, tls_context: {}}`),
			cluster + ".tls_context" + noField + " any more; want transport_socket",
		},
		"nothing like it": {
			envoyDoc(toCluster, `{name: c, `+assigned+`, encryption: "s3cret"}`), cluster + ".encryption" + noField,
		},
		"null": {
			envoyDoc(toCluster, `{name: c, `+assigned+`, encryption: null}`), cluster + ".encryption" + noField,
		},
		"channel_credential": {
			google(`channel_credential: {google_default: {}}`),
			service + ".google_grpc.channel_credential" + noField + `; did you mean "channel_credentials"?`,
		},
		"ssl_credential": {
			google(`channel_credentials: {ssl_credential: {}}`),
			service + ".google_grpc.channel_credentials.ssl_credential" + noField + `; did you mean "ssl_credentials"?` + "\n" +
				service + ".google_grpc.channel_credentials: want ssl_credentials or google_default",
		},
		"root_cert": {
			google(`channel_credentials: {ssl_credentials: {root_cert: {filename: f}}}`),
			service + ".google_grpc.channel_credentials.ssl_credentials.root_cert" + noField + `; did you mean "root_certs"?`,
		},
		"trust_ca": {
			envoyDoc(toCluster, tlsCluster(`common_tls_context: {validation_context: {truted_ca: {filename: /f}, system_root_certs: {}}, alpn: h2}, auto_sni_san_validation: true`)),
			context + ".common_tls_context.alpn" + noField + "\n" +
				context + ".common_tls_context.validation_context.truted_ca" + noField + `; did you mean "trusted_ca"?`,
		},
		"validation_contex": {
			envoyDoc(toCluster, tlsCluster(`common_tls_context: {validation_contex: {trusted_ca: {filename: /f}}}`)),
			context + ".common_tls_context.validation_contex" + noField + `; did you mean "validation_context"?` + "\n" + context + unverified,
		},
		"common_tls_contex": {
			envoyDoc(toCluster, tlsCluster(`common_tls_contex: {validation_context: {trusted_ca: {filename: /f}}}`)),
			context + ".common_tls_contex" + noField + `; did you mean "common_tls_context"?` + "\n" + context + unverified,
		},
		"a matcher": {
			trusted(`match_subject_alt_names: [{exactly: x}]`),
			context + ".common_tls_context.validation_context.match_subject_alt_names[0].exactly" + noField + "\n" +
				context + ".common_tls_context.validation_context.match_subject_alt_names[0]: only exact matchers are supported",
		},
		"a raw buffer of TLS": {
			envoyDoc(toCluster, `{name: c, `+assigned+`, transport_socket: {name: x, typed_config: {"@type": type.googleapis.com/envoy.extensions.transport_sockets.raw_buffer.v3.RawBuffer, sni: x}}}`),
			context + ".sni" + noField,
		},
		"of the document": {
			strings.Replace(envoyDoc(`{google_grpc: {target_uri: x}}`, ""), "node:", "configSource: []\nnode:", 1),
			"envoy: configSource" + noField + `; did you mean "config_sources"?`,
		},
		"of the node": {
			strings.Replace(envoyDoc(`{google_grpc: {target_uri: x}}`, ""), "{id: a", "{localty: {}, id: a", 1),
			"envoy: node.localty" + noField + `; did you mean "locality"?`,
		},
	} {
		t.Run(name, func(t *testing.T) { wantError(t, c.doc, c.want) })
	}
	// Clusters of others, extensions and maps are not judged.
	others := envoyDoc(toCluster, `{name: c, `+assigned+`, metadata: {filter_metadata: {a: {b: c}}}, typed_extension_protocol_options: {x: {"@type": a/b.C, d: e}}}, {name: d, whatever: 1}`)
	if _, err := bootstrap.Parse("envoy", []byte(others)); err != nil {
		t.Error(err)
	}
}

const unverified = ".common_tls_context.validation_context.trusted_ca: required, or else the server's certificate is not verified; " +
	"want system_root_certs: {} for the system's roots, or trust_chain_verification: ACCEPT_UNTRUSTED where that is meant " +
	"(bootstrap.AllowUnverifiedTLS allows it too)"

// What decides about security and cannot be kept to is a fault, and so is TLS that verifies
// nothing, unless it is asked for.
//
// spec: H-6
func TestEnvoyTLSFaults(t *testing.T) {
	const at = "envoy: static_resources.clusters[0].transport_socket.typed_config.common_tls_context."
	const context = "envoy: static_resources.clusters[0].transport_socket.typed_config"
	const roots = `validation_context: {system_root_certs: {}, match_typed_subject_alt_names: [{san_type: DNS, matcher: {exact: a}}]}`
	params := func(text string) string { return `tls_params: {` + text + `}, ` + roots }
	validation := func(text string) string { return `validation_context: {system_root_certs: {}, ` + text + `}` }
	none := func(text string) string { return `validation_context: {` + text + `}` }
	for name, c := range map[string]struct{ common, want string }{
		"nothing":      {``, context + unverified},
		"empty":        {none(``), context + unverified},
		"wrong bounds": {params(`tls_minimum_protocol_version: TLSv1_3, tls_maximum_protocol_version: TLSv1_2`), at + `tls_params.tls_maximum_protocol_version = "TLSv1_2": is below the minimum, which is TLSv1_2 where tls_minimum_protocol_version does not say otherwise`},
		"old":          {params(`tls_maximum_protocol_version: 2`), at + `tls_params.tls_maximum_protocol_version = 2: is below the minimum, which is TLSv1_2 where tls_minimum_protocol_version does not say otherwise`},
		"version":      {params(`tls_minimum_protocol_version: TLS1_3`), at + `tls_params.tls_minimum_protocol_version = "TLS1_3": want one of TLS_AUTO, TLSv1_0, TLSv1_1, TLSv1_2, TLSv1_3; did you mean "TLSv1_3"?`},
		"cipher":       {params(`cipher_suites: ["[ECDHE-RSA-AES128-GCM-SHA256|ECDHE-RSA-AES128-GCM-SHA25]", ALL]`), at + `tls_params.cipher_suites[0] = "ECDHE-RSA-AES128-GCM-SHA25": is no cipher suite of TLS 1.2 or before that Go has; did you mean "ECDHE-RSA-AES128-GCM-SHA256"?` + "\n" + at + `tls_params.cipher_suites[1] = "ALL": is no cipher suite of TLS 1.2 or before that Go has`},
		"of TLS 1.3":   {params(`cipher_suites: [TLS_AES_128_GCM_SHA256]`), at + `tls_params.cipher_suites[0] = "TLS_AES_128_GCM_SHA256": is no cipher suite of TLS 1.2 or before that Go has`},
		"curve":        {params(`ecdh_curves: [P-257]`), at + `tls_params.ecdh_curves[0] = "P-257": is no curve that Go has; did you mean "P-256"?`},
		"signatures":   {params(`signature_algorithms: [rsa_pss_rsae_sha256]`), at + `tls_params.signature_algorithms: is not supported`},
		"compliance":   {params(`compliance_policies: [FIPS_202205]`), at + `tls_params.compliance_policies: is not supported`},
		"providers":    {`validation_context_certificate_provider_instance: {instance_name: a}, ` + roots, at + `validation_context_certificate_provider_instance: is not supported`},
		"provider of the validation": {
			`combined_validation_context: {default_validation_context: {}, validation_context_certificate_provider_instance: {}}`,
			at + "combined_validation_context.validation_context_certificate_provider_instance: is not supported\n" + at + "combined_validation_context: is not supported",
		},
		"hash":              {validation(`verify_certificate_hash: ["00"]`), at + `validation_context.verify_certificate_hash[0] = "00": want 64 hexadecimal digits, with or without colons`},
		"key hash":          {validation(`verify_certificate_spki: ["AA=="]`), at + `validation_context.verify_certificate_spki[0] = "AA==": want the 32 bytes of a SHA-256 in base64`},
		"timestamps":        {validation(`require_signed_certificate_timestamp: true`), at + `validation_context.require_signed_certificate_timestamp = true: is not supported`},
		"list of revoked":   {validation(`crl: {filename: x}`), at + `validation_context.crl: is not supported`},
		"depth":             {validation(`max_verify_depth: 1`), at + `validation_context.max_verify_depth: is not supported`},
		"trust":             {none(`trust_chain_verification: ACCEPT`), at + `validation_context.trust_chain_verification = "ACCEPT": want VERIFY_TRUST_CHAIN or ACCEPT_UNTRUSTED` + "\n" + context + unverified},
		"trust, asked for":  {none(`trust_chain_verification: 0`), context + unverified},
		"names, no roots":   {none(`match_typed_subject_alt_names: [{san_type: DNS, matcher: {exact: a}}]`), at + `validation_context.trusted_ca: required with match_typed_subject_alt_names`},
		"e-mail addresses":  {validation(`match_typed_subject_alt_names: [{san_type: EMAIL, matcher: {exact: a}}]`), at + `validation_context.match_typed_subject_alt_names[0].san_type = "EMAIL": want DNS, URI or IP_ADDRESS`},
		"other cases":       {validation(`match_typed_subject_alt_names: [{san_type: DNS, matcher: {exact: a, ignore_case: true}}]`), at + `validation_context.match_typed_subject_alt_names[0].matcher.ignore_case = true: is not supported`},
		"prefixes of names": {validation(`match_typed_subject_alt_names: [{san_type: DNS, matcher: {prefix: a}}]`), at + `validation_context.match_typed_subject_alt_names[0].matcher: only exact matchers are supported`},
	} {
		t.Run(name, func(t *testing.T) {
			wantError(t, envoyDoc(toCluster, tlsCluster(`common_tls_context: {`+c.common+`}`)), c.want)
		})
	}
	const matcher = "is not supported for the cluster of a management server; want transport_socket"
	wantError(t, envoyDoc(toCluster, `{name: c, `+assigned+`, transport_socket_matches: [], transport_socket_matcher: {}}`),
		"envoy: static_resources.clusters[0].transport_socket_matches: "+matcher+"\nenvoy: static_resources.clusters[0].transport_socket_matcher: "+matcher)
	wantError(t, envoyDoc(`{google_grpc: {target_uri: x, credentials_factory_name: mine, channel_args: {args: {grpc.ssl_target_name_override: {string_value: a}}}}}`, ""),
		"envoy: dynamic_resources.ads_config.grpc_services[0].google_grpc.credentials_factory_name = \"mine\": is not supported; want channel_credentials\n"+
			"envoy: dynamic_resources.ads_config.grpc_services[0].google_grpc.channel_args.args[\"grpc.ssl_target_name_override\"]: is not supported")
	wantError(t, envoyDoc(toCluster, tlsCluster(`auto_sni_san_validation: true`)),
		context+".common_tls_context.validation_context.trusted_ca: required with auto_sni_san_validation")
}

// What a TLS context asks for is what the connection is made with.
//
// spec: H-6 BOOTE-3
func TestEnvoyTLS(t *testing.T) {
	const sum = "0102030405060708091011121314151617181920212223242526272829303132"
	var hash [sha256.Size]byte
	for i := range hash {
		hash[i] = byte((i+1)/10<<4 | (i+1)%10)
	}
	const roots = `validation_context: {system_root_certs: {}, match_typed_subject_alt_names: [{san_type: IP_ADDRESS, matcher: {exact: "::1"}}]}`
	names := []string{"::1"}
	for name, c := range map[string]struct {
		context string
		want    bootstrap.TLS
		opts    []bootstrap.Option
	}{
		"versions": {
			`common_tls_context: {tls_params: {tls_minimum_protocol_version: TLSv1_3}, ` + roots + `}`,
			bootstrap.TLS{MinVersion: tls.VersionTLS13, SubjectAltNames: names}, nil,
		},
		"versions by number": {
			`common_tls_context: {tls_params: {tls_minimum_protocol_version: 1, tls_maximum_protocol_version: 3}, ` + roots + `}`,
			bootstrap.TLS{MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS12, SubjectAltNames: names}, nil,
		},
		"suites": {
			`common_tls_context: {tls_params: {cipher_suites: ["[ECDHE-RSA-AES128-GCM-SHA256|ECDHE-RSA-CHACHA20-POLY1305]:AES128-SHA", TLS_RSA_WITH_AES_256_CBC_SHA], ecdh_curves: [X25519, P-256]}, ` + roots + `}`,
			bootstrap.TLS{
				MaxVersion: tls.VersionTLS12, SubjectAltNames: names, Curves: []tls.CurveID{tls.X25519, tls.CurveP256},
				CipherSuites: []uint16{
					tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
					tls.TLS_RSA_WITH_AES_128_CBC_SHA, tls.TLS_RSA_WITH_AES_256_CBC_SHA,
				},
			}, nil,
		},
		"hashes alone": {
			`common_tls_context: {validation_context: {verify_certificate_hash: ["` + sum + `"]}}`,
			bootstrap.TLS{SkipVerify: true, CertificateHashes: [][sha256.Size]byte{hash}}, nil,
		},
		"hashes and roots": {
			`enforce_rsa_key_usage: true, common_tls_context: {validation_context: {system_root_certs: {}, verify_certificate_spki: ["AQIDBAUGBwgJEBESExQVFhcYGSAhIiMkJSYnKCkwMTI="]}}`,
			bootstrap.TLS{PublicKeyHashes: [][sha256.Size]byte{hash}, EnforceRSAKeyUsage: true}, nil,
		},
		"untrusted": {
			`common_tls_context: {validation_context: {trust_chain_verification: ACCEPT_UNTRUSTED}}`, bootstrap.TLS{SkipVerify: true}, nil,
		},
		"unverified": {`sni: s`, bootstrap.TLS{SkipVerify: true, ServerName: "s"}, []bootstrap.Option{bootstrap.AllowUnverifiedTLS()}},
		"the host of the endpoint": {
			`sni: s, auto_host_sni: true, common_tls_context: {` + roots + `}`, bootstrap.TLS{SubjectAltNames: names}, nil,
		},
		"SNI in place of names": {
			`sni: s, auto_sni_san_validation: true, common_tls_context: {` + roots + `}`, bootstrap.TLS{ServerName: "s"}, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			boot, err := bootstrap.Parse("envoy", []byte(envoyDoc(toCluster, tlsCluster(c.context))), c.opts...)
			if err != nil {
				t.Fatal(err)
			}
			if c.want.ServerName == "" {
				c.want.ServerName = "h"
			}
			if diff := cmp.Diff(&c.want, boot.Servers[0].ChannelCreds.TLS); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if said := len(boot.Notices) > 0; !said && c.want.SkipVerify && c.want.CertificateHashes == nil {
				t.Error("there is no notice that nothing is verified")
			}
		})
	}
}
