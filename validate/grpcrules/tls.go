package grpcrules

//lint:file-ignore SA1019 gRPC reads deprecated fields too

import (
	"fmt"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	proxyv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/http_11_proxy/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
)

// tlsSocket is the name that a transport socket has to have.
const tlsSocket = "envoy.transport_sockets.tls"

// maxSNI is how long an SNI may be, in bytes.
const maxSNI = 255

// upstreamTLS judges the transport socket of a cluster (gRFC A29, A82, A86, A101).
func (j *judge) upstreamTLS(ts *corev3.TransportSocket) {
	if ts == nil {
		return
	}
	path, proxy := "transportSocket", &proxyv3.Http11ProxyUpstreamTransport{}
	if j.HTTPConnect && isA(ts.GetTypedConfig(), proxy) {
		if !j.read(path+".typedConfig", ts.GetTypedConfig(), proxy) || proxy.GetTransportSocket() == nil {
			return
		}
		path, ts = path+".typedConfig.transportSocket", proxy.GetTransportSocket()
	}
	c := &tlsv3.UpstreamTlsContext{}
	if !j.socket(path, ts, isA(ts.GetTypedConfig(), c)) || !j.read(path+".typedConfig", ts.GetTypedConfig(), c) {
		return
	}
	path += ".typedConfig"
	if c.GetCommonTlsContext() == nil {
		j.refuses(RuleTLSSocket, path+".commonTlsContext", "there is no CommonTlsContext")
		return
	}
	s := j.commonTLS(path+".commonTlsContext", c.GetCommonTlsContext(), false)
	j.providers(path+".commonTlsContext", s)
	if j.SNI && len(c.GetSni()) > maxSNI {
		j.refuses(RuleTLSSNI, path+".sni", "the SNI is longer than 255 bytes")
	}
}

// downstreamTLS judges the transport socket of a filter chain, and returns the providers that it names.
func (j *judge) downstreamTLS(path string, ts *corev3.TransportSocket) (s security) {
	if ts == nil {
		return s
	}
	c := &tlsv3.DownstreamTlsContext{}
	if !j.socket(path, ts, isA(ts.GetTypedConfig(), c)) || !j.read(path+".typedConfig", ts.GetTypedConfig(), c) {
		return s
	}
	path += ".typedConfig"
	if c.GetRequireSni().GetValue() {
		j.refuses(RuleTLSDownstream, path+".requireSni", "require_sni is set")
	}
	if c.GetOcspStaplePolicy() != tlsv3.DownstreamTlsContext_LENIENT_STAPLING {
		j.refuses(RuleTLSDownstream, path+".ocspStaplePolicy", "the policy is not LENIENT_STAPLING")
	}
	if c.GetCommonTlsContext() == nil {
		j.refuses(RuleTLSSocket, path+".commonTlsContext", "there is no CommonTlsContext")
		return s
	}
	s = j.commonTLS(path+".commonTlsContext", c.GetCommonTlsContext(), true)
	if c.GetRequireClientCertificate().GetValue() && s.root == "" {
		j.refuses(RuleTLSDownstream, path+".requireClientCertificate", "client certificates are required, and there is no provider of their CA")
	}
	return s
}

func (j *judge) socket(path string, ts *corev3.TransportSocket, right bool) bool {
	if ts.GetName() != tlsSocket {
		j.refuses(RuleTLSSocket, path+".name", "the name is not "+tlsSocket)
	}
	if !right {
		j.refuses(RuleTLSSocket, path+".typedConfig", "it is not the TLS context of this side")
	}
	return right
}

// providers judges whether providers of certificates are in the bootstrap.
func (j *judge) providers(path string, s security) {
	for _, name := range []string{s.identity, s.root} {
		if j.Providers != nil && name != "" && !j.Providers[name] {
			j.refuses(RuleTLSBootstrap, path, fmt.Sprintf("the certificate provider %q is not in the bootstrap", name))
		}
	}
}

// security is what gRPC takes from a TLS context.
type security struct {
	identity, identityCert, root, rootCert string
	systemRoots, matchers                  bool
}

// fault is a finding that counts only if nothing else helps.
type fault struct {
	rule          Rule
	path, message string
}

// commonTLS judges what both sides have. What the new fields do not say, or say wrongly, the old ones
// may say (gRFC A29).
func (j *judge) commonTLS(path string, c *tlsv3.CommonTlsContext, server bool) security {
	if c.GetTlsParams() != nil {
		j.refuses(RuleTLSFields, path+".tlsParams", "the field is not supported")
	}
	if c.GetCustomHandshaker() != nil {
		j.refuses(RuleTLSFields, path+".customHandshaker", "the field is not supported")
	}
	s, first := j.newFields(path, c, server)
	if first != nil || s == (security{}) {
		old, second := j.oldFields(path, c, server)
		if second != nil {
			if first == nil {
				first = second
			}
			j.refuses(first.rule, first.path, first.message)
			return security{}
		}
		s = old
	}
	switch {
	case server && s.identity == "":
		message := "there is no provider of the server's certificate"
		if first != nil {
			message += ": " + first.message
		}
		j.refuses(RuleTLSProvider, path, message)
	case !server && s.root == "" && !s.systemRoots:
		message := "there is no provider of the CA"
		if first != nil {
			message += ": " + first.message
		}
		j.refuses(RuleTLSProvider, path, message)
	}
	return s
}

