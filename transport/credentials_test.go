package transport_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/testutil"
	"github.com/xdswatch/xdswatch/transport"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	grpcinsecure "google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

func newCA(t testing.TB) *testutil.CA {
	t.Helper()
	ca, err := testutil.NewCA()
	if err != nil {
		t.Fatal(err)
	}
	return ca
}

// files writes a new certificate for localhost to dir.
func files(t testing.TB, ca *testutil.CA, dir string) testutil.CertFiles {
	t.Helper()
	cert, err := ca.Issue(testutil.CertOptions{CommonName: "me", DNS: []string{"localhost"}})
	if err != nil {
		t.Fatal(err)
	}
	files, err := cert.WriteFiles(dir)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// secured is the option of a server with a certificate of ca; it wants one of clients from
// its clients, if that is not nil.
func secured(t testing.TB, ca *testutil.CA, clients *x509.CertPool) grpc.ServerOption {
	t.Helper()
	f := files(t, ca, t.TempDir())
	pair, err := tls.LoadX509KeyPair(f.Cert, f.Key)
	if err != nil {
		t.Fatal(err)
	}
	config := &tls.Config{Certificates: []tls.Certificate{pair}}
	if clients != nil {
		config.ClientAuth, config.ClientCAs = tls.RequireAndVerifyClientCert, clients
	}
	return grpc.Creds(credentials.NewTLS(config))
}

// overTLS is a server of a bootstrap on a local port.
func overTLS(addr string, config bootstrap.TLS) bootstrap.ManagementServer {
	_, port, _ := strings.Cut(addr, ":")
	return bootstrap.ManagementServer{
		URI:          "localhost:" + port,
		ChannelCreds: bootstrap.ChannelCreds{Type: "tls", TLS: &config},
	}
}

func TestTLS(t *testing.T) {
	ca, other := newCA(t), newCA(t)
	mine, foreign := files(t, ca, t.TempDir()), files(t, other, t.TempDir())
	simple := serveTCP(t, echo, secured(t, ca, nil))
	mutual := serveTCP(t, echo, secured(t, ca, ca.Pool()))
	plain := serveTCP(t, echo)
	tests := []struct {
		name   string
		srv    *rawServer
		config bootstrap.TLS
		want   string // in the error; "" for none
	}{
		{"good", simple, bootstrap.TLS{CACertificateFile: mine.CA}, ""},
		{"mutual", mutual, bootstrap.TLS{CACertificateFile: mine.CA, CertificateFile: mine.Cert, PrivateKeyFile: mine.Key}, ""},
		{"wrong authority", simple, bootstrap.TLS{CACertificateFile: foreign.CA}, "certificate signed by unknown authority"},
		{"missing file", simple, bootstrap.TLS{CACertificateFile: "/nowhere/ca.pem"}, "ca certificate: open /nowhere/ca.pem: no such file"},
		{"no client certificate", mutual, bootstrap.TLS{CACertificateFile: mine.CA}, "certificate required"},
		{"foreign client certificate", mutual, bootstrap.TLS{CACertificateFile: mine.CA, CertificateFile: foreign.Cert, PrivateKeyFile: foreign.Key}, "unknown certificate authority"},
		{"server without tls", plain, bootstrap.TLS{CACertificateFile: mine.CA}, "first record does not look like a TLS handshake"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			server := overTLS(tt.srv.addr, tt.config)
			c := build(t, transport.GRPCConfig{}, server)
			if tt.want == "" {
				wantEcho(t, open(t, c), "private")
				return
			}
			for range 2 {
				_, err := c.Open(testContext(t), transport.MethodADS)
				wantConnectError(t, err, server.URI, codes.Unavailable, tt.want)
			}
		})
	}
}

func TestInsecureClientOfASecureServer(t *testing.T) {
	srv := serveTCP(t, echo, secured(t, newCA(t), nil))
	_, err := build(t, transport.GRPCConfig{}, insecure(srv.addr)).Open(testContext(t), transport.MethodADS)
	wantConnectError(t, err, srv.addr, codes.Unavailable, "server preface")
}

