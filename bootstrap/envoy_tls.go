package bootstrap

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"net"
	"strings"
)

const (
	rawBufferType   = "envoy.extensions.transport_sockets.raw_buffer.v3.RawBuffer"
	upstreamTLSType = "envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext"
	rawBufferName   = "envoy.transport_sockets.raw_buffer"
)

// transportSocket reads the transport_socket of a cluster; without one it is plaintext.
func (x field) transportSocket(host string) ChannelCreds {
	if !x.object() {
		return Insecure()
	}
	config := x.at("typed_config")
	if !config.present() && x.at("name").val == rawBufferName {
		return Insecure()
	}
	switch typ, ok := config.anyType(); typ {
	case rawBufferType:
		return Insecure()
	case upstreamTLSType:
		return ChannelCreds{Type: credsTLS, TLS: config.upstreamTLS(host)}
	default:
		if ok {
			config.fault("want the type %s or %s", upstreamTLSType, rawBufferType)
		}
	}
	return ChannelCreds{}
}

// refuse makes a fault of each of the fields that is present: to ignore it would be less
// safe than what was asked for, or could not work.
func (x field) refuse(names ...string) {
	for _, name := range names {
		if f := x.at(name); f.present() {
			f.hidden().fault("is not supported")
		}
	}
}

// upstreamTLS reads an UpstreamTlsContext. host is that of the endpoint, if it has one.
func (x field) upstreamTLS(host string) *TLS {
	sni := x.at("sni").str()
	t := &TLS{ServerName: orDefault(sni, host), EnforceRSAKeyUsage: x.at("enforce_rsa_key_usage").boolean()}
	if x.at("auto_host_sni").boolean() && host != "" && net.ParseIP(host) == nil {
		t.ServerName = host
	}
	common := x.at("common_tls_context")
	common.refuse("tls_certificate_provider_instance", "tls_certificate_certificate_provider",
		"tls_certificate_certificate_provider_instance", "custom_tls_certificate_selector", "custom_handshaker",
		"validation_context_certificate_provider", "validation_context_certificate_provider_instance")
	common.at("tls_params").tlsParams(t)
	common.certificates(t)
	common.validationContext(t, x.at("auto_sni_san_validation").boolean())
	return t
}

// certificates reads the client's certificate of a CommonTlsContext.
func (x field) certificates(t *TLS) {
	const inline, sds = "tls_certificates", "tls_certificate_sds_secret_configs"
	name, certs := x.oneOf(inline, sds)
	items := certs.items()
	if len(items) > 1 {
		certs.notice("%d certificates are given; only the first is used", len(items))
	}
	if len(items) == 0 || !items[0].entry() {
		return
	}
	read := func(cert field) {
		cert.refuse("pkcs12", "private_key_provider", "password")
		cert.keyPair(t, "certificate_chain", "private_key")
	}
	if name == inline {
		read(items[0])
	} else if !items[0].givenSecret("tls_certificate", read) {
		x.refuse(sds)
	}
}

// validationContext reads how a CommonTlsContext verifies the server. What the Secret of a
// combined_validation_context says goes before its default_validation_context.
func (x field) validationContext(t *TLS, forSNI bool) {
	const inline, sds, combined = "validation_context", "validation_context_sds_secret_config", "combined_validation_context"
	ok := true
	switch name, given := x.oneOf(inline, sds, combined); name {
	case sds:
		ok = given.givenSecret(inline, func(v field) { v.validation(t, forSNI) })
	case combined:
		given.refuse("validation_context_certificate_provider", "validation_context_certificate_provider_instance")
		ok = given.at(sds).givenSecret(inline, func(v field) { v.validation(t, forSNI, given.at("default_"+inline)) })
	default:
		x.at(inline).validation(t, forSNI)
	}
	if !ok {
		x.refuse(sds, combined)
	}
}

