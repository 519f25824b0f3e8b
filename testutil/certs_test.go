package testutil

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func issue(t *testing.T, o CertOptions) (*CA, *Cert) {
	t.Helper()
	ca, err := NewCA()
	must(t, err)
	cert, err := ca.Issue(o)
	must(t, err)
	return ca, cert
}

// handshake gives the client's and the server's error.
func handshake(t *testing.T, client, server *tls.Config) (clientErr, serverErr error) {
	t.Helper()
	c, s := net.Pipe()
	defer c.Close()
	done := make(chan error, 1)
	go func() {
		defer s.Close()
		done <- tls.Server(s, server).Handshake()
	}()
	conn := tls.Client(c, client)
	if clientErr = conn.Handshake(); clientErr == nil {
		// The server's verdict on the client's certificate comes with the first read.
		_, clientErr = conn.Read(make([]byte, 1))
	}
	c.Close()
	return clientErr, <-done
}

func TestCertificates(t *testing.T) {
	now := time.Now()
	tests := []struct {
		name    string
		options CertOptions
		server  string
		reason  x509.InvalidReason // of a CertificateInvalidError
		good    bool
	}{
		{name: "dns", options: CertOptions{DNS: []string{"xds.test"}}, server: "xds.test", good: true},
		{name: "ip", options: CertOptions{IPs: []net.IP{net.IPv4(127, 0, 0, 1)}}, server: "127.0.0.1", good: true},
		{name: "other name", options: CertOptions{DNS: []string{"xds.test"}}, server: "other.test"},
		{
			name:    "expired",
			options: CertOptions{DNS: []string{"xds.test"}, NotBefore: now.Add(-2 * time.Hour), NotAfter: now.Add(-time.Hour)},
			server:  "xds.test", reason: x509.Expired,
		},
		{
			name:    "not yet valid",
			options: CertOptions{DNS: []string{"xds.test"}, NotBefore: now.Add(time.Hour)},
			server:  "xds.test", reason: x509.Expired,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ca, cert := issue(t, tt.options)
			pair, err := cert.TLS()
			must(t, err)
			_, err = pair.Leaf.Verify(x509.VerifyOptions{Roots: ca.Pool(), DNSName: tt.server})
			if (err == nil) != tt.good {
				t.Fatalf("verified with %v", err)
			}
			if invalid, ok := errors.AsType[x509.CertificateInvalidError](err); ok && invalid.Reason != tt.reason {
				t.Errorf("rejected for reason %v, want %v", invalid.Reason, tt.reason)
			}
		})
	}
}

func TestMutualTLS(t *testing.T) {
	ca, server := issue(t, CertOptions{DNS: []string{"xds.test"}})
	spiffe := &url.URL{Scheme: "spiffe", Host: "test", Path: "/client"}
	client, err := ca.Issue(CertOptions{CommonName: "client", URIs: []*url.URL{spiffe}})
	must(t, err)
	_, stranger := issue(t, CertOptions{CommonName: "client"})

	serverPair, err := server.TLS()
	must(t, err)
	var seen *x509.Certificate
	config := &tls.Config{
		Certificates: []tls.Certificate{serverPair},
		ClientCAs:    ca.Pool(),
		ClientAuth:   tls.RequireAndVerifyClientCert,
		VerifyConnection: func(s tls.ConnectionState) error {
			seen = s.PeerCertificates[0]
			return nil
		},
	}
	for _, tt := range []struct {
		cert *Cert
		good bool
	}{{client, true}, {stranger, false}} {
		pair, err := tt.cert.TLS()
		must(t, err)
		_, err = handshake(t, &tls.Config{
			RootCAs: ca.Pool(), ServerName: "xds.test", Certificates: []tls.Certificate{pair},
		}, config)
		if (err == nil) != tt.good {
			t.Errorf("good %v: the server said %v", tt.good, err)
		}
	}
	if seen.Subject.CommonName != "client" || seen.URIs[0].String() != spiffe.String() {
		t.Errorf("the server saw %v %v", seen.Subject, seen.URIs)
	}
}

func TestWriteFiles(t *testing.T) {
	dir := t.TempDir()
	ca, first := issue(t, CertOptions{DNS: []string{"xds.test"}})
	second, err := ca.Issue(CertOptions{DNS: []string{"xds.test"}})
	must(t, err)
	for _, cert := range []*Cert{first, second} {
		files, err := cert.WriteFiles(dir)
		must(t, err)
		pair, err := tls.LoadX509KeyPair(files.Cert, files.Key)
		must(t, err)
		want, err := cert.TLS()
		must(t, err)
		if !pair.Leaf.Equal(want.Leaf) {
			t.Error("the files hold another certificate")
		}
		pem, err := os.ReadFile(files.CA)
		must(t, err)
		if string(pem) != string(ca.PEM) {
			t.Error("ca.pem holds another authority")
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 3 {
		t.Errorf("directory holds %v, %v; want three files", entries, err)
	}
	if _, err := first.WriteFiles(filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("write into a directory that does not exist: %v", err)
	}
}
