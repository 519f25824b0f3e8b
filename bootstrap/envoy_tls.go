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
	t := &TLS{ServerName: orDefault(sni, host)}
	common := x.at("common_tls_context")
	common.refuse("tls_certificate_provider_instance", "custom_tls_certificate_selector", "custom_handshaker")
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
	} else if !items[0].fileSecret("tls_certificate", read) {
		x.refuse(sds)
	}
}

// validationContext reads how a CommonTlsContext verifies the server. What the Secret of a
// combined_validation_context says goes before its default_validation_context.
func (x field) validationContext(t *TLS, hostChecked bool) {
	const inline, sds, combined = "validation_context", "validation_context_sds_secret_config", "combined_validation_context"
	ok := true
	switch name, given := x.oneOf(inline, sds, combined); name {
	case sds:
		ok = given.fileSecret(inline, func(v field) { v.validation(t, hostChecked) })
	case combined:
		ok = given.at(sds).fileSecret(inline, func(v field) { v.validation(t, hostChecked, given.at("default_"+inline)) })
	default:
		x.at(inline).validation(t, hostChecked)
	}
	if !ok {
		x.refuse(sds, combined)
	}
}

// validation reads a CertificateValidationContext, and those that it is merged into. Without
// a trusted CA Envoy verifies nothing, and so does the client, saying so.
func (x field) validation(t *TLS, hostChecked bool, into ...field) {
	rooted := false
	for _, v := range append(into, x) {
		v.refuse("verify_certificate_spki", "verify_certificate_hash", "crl", "custom_validator_config",
			"require_signed_certificate_timestamp", "ca_certificate_provider_instance")
		t.SubjectAltNames = append(t.SubjectAltNames, v.subjectAltNames()...)
		ca, system := v.at("trusted_ca"), v.at("system_root_certs")
		if ca.object() {
			t.CACertificateFile, t.CACertificate = ca.dataSource()
		}
		rooted = system.object() || ca.present() || system.present() || rooted
	}
	switch ca := x.at("trusted_ca"); {
	case rooted:
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