// A certificate that appears later is used by the next attempt.
func TestTLSFilesAppear(t *testing.T) {
	ca := newCA(t)
	dir := t.TempDir()
	ca1 := filepath.Join(dir, "ca.pem")
	srv := serveTCP(t, echo, secured(t, ca, ca.Pool()))
	server := overTLS(srv.addr, bootstrap.TLS{
		CACertificateFile: ca1, CertificateFile: filepath.Join(dir, "cert.pem"), PrivateKeyFile: filepath.Join(dir, "key.pem"),
	})
	c := build(t, transport.GRPCConfig{}, server)
	_, err := c.Open(testContext(t), transport.MethodADS)
	wantConnectError(t, err, server.URI, codes.Unavailable, ca1)
	files(t, ca, dir)
	wantEcho(t, open(t, c), "now")
}

// Certificates of which an Envoy bootstrap tells by Secrets of files are read at each
// handshake, and those that appear later used.
//
// spec: BOOTE-3
func TestTLSOfSecretFiles(t *testing.T) {
	const secret = `{"resources":[{"@type":"type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret",%s}]}`
	ca, dir := newCA(t), t.TempDir()
	for name, rest := range map[string]string{
		"pair.json": `"name":"pair","tls_certificate":{"certificate_chain":{"filename":"DIR/cert.pem"},"private_key":{"filename":"DIR/key.pem"}}`,
		"roots.json": `"name":"roots","validation_context":{"trusted_ca":{"filename":"DIR/ca.pem"},
			"match_typed_subject_alt_names":[{"san_type":"DNS","matcher":{"exact":"localhost"}}]}`,
	} {
		text := strings.ReplaceAll(fmt.Sprintf(secret, rest), "DIR", dir)
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	srv := serveTCP(t, echo, secured(t, ca, ca.Pool()))
	_, port, _ := strings.Cut(srv.addr, ":")
	boot, err := bootstrap.Parse("envoy", []byte(strings.NewReplacer("DIR", dir, "PORT", port).Replace(`
node: {id: a, cluster: b}
dynamic_resources: {ads_config: {api_type: GRPC, grpc_services: [{envoy_grpc: {cluster_name: xds}}]}}
static_resources:
  clusters:
  - name: xds
    load_assignment: {endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: PORT}}}}]}]}
    transport_socket:
      typed_config:
        "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext
        common_tls_context:
          tls_certificate_sds_secret_configs: [{name: pair, sds_config: {path_config_source: {path: DIR/pair.json}}}]
          validation_context_sds_secret_config: {name: roots, sds_config: {path_config_source: {path: DIR/roots.json}}}
`)))
	if err != nil {
		t.Fatal(err)
	}
	server := boot.Servers[0]
	c := build(t, transport.GRPCConfig{}, server)
	_, err = c.Open(testContext(t), transport.MethodADS)
	wantConnectError(t, err, server.URI, codes.Unavailable, filepath.Join(dir, "ca.pem"))
	files(t, ca, dir)
	wantEcho(t, open(t, c), "now")
}

// tell sends the values of the authorization header, and then echoes.
func tell(s grpc.ServerStream) error {
	md, _ := metadata.FromIncomingContext(s.Context())
	if err := s.SendMsg([]byte(strings.Join(md["authorization"], ","))); err != nil {
		return err
	}
	return echo(s)
}

func token(id string) string {
	enc := base64.RawURLEncoding.EncodeToString
	payload := fmt.Sprintf(`{"jti":%q,"exp":%d}`, id, time.Now().Add(time.Hour).Unix())
	return enc([]byte(`{}`)) + "." + enc([]byte(payload)) + ".c2ln"
}

// A stream without a token is not had, and costs the others of the connection nothing.
// spec: BOOT-4
func TestTokenFile(t *testing.T) {
	ca := newCA(t)
	srv := serveTCP(t, tell, secured(t, ca, nil))
	p := newProxy(t, srv.addr)
	server := overTLS(p.Addr(), bootstrap.TLS{CACertificate: ca.PEM})
	healthy := build(t, transport.GRPCConfig{}, server)
	if got, err := open(t, healthy).Recv(); err != nil || text(got) != "" {
		t.Fatalf("without call credentials: %q, %v", text(got), err)
	}

	file := filepath.Join(t.TempDir(), "token")
	server.CallCreds = []bootstrap.CallCreds{{Type: "jwt_token_file", TokenFile: file}}
	c := build(t, transport.GRPCConfig{}, server)
	_, err := c.Open(testContext(t), transport.MethodADS)
	wantConnectError(t, err, server.URI, codes.Unavailable, "jwt token file: open "+file)

	want := token("1")
	if err := os.WriteFile(file, []byte(want), 0o600); err != nil {
		t.Fatal(err)
	}
	s := open(t, build(t, transport.GRPCConfig{}, server))
	if got, err := s.Recv(); err != nil || text(got) != "Bearer "+want {
		t.Errorf("the server saw %q, %v; want %q", text(got), err, want)
	}

	if err := os.WriteFile(file, []byte("garbage"), 0o600); err != nil {
		t.Fatal(err)
	}
	c = build(t, transport.GRPCConfig{}, server)
	_, err = c.Open(testContext(t), transport.MethodADS)
	wantConnectError(t, err, server.URI, codes.Unauthenticated, "jwt token file "+file)
	wantEcho(t, s, "the stream before lives")
}

// switchable is a call credential that fails on demand.
type switchable struct{ fail bool }

func (c *switchable) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	if c.fail {
		return nil, status.Error(codes.Unavailable, "no token today")
	}
	return map[string]string{"authorization": "mine"}, nil
}

