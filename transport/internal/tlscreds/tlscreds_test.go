package tlscreds_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/testutil"
	"github.com/xdswatch/xdswatch/transport/internal/tlscreds"
	"google.golang.org/grpc/credentials"
)

func newCA(t testing.TB) *testutil.CA {
	t.Helper()
	ca, err := testutil.NewCA()
	if err != nil {
		t.Fatal(err)
	}
	return ca
}

func issue(t testing.TB, ca *testutil.CA, o testutil.CertOptions) *testutil.Cert {
	t.Helper()
	cert, err := ca.Issue(o)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

func write(t testing.TB, path string, data []byte) string {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// server answers handshakes with a certificate. It asks for a client's where clients is
// set, and tells the common name that it saw.
type server struct {
	cert    *testutil.Cert
	clients *x509.CertPool
	plain   bool   // offers no ALPN
	version uint16 // the newest
	least   uint16
	suites  []uint16
	curves  []tls.CurveID
}

func (s server) config(t testing.TB) *tls.Config {
	cert, err := s.cert.TLS()
	if err != nil {
		t.Fatal(err)
	}
	c := &tls.Config{Certificates: []tls.Certificate{cert}, NextProtos: []string{"h2"}, MaxVersion: s.version}
	c.CipherSuites, c.CurvePreferences = s.suites, s.curves
	if c.MinVersion = s.least; s.version != 0 {
		c.MinVersion = tls.VersionTLS10
	}
	if s.plain {
		c.NextProtos = nil
	}
	if s.clients != nil {
		c.ClientAuth, c.ClientCAs = tls.RequireAndVerifyClientCert, s.clients
	}
	return c
}

// shake makes one handshake over loopback and returns what each side saw of it.
func shake(t testing.TB, creds credentials.TransportCredentials, authority string, s server) (client error, seen tls.ConnectionState, serverErr error) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var wg sync.WaitGroup
	wg.Go(func() {
		raw, err := l.Accept()
		if err != nil {
			serverErr = err
			return
		}
		defer raw.Close()
		conn := tls.Server(raw, s.config(t))
		serverErr = conn.Handshake()
		seen = conn.ConnectionState()
	})
	raw, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	conn, info, client := creds.ClientHandshake(ctx, authority, raw)
	if client == nil {
		defer conn.Close()
		if level := info.(credentials.TLSInfo).SecurityLevel; level != credentials.PrivacyAndIntegrity {
			t.Errorf("security level %v", level)
		}
	}
	raw.Close()
	wg.Wait()
	return client, seen, serverErr
}

// wantShake checks the client's verdict: none, or an error with a text.
func wantShake(t testing.TB, creds credentials.TransportCredentials, authority string, s server, want string) {
	t.Helper()
	switch err, _, _ := shake(t, creds, authority, s); {
	case want == "" && err != nil:
		t.Errorf("handshake: %v", err)
	case want != "" && err == nil:
		t.Errorf("handshake went well, want %q", want)
	case want != "" && !strings.Contains(err.Error(), want):
		t.Errorf("handshake: %v, want %q", err, want)
	}
}

func TestVerification(t *testing.T) {
	ca, other := newCA(t), newCA(t)
	spiffe := &url.URL{Scheme: "spiffe", Host: "cluster.local", Path: "/ns/istio-system/sa/istiod"}
	names := testutil.CertOptions{DNS: []string{"xds.example.com", "*.mesh"}, URIs: []*url.URL{spiffe}, IPs: []net.IP{net.IPv4(10, 0, 0, 1)}}
	good := server{cert: issue(t, ca, names)}
	expired := server{cert: issue(t, ca, testutil.CertOptions{DNS: names.DNS, NotAfter: time.Now().Add(-time.Minute)})}
	plain, old := good, good
	plain.plain = true
	old.version = tls.VersionTLS11
	sans := func(names ...string) bootstrap.TLS {
		return bootstrap.TLS{CACertificate: ca.PEM, SubjectAltNames: names}
	}
	trusting := bootstrap.TLS{CACertificate: ca.PEM}
	const authority = "xds.example.com:443"

	tests := []struct {
		name   string
		config bootstrap.TLS
		server server
		at     string
		want   string
	}{
		{"good", trusting, good, authority, ""},
		{"by address", trusting, good, "10.0.0.1:443", ""},
		{"another host", trusting, good, "evil.example.com:443", "not evil.example.com"},
		{"another authority", bootstrap.TLS{CACertificate: other.PEM}, good, authority, "unknown authority"},
		{"the system's roots", bootstrap.TLS{}, good, authority, "unknown authority"},
		{"two roots", bootstrap.TLS{CACertificate: slices.Concat(other.PEM, ca.PEM)}, good, authority, ""},
		{"expired", trusting, expired, authority, "expired"},
		{"server name", bootstrap.TLS{CACertificate: ca.PEM, ServerName: "xds.example.com"}, good, "10.9.9.9:443", ""},
		{"wrong server name", bootstrap.TLS{CACertificate: ca.PEM, ServerName: "a.b.c"}, good, authority, "not a.b.c"},
		{"san in place of the host", sans("xds.example.com"), good, "10.9.9.9:443", ""},
		{"san is a uri", sans("x", spiffe.String()), good, authority, ""},
		{"san by wildcard", sans("istiod.mesh"), good, authority, ""},
		{"san is an address", sans("10.0.0.1"), good, authority, ""},
		{"no such san", sans("evil", "spiffe://cluster.local/ns/istio-system/sa/istiod2"), good, authority, `none of ["evil" "spiffe:`},
		{"san of another authority", bootstrap.TLS{CACertificate: other.PEM, SubjectAltNames: []string{"xds.example.com"}}, good, authority, "unknown authority"},
		{"san, expired", sans("xds.example.com"), expired, authority, "expired"},
		{"unverified", bootstrap.TLS{SkipVerify: true}, expired, "anything:1", ""},
		{"unverified but for the san", bootstrap.TLS{SkipVerify: true, SubjectAltNames: []string{"no"}}, good, authority, "none of"},
		{"no http/2", trusting, plain, authority, "ALPN"},
		{"old tls", trusting, old, authority, "protocol version"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			wantShake(t, tlscreds.New(tt.config), tt.at, tt.server, tt.want)
		})
	}
}

