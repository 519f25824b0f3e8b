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
	"math/big"
	"net"
	"net/url"
	"os"
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
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("new ca: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "xdswatch test authority"},
		NotBefore:             time.Date(1990, 1, 1, 0, 0, 0, 0, time.UTC),
		NotAfter:              time.Date(2090, 1, 1, 0, 0, 0, 0, time.UTC),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("new ca: %w", err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("new ca: %w", err)
	}
	return &CA{PEM: encodePEM("CERTIFICATE", der), cert: cert, key: key}, nil
}

// Pool holds the authority alone.
func (c *CA) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(c.cert)
	return pool
}

// Issue makes a certificate with a new key.
func (c *CA) Issue(o CertOptions) (*Cert, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("issue certificate: %w", err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("issue certificate: %w", err)
	}
	template, err := o.template()
	if err != nil {
		return nil, fmt.Errorf("issue certificate: %w", err)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, c.cert, key.Public(), c.key)
	if err != nil {
		return nil, fmt.Errorf("issue certificate: %w", err)
	}
	return &Cert{
		CertPEM: encodePEM("CERTIFICATE", der),
		KeyPEM:  encodePEM("PRIVATE KEY", keyDER),
		CAPEM:   c.PEM,
	}, nil
}

func (o CertOptions) template() (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	t := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: o.CommonName},
		DNSNames:     o.DNS,
		IPAddresses:  o.IPs,
		URIs:         o.URIs,
		NotBefore:    o.NotBefore,
		NotAfter:     o.NotAfter,
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if t.NotBefore.IsZero() {
		t.NotBefore = time.Now().Add(-time.Hour)
	}
	if t.NotAfter.IsZero() {
		t.NotAfter = time.Now().Add(24 * time.Hour)
	}
	return t, nil
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
		replaceFile(files.CA, c.CAPEM),
		replaceFile(files.Key, c.KeyPEM),
		replaceFile(files.Cert, c.CertPEM),
	)
	if err != nil {
		return CertFiles{}, fmt.Errorf("write certificate: %w", err)
	}
	return files, nil
}

func replaceFile(path string, content []byte) error {
	if err := os.WriteFile(path+".new", content, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

func encodePEM(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