func (*switchable) RequireTransportSecurity() bool { return false }

// bundle is a program's own channel credential.
type bundle struct {
	transport credentials.TransportCredentials
	call      credentials.PerRPCCredentials
}

func (b bundle) TransportCredentials() credentials.TransportCredentials { return b.transport }
func (b bundle) PerRPCCredentials() credentials.PerRPCCredentials       { return b.call }
func (b bundle) NewWithMode(string) (credentials.Bundle, error)         { return b, nil }

func TestOwnCredentials(t *testing.T) {
	srv := serveTCP(t, tell)
	p := newProxy(t, srv.addr)
	mine, bundled := &switchable{}, &switchable{}
	server := bootstrap.ManagementServer{
		URI: p.Addr(),
		ChannelCreds: bootstrap.ChannelCreds{Type: "mine", Build: func() (credentials.Bundle, error) {
			return bundle{transport: grpcinsecure.NewCredentials(), call: bundled}, nil
		}},
		CallCreds: []bootstrap.CallCreds{{Type: "mine too", Build: func() (credentials.PerRPCCredentials, error) { return mine, nil }}},
	}
	c := build(t, transport.GRPCConfig{}, server)
	s := open(t, c)
	if got, err := s.Recv(); err != nil || text(got) != "mine" {
		t.Fatalf("the server saw %q, %v", text(got), err)
	}
	mine.fail = true
	_, err := c.Open(testContext(t), transport.MethodADS)
	wantConnectError(t, err, p.Addr(), codes.Unavailable, "no token today")
	wantEcho(t, s, "not the fault of the connection")
	mine.fail = false
	open(t, c)
	if n := p.Connections(); n != 1 {
		t.Errorf("%d connections, want 1", n)
	}
}

func TestOwnCredentialsFail(t *testing.T) {
	fault := errors.New("no such key")
	channel := func(b credentials.Bundle, err error) bootstrap.ManagementServer {
		s := insecure("xds:1")
		s.ChannelCreds = bootstrap.ChannelCreds{Type: "mine", Build: func() (credentials.Bundle, error) { return b, err }}
		return s
	}
	call := func(c credentials.PerRPCCredentials, err error) bootstrap.ManagementServer {
		s := insecure("xds:1")
		s.CallCreds = []bootstrap.CallCreds{{Type: "mine", Build: func() (credentials.PerRPCCredentials, error) { return c, err }}}
		return s
	}
	tests := []struct {
		name   string
		server bootstrap.ManagementServer
		want   string
	}{
		{"channel", channel(nil, fault), `channel_creds "mine": no such key`},
		{"no bundle", channel(nil, nil), `channel_creds "mine": made without transport credentials`},
		{"empty bundle", channel(bundle{}, nil), `channel_creds "mine": made without transport credentials`},
		{"call", call(nil, fault), `call_creds "mine": no such key`},
		{"no call credential", call(nil, nil), `call_creds "mine": made as nil`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := transport.NewGRPC(transport.GRPCConfig{}).Build(tt.server)
			if want := `management server "xds:1": ` + tt.want; err == nil || err.Error() != want {
				t.Errorf("error %v, want %s", err, want)
			}
		})
	}
}
