package testutil

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"time"
)

// CA is a certificate authority for tests. It is valid from 1990 to 2090, so that it
// serves in fake time too and can issue certificates that have expired. It is immutable
// and safe for concurrent use.
type CA struct {
	// PEM is the authority's own certificate.
	PEM []byte

	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// CertOptions describe a certificate. The zero value is one without names, good for a
// client.
type CertOptions struct {
	CommonName string
	DNS        []string   // DNS names for which a server is good
	IPs        []net.IP   // addresses for which a server is good
	URIs       []*url.URL // such as SPIFFE IDs
	NotBefore  time.Time  // start of validity; an hour ago if zero
	NotAfter   time.Time  // end of validity; in 24 hours if zero
}

// Cert is a certificate with its key, good for servers and clients.
type Cert struct {
	CertPEM []byte
	KeyPEM  []byte
	CAPEM   []byte // the certificate of its authority
}

// CertFiles are the paths of a certificate's files.
type CertFiles struct {
	CA   string // ca.pem
	Cert string // cert.pem
	Key  string // key.pem
}

// NewCA makes an authority with a new key.
func NewCA() (*CA, error) {
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: "xdswatch test authority"},
		NotBefore:             time.Date(1990, 1, 1, 0, 0, 0, 0, time.UTC),
		NotAfter:              time.Date(2090, 1, 1, 0, 0, 0, 0, time.UTC),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	der, key, err := signed(template, template, nil)
	if err != nil {
		return nil, fmt.Errorf("new ca: %w", err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("new ca: %w", err)
	}
	return &CA{PEM: encodePEM("CERTIFICATE", der), cert: cert, key: key}, nil
}

// signed makes a certificate for a new key, signed by another key or, if that is nil, by itself.
func signed(template, parent *x509.Certificate, by *ecdsa.PrivateKey) (der []byte, key *ecdsa.PrivateKey, err error) {
	if key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return nil, nil, err
	}
	if by == nil {
		by = key
	}
	der, err = x509.CreateCertificate(rand.Reader, template, parent, key.Public(), by)
	return der, key, err
}

// Pool holds the authority alone.
func (c *CA) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(c.cert)
	return pool
}

// Issue makes a certificate with a new key.
func (c *CA) Issue(o CertOptions) (*Cert, error) {
	der, key, err := signed(o.template(), c.cert, c.key)
	if err != nil {
		return nil, fmt.Errorf("issue certificate: %w", err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("issue certificate: %w", err)
	}
	return &Cert{
		CertPEM: encodePEM("CERTIFICATE", der),
		KeyPEM:  encodePEM("PRIVATE KEY", keyDER),
		CAPEM:   c.PEM,
	}, nil
}

func (o CertOptions) template() *x509.Certificate {
	t := &x509.Certificate{
		Subject:     pkix.Name{CommonName: o.CommonName},
		NotBefore:   o.NotBefore,
		NotAfter:    o.NotAfter,
		DNSNames:    o.DNS,
		IPAddresses: o.IPs,
		URIs:        o.URIs,
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if t.NotBefore.IsZero() {
		t.NotBefore = time.Now().Add(-time.Hour)
	}
	if t.NotAfter.IsZero() {
		t.NotAfter = time.Now().Add(24 * time.Hour)
	}
	return t
}

// TLS is the certificate as crypto/tls wants it.
func (c *Cert) TLS() (tls.Certificate, error) { return tls.X509KeyPair(c.CertPEM, c.KeyPEM) }

// WriteFiles writes ca.pem, cert.pem and key.pem into a directory. Each file is renamed
// into place, so that a reader sees the old or the new one whole; it may see a new
// certificate beside an old key for a moment, as with real rotations.
func (c *Cert) WriteFiles(dir string) (CertFiles, error) {
	files := CertFiles{
		CA:   filepath.Join(dir, "ca.pem"),
		Cert: filepath.Join(dir, "cert.pem"),
		Key:  filepath.Join(dir, "key.pem"),
	}
	err := errors.Join(
		placeFile(files.CA, c.CAPEM, 0o600),
		placeFile(files.Key, c.KeyPEM, 0o600),
		placeFile(files.Cert, c.CertPEM, 0o600),
	)
	if err != nil {
		return CertFiles{}, fmt.Errorf("write certificate: %w", err)
	}
	return files, nil
}

func encodePEM(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
