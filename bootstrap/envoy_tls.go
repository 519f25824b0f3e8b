package bootstrap

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
	switch typ, _ := config.anyType(); typ {
	case rawBufferType:
		return Insecure()
	case upstreamTLSType:
		return ChannelCreds{Type: credsTLS, TLS: config.upstreamTLS(host)}
	default:
		config.fault("want the type %s or %s", upstreamTLSType, rawBufferType)
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
	t := &TLS{ServerName: orDefault(sni, host)}
	common := x.at("common_tls_context")
	common.object()
	common.refuse("tls_certificate_sds_secret_configs", "tls_certificate_provider_instance",
		"validation_context_sds_secret_config", "combined_validation_context",
		"custom_tls_certificate_selector", "custom_handshaker")

	certs := common.at("tls_certificates")
	items := certs.items()
	if len(items) > 1 {
		certs.notice("%d certificates are given; only the first is used", len(items))
	}
	if len(items) > 0 && items[0].entry() {
		items[0].refuse("pkcs12", "private_key_provider", "password")
		items[0].keyPair(t, "certificate_chain", "private_key")
	}
	common.at("validation_context").validation(t, x.at("auto_sni_san_validation").boolean())
	return t
}

// validation reads a CertificateValidationContext. Without a trusted CA Envoy verifies
// nothing, and so does the client, saying so.
func (x field) validation(t *TLS, hostChecked bool) {
	x.object()
	x.refuse("verify_certificate_spki", "verify_certificate_hash", "crl", "custom_validator_config",
		"require_signed_certificate_timestamp", "ca_certificate_provider_instance")
	t.SubjectAltNames = x.subjectAltNames()
	ca, system := x.at("trusted_ca"), x.at("system_root_certs")
	switch {
	case ca.object():
		t.CACertificateFile, t.CACertificate = ca.dataSource()
	case system.object() || ca.present() || system.present():
	case t.SubjectAltNames != nil:
		ca.fault("required with match_typed_subject_alt_names")
	default:
		t.SkipVerify = true
		ca.notice("is not given, so the server's certificate is not verified, as in Envoy")
	}
	if !t.SkipVerify && t.SubjectAltNames == nil && !hostChecked {
		x.notice("has no match_typed_subject_alt_names, so the server's certificate must be valid for sni or the endpoint's host, which Envoy would not check")
	}
}

// subjectAltNames reads match_typed_subject_alt_names, and its predecessor
// match_subject_alt_names; only exact DNS names and URIs can be matched.
func (x field) subjectAltNames() []string {
	var out []string
	for _, item := range x.at("match_typed_subject_alt_names").items() {
		if !item.entry() {
			continue
		}
		switch typ := item.at("san_type"); typ.enum(map[string]string{"2": "DNS", "3": "URI"}, "UNSPECIFIED") {
		case "DNS", "URI", "":
		default:
			typ.fault("want DNS or URI")
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
	exact := x.at("exact")
	if !exact.present() {
		x.fault("only exact matchers are supported")
		return ""
	}
	return exact.required()
}