func (j *judge) newFields(path string, c *tlsv3.CommonTlsContext, server bool) (s security, _ *fault) {
	identity := c.GetTlsCertificateProviderInstance()
	if identity == nil && (len(c.GetTlsCertificates()) > 0 || len(c.GetTlsCertificateSdsSecretConfigs()) > 0) {
		return s, &fault{RuleTLSProvider, path, "certificates are given, and gRPC takes them from a provider only"}
	}
	s.identity, s.identityCert = identity.GetInstanceName(), identity.GetCertificateName()
	var v *tlsv3.CertificateValidationContext
	switch t := c.GetValidationContextType().(type) {
	case nil:
		return s, nil
	case *tlsv3.CommonTlsContext_ValidationContext:
		v, path = t.ValidationContext, path+".validationContext"
	case *tlsv3.CommonTlsContext_CombinedValidationContext:
		v, path = t.CombinedValidationContext.GetDefaultValidationContext(), path+".combinedValidationContext.defaultValidationContext"
	default:
		return s, &fault{RuleTLSProvider, path, "the validation context is of a kind that gRPC does not know"}
	}
	ca := v.GetCaCertificateProviderInstance()
	system := ca == nil && j.SystemRoots && v.GetSystemRootCerts() != nil
	switch {
	case system && server:
		return s, &fault{RuleTLSProvider, path + ".systemRootCerts", "a server cannot use the system's roots"}
	case len(v.GetVerifyCertificateSpki()) > 0:
		return s, &fault{RuleTLSFields, path + ".verifyCertificateSpki", "the field is not supported"}
	case len(v.GetVerifyCertificateHash()) > 0:
		return s, &fault{RuleTLSFields, path + ".verifyCertificateHash", "the field is not supported"}
	case v.GetRequireSignedCertificateTimestamp().GetValue():
		return s, &fault{RuleTLSFields, path + ".requireSignedCertificateTimestamp", "the field is not supported"}
	case v.GetCrl() != nil:
		return s, &fault{RuleTLSFields, path + ".crl", "the field is not supported"}
	case v.GetCustomValidatorConfig() != nil:
		return s, &fault{RuleTLSFields, path + ".customValidatorConfig", "the field is not supported"}
	case ca == nil && !system:
		return s, &fault{RuleTLSProvider, path, "there is no ca_certificate_provider_instance"}
	}
	s.root, s.rootCert, s.systemRoots = ca.GetInstanceName(), ca.GetCertificateName(), system
	f := matchersFault(path, v.GetMatchSubjectAltNames(), server)
	s.matchers = len(v.GetMatchSubjectAltNames()) > 0
	return s, f
}

func (j *judge) oldFields(path string, c *tlsv3.CommonTlsContext, server bool) (s security, _ *fault) {
	identity := c.GetTlsCertificateCertificateProviderInstance()
	s.identity, s.identityCert = identity.GetInstanceName(), identity.GetCertificateName()
	root := func(p *tlsv3.CommonTlsContext_CertificateProviderInstance) {
		s.root, s.rootCert = p.GetInstanceName(), p.GetCertificateName()
	}
	switch t := c.GetValidationContextType().(type) {
	case nil:
	case *tlsv3.CommonTlsContext_CombinedValidationContext:
		root(t.CombinedValidationContext.GetValidationContextCertificateProviderInstance())
		matchers := t.CombinedValidationContext.GetDefaultValidationContext().GetMatchSubjectAltNames()
		return s, matchersFault(path+".combinedValidationContext.defaultValidationContext", matchers, server)
	case *tlsv3.CommonTlsContext_ValidationContextCertificateProviderInstance:
		root(t.ValidationContextCertificateProviderInstance)
	default:
		return s, &fault{RuleTLSProvider, path, "the validation context names no certificate provider"}
	}
	return s, nil
}

// matchersFault judges matchers of names in certificates.
func matchersFault(path string, ms []*matcherv3.StringMatcher, server bool) *fault {
	for i, m := range ms {
		var j judge
		if j.stringMatcher(at(path, "matchSubjectAltNames", i), m); len(j.findings) > 0 {
			return &fault{j.findings[0].Rule, j.findings[0].Path, j.findings[0].Message}
		}
	}
	if server && len(ms) > 0 {
		return &fault{RuleTLSFields, path + ".matchSubjectAltNames", "a server does not match names in certificates"}
	}
	return nil
}
