// Package tlscreds is the "tls" channel credential of a bootstrap (gRFC A65): TLS and
// mutual TLS whose certificates may be replaced on disk at any time. What was read last
// stays in use while the files are missing, broken or half replaced.
package tlscreds

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/xdswatch/xdswatch/bootstrap"
	"google.golang.org/grpc/credentials"
)

// New makes a client's transport credential of c. It reads no file: that is done by each
// handshake, or by each that finds what was read older than c.RefreshInterval. The
// credential is safe for concurrent use, and its clones share what was read.
func New(c bootstrap.TLS) *Creds {
	return &Creds{material: newMaterial(c), serverName: c.ServerName}
}

// Creds hands the handshake to gRPC's own TLS credential, made anew for each with the
// certificates of the moment.
type Creds struct {
	*material
	serverName string
}

// ClientHandshake verifies and sends as SNI the configured server name, else the host of
// the authority. Its errors name the file at fault, also where the files of the last good
// state were used and the peer refused them.
func (c *Creds) ClientHandshake(ctx context.Context, authority string, conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	if c.serverName != "" {
		authority = c.serverName
	}
	config, stale, err := c.material.config(ctx)
	if err != nil {
		return nil, nil, err
	}
	refused := func(err error) error { return c.material.refused(err, stale) }
	secure, info, err := credentials.NewTLS(config).ClientHandshake(ctx, authority, conn)
	if err != nil {
		return nil, nil, refused(err)
	}
	return &watchedConn{Conn: secure, refused: refused}, info, nil
}

// ServerHandshake returns an error: a management server's client does not serve.
func (c *Creds) ServerHandshake(net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, errors.New("the tls channel credential is for clients only")
}

// Info leaves the server name empty: gRPC would make it the :authority header, which
// Envoy's sni is not.
func (c *Creds) Info() credentials.ProtocolInfo {
	return credentials.ProtocolInfo{SecurityProtocol: "tls"}
}

func (c *Creds) Clone() credentials.TransportCredentials {
	clone := *c
	return &clone
}

// OverrideServerName is deprecated in gRPC and is here for the interface.
func (c *Creds) OverrideServerName(name string) error {
	c.serverName = name
	return nil
}

// clientConfig is the TLS side of c with the given certificates; a nil pair or nil roots
// stand for no client certificate and the system's roots.
func clientConfig(c bootstrap.TLS, pair *tls.Certificate, roots *x509.CertPool) *tls.Config {
	config := &tls.Config{
		MinVersion: cmp.Or(c.MinVersion, tls.VersionTLS12), MaxVersion: c.MaxVersion,
		CipherSuites: c.CipherSuites, CurvePreferences: c.Curves, RootCAs: roots,
		// Of the host name crypto/tls knows no part alone.
		InsecureSkipVerify: c.SkipVerify || len(c.SubjectAltNames) > 0,
		VerifyConnection:   func(s tls.ConnectionState) error { return verify(c, roots, s) },
	}
	if pair != nil {
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return pair, nil
		}
	}
	return config
}

// verify does what crypto/tls has not done yet: the chain, where the host name must not be
// checked, the names that were asked for, and what else Envoy verifies.
func verify(c bootstrap.TLS, roots *x509.CertPool, s tls.ConnectionState) error {
	certs := s.PeerCertificates
	if len(certs) == 0 {
		return errors.New("the server sent no certificate")
	}
	leaf := certs[0]
	if len(c.SubjectAltNames) > 0 && !c.SkipVerify {
		if err := verifyChain(leaf, certs[1:], roots); err != nil {
			return &tls.CertificateVerificationError{UnverifiedCertificates: certs, Err: err}
		}
	}
	if len(c.SubjectAltNames) > 0 && !slices.ContainsFunc(c.SubjectAltNames, func(san string) bool { return holds(leaf, san) }) {
		return fmt.Errorf("the server's certificate is for %q, none of %q", namesOf(leaf), c.SubjectAltNames)
	}
	if !pinned(c, leaf) {
		return errors.New("the server's certificate is none of those that the configuration has hashes of")
	}
	if c.EnforceRSAKeyUsage && !usable(leaf, s.CipherSuite) {
		return errors.New("the key usage of the server's RSA certificate does not allow what it is used for")
	}
	return nil
}

// pinned is whether a certificate has one of the hashes that were asked for, if any were.
func pinned(c bootstrap.TLS, cert *x509.Certificate) bool {
	return len(c.CertificateHashes)+len(c.PublicKeyHashes) == 0 ||
		slices.Contains(c.CertificateHashes, sha256.Sum256(cert.Raw)) ||
		slices.Contains(c.PublicKeyHashes, sha256.Sum256(cert.RawSubjectPublicKeyInfo))
}

// usable is whether an RSA key may sign the handshake, or in suites without such a signature
// decrypt the client's secret. A certificate that does not say is usable.
func usable(cert *x509.Certificate, suite uint16) bool {
	need := x509.KeyUsageDigitalSignature
	if strings.HasPrefix(tls.CipherSuiteName(suite), "TLS_RSA_") {
		need = x509.KeyUsageKeyEncipherment
	}
	return cert.PublicKeyAlgorithm != x509.RSA || cert.KeyUsage == 0 || cert.KeyUsage&need != 0
}

func verifyChain(leaf *x509.Certificate, others []*x509.Certificate, roots *x509.CertPool) error {
	opts := x509.VerifyOptions{Roots: roots, Intermediates: x509.NewCertPool()}
	for _, cert := range others {
		opts.Intermediates.AddCert(cert)
	}
	_, err := leaf.Verify(opts)
	return err
}

// holds reports whether the certificate is for san: a URI to the letter; a DNS name as a
// host name would be, so that a certificate for "*.example.com" holds "a.example.com", as
// Envoy's exact matcher has it; or an IP address.
func holds(cert *x509.Certificate, san string) bool {
	for _, u := range cert.URIs {
		if u.String() == san {
			return true
		}
	}
	return cert.VerifyHostname(san) == nil
}

func namesOf(cert *x509.Certificate) []string {
	names := slices.Clone(cert.DNSNames)
	for _, u := range cert.URIs {
		names = append(names, u.String())
	}
	for _, ip := range cert.IPAddresses {
		names = append(names, ip.String())
	}
	return names
}
