package bootstrap

import (
	"crypto/tls"
	"maps"
	"slices"
	"strings"
)

// tlsVersions are the names and numbers of TlsParameters.TlsProtocol; TLS_AUTO is 0.
var (
	tlsVersionNumbers = map[string]string{"0": "TLS_AUTO", "1": "TLSv1_0", "2": "TLSv1_1", "3": "TLSv1_2", "4": "TLSv1_3"}
	tlsVersions       = map[string]uint16{
		"TLS_AUTO": 0, "TLSv1_0": tls.VersionTLS10, "TLSv1_1": tls.VersionTLS11,
		"TLSv1_2": tls.VersionTLS12, "TLSv1_3": tls.VersionTLS13,
	}
)

// curves are those that Go has, by the names that Envoy gives them.
var curves = map[string]tls.CurveID{
	"X25519": tls.X25519, "P-256": tls.CurveP256, "P-384": tls.CurveP384, "P-521": tls.CurveP521,
	"X25519MLKEM768": tls.X25519MLKEM768,
}

// opensslCiphers are the suites of TLS 1.2 and before that Go has, by the names that Envoy
// gives them; it takes those of the registry too.
var opensslCiphers = map[string]uint16{
	"ECDHE-ECDSA-AES128-GCM-SHA256": tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
	"ECDHE-RSA-AES128-GCM-SHA256":   tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
	"ECDHE-ECDSA-AES256-GCM-SHA384": tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
	"ECDHE-RSA-AES256-GCM-SHA384":   tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
	"ECDHE-ECDSA-CHACHA20-POLY1305": tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
	"ECDHE-RSA-CHACHA20-POLY1305":   tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
	"ECDHE-ECDSA-AES128-SHA":        tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA,
	"ECDHE-RSA-AES128-SHA":          tls.TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA,
	"ECDHE-ECDSA-AES256-SHA":        tls.TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA,
	"ECDHE-RSA-AES256-SHA":          tls.TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA,
	"ECDHE-ECDSA-AES128-SHA256":     tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256,
	"ECDHE-RSA-AES128-SHA256":       tls.TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256,
	"AES128-GCM-SHA256":             tls.TLS_RSA_WITH_AES_128_GCM_SHA256,
	"AES256-GCM-SHA384":             tls.TLS_RSA_WITH_AES_256_GCM_SHA384,
	"AES128-SHA":                    tls.TLS_RSA_WITH_AES_128_CBC_SHA,
	"AES256-SHA":                    tls.TLS_RSA_WITH_AES_256_CBC_SHA,
}

// ciphers are the suites that can be chosen, by all their names.
func ciphers() map[string]uint16 {
	out := maps.Clone(opensslCiphers)
	for _, s := range slices.Concat(tls.CipherSuites(), tls.InsecureCipherSuites()) {
		if !onlyTLS13(s.SupportedVersions) {
			out[s.Name] = s.ID
		}
	}
	return out
}

func onlyTLS13(versions []uint16) bool { return slices.Equal(versions, []uint16{tls.VersionTLS13}) }

// tlsParams reads a TlsParameters: what cannot be kept to is a fault.
func (x field) tlsParams(t *TLS) {
	if !x.object() {
		return
	}
	x.refuse("signature_algorithms", "compliance_policies")
	least, most := x.at("tls_minimum_protocol_version"), x.at("tls_maximum_protocol_version")
	t.MinVersion, t.MaxVersion = least.tlsVersion(), most.tlsVersion()
	suites := x.at("cipher_suites")
	t.CipherSuites = suites.cipherSuites()
	for _, item := range x.at("ecdh_curves").items() {
		if id, ok := oneOfTable(item, "curve", curves); ok {
			t.Curves = append(t.Curves, id)
		}
	}
	if t.CipherSuites != nil && t.MaxVersion == 0 && t.MinVersion < tls.VersionTLS13 {
		t.MaxVersion = tls.VersionTLS12 // Envoy's default, with which the suites are what is used
	}
	if low := max(t.MinVersion, 0); t.MaxVersion != 0 && (low == 0 && t.MaxVersion < tls.VersionTLS12 || t.MaxVersion < low) {
		most.fault("is below the minimum, which is TLSv1_2 where tls_minimum_protocol_version does not say otherwise")
	}
}

func (x field) tlsVersion() uint16 {
	name := x.enum(tlsVersionNumbers, "TLS_AUTO")
	version, ok := tlsVersions[name]
	if !ok && name != "" {
		x.fault("want one of TLS_AUTO, TLSv1_0, TLSv1_1, TLSv1_2, TLSv1_3%s", didYouMean(name, slices.Collect(maps.Keys(tlsVersions))))
	}
	return version
}

// cipherSuites reads a list of suites, of which an entry may be several, with ':' between
// them, or with '|' in brackets where they are as good as one another. The order is Go's own.
func (x field) cipherSuites() []uint16 {
	var out []uint16
	known := ciphers()
	for _, item := range x.items() {
		for part := range strings.SplitSeq(item.required(), ":") {
			if inner, ok := strings.CutPrefix(part, "["); ok && strings.HasSuffix(inner, "]") {
				part = strings.TrimSuffix(inner, "]")
			}
			for name := range strings.SplitSeq(part, "|") {
				single := item
				single.val = name
				if id, ok := oneOfTable(single, "cipher suite of TLS 1.2 or before", known); ok {
					out = append(out, id)
				}
			}
		}
	}
	return out
}

// oneOfTable finds the value of a name.
func oneOfTable[T any](x field, what string, table map[string]T) (T, bool) {
	name := x.required()
	v, ok := table[name]
	if !ok && name != "" {
		x.fault("is no %s that Go has%s", what, didYouMean(name, slices.Collect(maps.Keys(table))))
	}
	return v, ok
}