func TestServerNameIsSent(t *testing.T) {
	ca := newCA(t)
	s := server{cert: issue(t, ca, testutil.CertOptions{DNS: []string{"a.example.com", "b.example.com"}})}
	for config, want := range map[string]string{"": "a.example.com", "b.example.com": "b.example.com"} {
		creds := tlscreds.New(bootstrap.TLS{CACertificate: ca.PEM, ServerName: config})
		if err, seen, _ := shake(t, creds, "a.example.com:443", s); err != nil || seen.ServerName != want {
			t.Errorf("server name %q: sent %q, %v; want %q", config, seen.ServerName, err, want)
		}
		//lint:ignore SA1019 gRPC still takes the authority from here
		if name := creds.Info().ServerName; name != "" {
			t.Errorf("server name %q would be the :authority too: %q", config, name)
		}
	}
}

func TestMutualTLS(t *testing.T) {
	ca, other := newCA(t), newCA(t)
	s := server{cert: issue(t, ca, testutil.CertOptions{DNS: []string{"xds"}}), clients: ca.Pool()}
	mine := issue(t, ca, testutil.CertOptions{CommonName: "me"})
	foreign := issue(t, other, testutil.CertOptions{CommonName: "them"})
	files, err := mine.WriteFiles(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name   string
		config bootstrap.TLS
		want   string // the client's name as the server sees it; "" if refused
	}{
		{"files", bootstrap.TLS{CACertificateFile: files.CA, CertificateFile: files.Cert, PrivateKeyFile: files.Key}, "me"},
		{"inline", bootstrap.TLS{CACertificate: ca.PEM, Certificate: mine.CertPEM, PrivateKey: mine.KeyPEM}, "me"},
		{"mixed", bootstrap.TLS{CACertificate: ca.PEM, CertificateFile: files.Cert, PrivateKey: mine.KeyPEM}, "me"},
		{"none", bootstrap.TLS{CACertificate: ca.PEM}, ""},
		{"of another authority", bootstrap.TLS{CACertificate: ca.PEM, Certificate: foreign.CertPEM, PrivateKey: foreign.KeyPEM}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, seen, err := shake(t, tlscreds.New(tt.config), "xds", s)
			if tt.want == "" {
				if err == nil {
					t.Error("the server took it")
				}
				return
			}
			if err != nil || len(seen.PeerCertificates) == 0 || seen.PeerCertificates[0].Subject.CommonName != tt.want {
				t.Errorf("the server saw %d certificates, %v; want %q", len(seen.PeerCertificates), err, tt.want)
			}
		})
	}
}