// validation reads a CertificateValidationContext, and those that it is merged into. Without
// a trusted CA Envoy verifies nothing; here that has to be asked for.
func (x field) validation(t *TLS, forSNI bool, into ...field) {
	rooted, untrusted := false, false
	for _, v := range append(into, x) {
		v.refuse("crl", "custom_validator_config", "ca_certificate_provider_instance", "max_verify_depth", "only_verify_leaf_cert_crl")
		if sct := v.at("require_signed_certificate_timestamp"); sct.boolean() {
			sct.fault("is not supported")
		}
		if expired := v.at("allow_expired_certificate"); expired.boolean() {
			expired.notice("is not used; an expired certificate is refused")
		}
		untrusted = v.at("trust_chain_verification").acceptUntrusted() || untrusted
		t.SubjectAltNames = append(t.SubjectAltNames, v.subjectAltNames()...)
		v.pins(t)
		ca, system := v.at("trusted_ca"), v.at("system_root_certs")
		if ca.object() {
			t.CACertificateFile, t.CACertificate = ca.dataSource()
		}
		rooted = system.object() || ca.present() || system.present() || rooted
	}
	if forSNI {
		t.SubjectAltNames = nil // the host name check is what replaces them
	}
	pinned := len(t.CertificateHashes)+len(t.PublicKeyHashes) > 0
	switch ca := x.at("trusted_ca"); {
	case untrusted:
		t.SkipVerify = true
		x.at("trust_chain_verification").notice("is ACCEPT_UNTRUSTED, so who issued the server's certificate is not verified")
	case rooted:
	case len(t.SubjectAltNames) > 0:
		ca.fault("required with match_typed_subject_alt_names")
	case forSNI:
		ca.fault("required with auto_sni_san_validation")
	case pinned, x.doc.opts.unverified:
		t.SkipVerify = true
		if !pinned {
			ca.notice("is not given, so the server's certificate is not verified, as in Envoy")
		}
	default:
		ca.fault("required, or else the server's certificate is not verified; want system_root_certs: {} for the system's roots, " +
			"or trust_chain_verification: ACCEPT_UNTRUSTED where that is meant (bootstrap.AllowUnverifiedTLS allows it too)")
	}
	if !t.SkipVerify && t.SubjectAltNames == nil && !forSNI {
		x.notice("has no match_typed_subject_alt_names, so the server's certificate must be valid for sni or the endpoint's host, which Envoy would not check")
	}
}

// acceptUntrusted reads a TrustChainVerification.
func (x field) acceptUntrusted() bool {
	const verify, accept = "VERIFY_TRUST_CHAIN", "ACCEPT_UNTRUSTED"
	switch x.enum(map[string]string{"0": verify, "1": accept}, verify) {
	case accept:
		return true
	case verify, "":
	default:
		x.fault("want %s or %s", verify, accept)
	}
	return false
}

// pins reads verify_certificate_hash, in hexadecimal with or without colons, and
// verify_certificate_spki, in base64: SHA-256 of the certificate and of its public key.
func (x field) pins(t *TLS) {
	for _, item := range x.at("verify_certificate_hash").items() {
		text := strings.ReplaceAll(item.required(), ":", "")
		if sum, err := hex.DecodeString(text); err != nil || len(sum) != sha256.Size {
			item.fault("want 64 hexadecimal digits, with or without colons")
		} else {
			t.CertificateHashes = append(t.CertificateHashes, [sha256.Size]byte(sum))
		}
	}
	for _, item := range x.at("verify_certificate_spki").items() {
		if sum, err := base64.StdEncoding.DecodeString(item.required()); err != nil || len(sum) != sha256.Size {
			item.fault("want the 32 bytes of a SHA-256 in base64")
		} else {
			t.PublicKeyHashes = append(t.PublicKeyHashes, [sha256.Size]byte(sum))
		}
	}
}

// subjectAltNames reads match_typed_subject_alt_names, and its predecessor
// match_subject_alt_names; only exact DNS names, URIs and IP addresses can be matched.
func (x field) subjectAltNames() []string {
	var out []string
	for _, item := range x.at("match_typed_subject_alt_names").items() {
		if !item.entry() {
			continue
		}
		switch typ := item.at("san_type"); typ.enum(map[string]string{"2": "DNS", "3": "URI", "4": "IP_ADDRESS"}, "UNSPECIFIED") {
		case "DNS", "URI", "IP_ADDRESS", "":
		default:
			typ.fault("want DNS, URI or IP_ADDRESS")
		}
		out = append(out, item.at("matcher").exact())
	}
	for _, item := range x.at("match_subject_alt_names").items() {
		out = append(out, item.exact())
	}
	return out
}

// exact is the text of an exact envoy.type.matcher.v3.StringMatcher.
func (x field) exact() string {
	if !x.present() {
		x.fault("required")
	}
	if !x.object() {
		return ""
	}
	if fold := x.at("ignore_case"); fold.boolean() {
		fold.fault("is not supported")
	}
	exact := x.at("exact")
	if !exact.present() {
		x.fault("only exact matchers are supported")
		return ""
	}
	return exact.required()
}