// wantName checks as whom the server sees the client.
func wantName(t testing.TB, creds credentials.TransportCredentials, s server, want string) {
	t.Helper()
	client, seen, err := shake(t, creds, "xds", s)
	if client != nil || err != nil {
		t.Fatalf("handshake: client %v, server %v", client, err)
	}
	if got := seen.PeerCertificates[0].Subject.CommonName; got != want {
		t.Fatalf("the server saw %q, want %q", got, want)
	}
}

// gRFC A65: files may be replaced at any time, and not all at once.
func TestRotation(t *testing.T) {
	ca := newCA(t)
	s := server{cert: issue(t, ca, testutil.CertOptions{DNS: []string{"xds"}}), clients: ca.Pool()}
	first := issue(t, ca, testutil.CertOptions{CommonName: "first"})
	second := issue(t, ca, testutil.CertOptions{CommonName: "second"})
	files, err := first.WriteFiles(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	creds := tlscreds.New(bootstrap.TLS{CACertificateFile: files.CA, CertificateFile: files.Cert, PrivateKeyFile: files.Key})
	wantName(t, creds, s, "first")
	steps := []struct {
		name string
		do   func()
		want string
	}{
		{"only the certificate", func() { write(t, files.Cert, second.CertPEM) }, "first"},
		{"the key too", func() { write(t, files.Key, second.KeyPEM) }, "second"},
		{"a truncated certificate", func() { write(t, files.Cert, first.CertPEM[:50]) }, "second"},
		{"no files", func() { os.Remove(files.Cert); os.Remove(files.Key); os.Remove(files.CA) }, "second"},
		{"all anew", func() { first.WriteFiles(filepath.Dir(files.CA)) }, "first"},
	}
	for _, step := range steps {
		t.Run(step.name, func(t *testing.T) {
			step.do()
			wantName(t, creds.Clone(), s, step.want)
		})
	}
}

func TestRootsRotate(t *testing.T) {
	before, after := newCA(t), newCA(t)
	old := server{cert: issue(t, before, testutil.CertOptions{DNS: []string{"xds"}})}
	fresh := server{cert: issue(t, after, testutil.CertOptions{DNS: []string{"xds"}})}
	file := write(t, filepath.Join(t.TempDir(), "ca.pem"), before.PEM)
	creds := tlscreds.New(bootstrap.TLS{CACertificateFile: file})

	wantShake(t, creds, "xds", old, "")
	wantShake(t, creds, "xds", fresh, "unknown authority")
	half := slices.Concat(before.PEM, after.PEM)
	write(t, file, half[:len(half)-40])
	wantShake(t, creds, "xds", old, "")
	wantShake(t, creds, "xds", fresh, "since now: ca certificate "+file+": ends within a PEM block")
	write(t, file, half)
	wantShake(t, creds, "xds", old, "")
	wantShake(t, creds, "xds", fresh, "")
	write(t, file, after.PEM)
	wantShake(t, creds, "xds", old, "unknown authority")
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	wantShake(t, creds, "xds", fresh, "")
	wantShake(t, creds, "xds", old, "no such file")
}

// What was read serves for the interval, unless a handshake failed with it.
func TestRefreshInterval(t *testing.T) {
	ca, other := newCA(t), newCA(t)
	s := server{cert: issue(t, ca, testutil.CertOptions{DNS: []string{"xds"}})}
	foreign := server{cert: issue(t, other, testutil.CertOptions{DNS: []string{"xds"}})}
	file := write(t, filepath.Join(t.TempDir(), "ca.pem"), ca.PEM)
	creds := tlscreds.New(bootstrap.TLS{CACertificateFile: file, RefreshInterval: time.Hour})
	wantShake(t, creds, "xds", s, "")
	write(t, file, other.PEM)
	wantShake(t, creds, "xds", s, "")
	wantShake(t, creds, "xds", foreign, "unknown authority")
	wantShake(t, creds, "xds", foreign, "")
}

// A first read that fails fails the handshake, and the next one tries again.
func TestFirstReadFails(t *testing.T) {
	ca := newCA(t)
	s := server{cert: issue(t, ca, testutil.CertOptions{DNS: []string{"xds"}})}
	cert, second := issue(t, ca, testutil.CertOptions{}), issue(t, ca, testutil.CertOptions{})
	dir := t.TempDir()
	missing := filepath.Join(dir, "missing.pem")
	empty := write(t, filepath.Join(dir, "empty.pem"), []byte("nothing here\n"))
	certFile := write(t, filepath.Join(dir, "cert.pem"), cert.CertPEM)
	keyFile := write(t, filepath.Join(dir, "key.pem"), second.KeyPEM)
	tests := []struct {
		name   string
		config bootstrap.TLS
		want   string
	}{
		{"ca missing", bootstrap.TLS{CACertificateFile: missing}, "ca certificate: open " + missing + ": no such file"},
		{"ca without certificates", bootstrap.TLS{CACertificateFile: empty}, "ca certificate " + empty + ": holds no certificate in PEM form"},
		{"inline ca", bootstrap.TLS{CACertificate: []byte("x")}, "ca certificate given inline: holds no"},
		{"a key as ca", bootstrap.TLS{CACertificateFile: keyFile}, "holds no certificate"},
		{"certificate missing", bootstrap.TLS{CertificateFile: missing, PrivateKeyFile: keyFile}, "certificate: open " + missing},
		{"key missing", bootstrap.TLS{CertificateFile: certFile, PrivateKeyFile: missing}, "private key: open " + missing},
		{"not a pair", bootstrap.TLS{CertificateFile: certFile, PrivateKeyFile: keyFile}, "certificate " + certFile + " with private key " + keyFile + ": "},
		{"half configured", bootstrap.TLS{CertificateFile: certFile}, "private key is not configured"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			wantShake(t, tlscreds.New(tt.config), "xds", s, tt.want)
		})
	}

	creds := tlscreds.New(bootstrap.TLS{CACertificateFile: missing})
	wantShake(t, creds, "xds", s, "no such file")
	write(t, missing, ca.PEM)
	wantShake(t, creds, "xds", s, "")
}

func TestConcurrentHandshakes(t *testing.T) {
	ca := newCA(t)
	s := server{cert: issue(t, ca, testutil.CertOptions{DNS: []string{"xds"}}), clients: ca.Pool()}
	certs := []*testutil.Cert{issue(t, ca, testutil.CertOptions{CommonName: "a"}), issue(t, ca, testutil.CertOptions{CommonName: "b"})}
	dir := t.TempDir()
	files, err := certs[0].WriteFiles(dir)
	if err != nil {
		t.Fatal(err)
	}
	creds := tlscreds.New(bootstrap.TLS{CACertificateFile: files.CA, CertificateFile: files.Cert, PrivateKeyFile: files.Key})
	wantName(t, creds, s, "a")
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 5 {
				if client, _, err := shake(t, creds, "xds", s); client != nil || err != nil {
					t.Errorf("handshake: client %v, server %v", client, err)
				}
			}
		})
	}
	for i := range 20 {
		if _, err := certs[i%2].WriteFiles(dir); err != nil {
			t.Fatal(err)
		}
	}
	wg.Wait()
}

func TestNoServerSide(t *testing.T) {
	if _, _, err := tlscreds.New(bootstrap.TLS{}).ServerHandshake(nil); err == nil {
		t.Error("a server's handshake went well")
	}
}
