package transport_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/testutil"
	"github.com/xdswatch/xdswatch/transport"
)

// serverTLS is the configuration of a server with a certificate of ca for localhost; it
// wants one of clients from its clients, if that is not nil.
func serverTLS(t testing.TB, ca *testutil.CA, clients *x509.CertPool) *tls.Config {
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
	return config
}

// polledOverTLS is a server of a bootstrap on a local port.
func polledOverTLS(addr string, config bootstrap.TLS) bootstrap.ManagementServer {
	_, port, _ := strings.Cut(addr, ":")
	s := polled("localhost:" + port)
	s.ChannelCreds = bootstrap.ChannelCreds{Type: "tls", TLS: &config}
	return s
}

// onSocket is a server on a socket, and a stream to it.
func onSocket(t *testing.T, sc testutil.RESTConfig, server func(addr string) bootstrap.ManagementServer) *restRig {
	t.Helper()
	r := &restRig{t: t, srv: testutil.StartRESTServer(t, sc)}
	ms := server(r.srv.Addr())
	ms.REST().RequestTimeout = time.Minute
	r.conn = buildREST(t, transport.RESTConfig{}, ms)
	r.set("1", "a")
	return r
}

func TestRESTOverTLS(t *testing.T) {
	ca, other := newCA(t), newCA(t)
	mine := files(t, ca, t.TempDir())
	trust := bootstrap.TLS{CACertificateFile: mine.CA}
	mutual := bootstrap.TLS{CACertificateFile: mine.CA, CertificateFile: mine.Cert, PrivateKeyFile: mine.Key}
	tests := []struct {
		name   string
		server testutil.RESTConfig
		client bootstrap.TLS
		proto  string // or what the error says
	}{
		{"HTTP/2", testutil.RESTConfig{TLS: serverTLS(t, ca, nil)}, trust, "HTTP/2.0"},
		{"HTTP/1.1", testutil.RESTConfig{TLS: serverTLS(t, ca, nil), OnlyHTTP1: true}, trust, "HTTP/1.1"},
		{"mutual", testutil.RESTConfig{TLS: serverTLS(t, ca, ca.Pool())}, mutual, "HTTP/2.0"},
		{"no client certificate", testutil.RESTConfig{TLS: serverTLS(t, ca, ca.Pool())}, trust, "certificate required"},
		{"another authority", testutil.RESTConfig{TLS: serverTLS(t, other, nil)}, trust, "certificate signed by unknown authority"},
		{"another name", testutil.RESTConfig{TLS: serverTLS(t, ca, nil)}, bootstrap.TLS{CACertificateFile: mine.CA, ServerName: "other"}, "not other"},
		{"no file", testutil.RESTConfig{TLS: serverTLS(t, ca, nil)}, bootstrap.TLS{CACertificateFile: "none.pem"}, "open none.pem"},
		{"plain text", testutil.RESTConfig{}, trust, "does not look like a TLS handshake"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := onSocket(t, tt.server, func(addr string) bootstrap.ManagementServer { return polledOverTLS(addr, tt.client) })
			s, err := r.conn.Open(testContext(t), "")
			if err != nil {
				wantConnectError(t, err, "rest-server", codes.Unavailable, tt.proto)
				return
			}
			r.read(s)
			defer s.Close()
			r.ask("", "a")
			if !strings.HasPrefix(tt.proto, "HTTP") {
				r.ends(codes.Unavailable, tt.proto)
				return
			}
			if got := r.poll("a @").Proto; got != tt.proto {
				t.Errorf("polled over %s, want %s", got, tt.proto)
			}
			r.frame("1: a")
			if n := r.srv.Connections(); n != 1 {
				t.Errorf("%d connections for one stream", n)
			}
		})
	}
}

// Certificates may be replaced: the next connection has the new ones.
func TestRESTRotation(t *testing.T) {
	ca, dir := newCA(t), t.TempDir()
	mine := files(t, newCA(t), dir) // of an authority that the server does not know
	r := onSocket(t, testutil.RESTConfig{TLS: serverTLS(t, ca, ca.Pool())}, func(addr string) bootstrap.ManagementServer {
		return polledOverTLS(addr, bootstrap.TLS{
			CACertificateFile: mine.CA, CertificateFile: mine.Cert, PrivateKeyFile: mine.Key, RefreshInterval: time.Hour,
		})
	})
	if _, err := r.conn.Open(testContext(t), ""); err == nil {
		t.Fatal("a server of an unknown authority is trusted")
	}
	files(t, ca, dir)
	r.open()
	r.ask("", "a")
	r.poll("a @")
	r.frame("1: a")
}

// A token of a file goes with each poll, over TLS.
func TestRESTToken(t *testing.T) {
	ca := newCA(t)
	mine := files(t, ca, t.TempDir())
	token := filepath.Join(t.TempDir(), "token")
	const jwt = "e30.eyJleHAiOjQxMDI0NDQ4MDB9.e30" // to the year 2100
	if err := os.WriteFile(token, []byte(jwt), 0o600); err != nil {
		t.Fatal(err)
	}
	r := onSocket(t, testutil.RESTConfig{TLS: serverTLS(t, ca, nil)}, func(addr string) bootstrap.ManagementServer {
		s := polledOverTLS(addr, bootstrap.TLS{CACertificateFile: mine.CA})
		s.CallCreds = []bootstrap.CallCreds{{Type: "jwt_token_file", TokenFile: token}}
		s.REST().RefreshDelay = time.Millisecond
		return s
	})
	r.open()
	r.ask("", "a")
	if got := r.poll("a @").Header.Get("Authorization"); got != "Bearer "+jwt {
		t.Errorf("authorization %q", got)
	}
	r.frame("1: a")
	r.ask("1", "a")
	if err := os.Remove(token); err != nil {
		t.Fatal(err)
	}
	if got := r.poll("a @1").Header.Get("Authorization"); got != "Bearer "+jwt { // which is known by now
		t.Errorf("authorization %q", got)
	}
}

func TestRESTUnixSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	lis, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	r := onSocket(t, testutil.RESTConfig{Listener: lis}, func(string) bootstrap.ManagementServer { return polled("unix://" + path) })
	r.open()
	r.ask("", "a")
	if host := r.poll("a @").Host; host != "localhost" {
		t.Errorf("host %q", host)
	}
	r.frame("1: a")
}

// Endpoints are tried one after the other: those that cannot be reached within one Open,
// those that answer with a fault one a stream.
// spec: REST-5
func TestRESTEndpoints(t *testing.T) {
	closed := listen(t, "127.0.0.1:0")
	closed.Close()
	first, second := testutil.StartRESTServer(t, testutil.RESTConfig{}), testutil.StartRESTServer(t, testutil.RESTConfig{})
	ms := polled(closed.Addr().String(), first.Addr(), second.Addr())
	ms.REST().RequestTimeout = time.Minute
	c := buildREST(t, transport.RESTConfig{}, ms)
	r := &restRig{t: t, srv: first, conn: c}
	r.open()
	r.ask("", "a")
	r.poll("a @")
	r.ends(codes.Unknown, "500")
	r.srv = second
	r.set("1", "a")
	r.open()
	r.ask("", "a")
	r.poll("a @")
	r.frame("1: a")
	second.Stop()
	r.ask("1", "b") // a poll that cannot be made
	r.ends(codes.Unavailable, "")
	r.srv = first
	r.set("1", "a")
	r.open()
	r.ask("1", "a", "b")
	r.poll("a b @1")
	r.frame("1: a")
}

// Replicas count versions apart, so another one is asked for everything, also on a stream of which no poll has failed.
// spec: REST-5 REST-4
func TestRESTVersionOfEndpoint(t *testing.T) {
	first := testutil.StartRESTServer(t, testutil.RESTConfig{ByVersion: true})
	second := testutil.StartRESTServer(t, testutil.RESTConfig{ByVersion: true})
	ms := polled(first.Addr(), second.Addr())
	ms.REST().RequestTimeout = time.Minute
	r := &restRig{t: t, srv: first, conn: buildREST(t, transport.RESTConfig{}, ms)}
	r.set("1", "a", "b")
	r.open()
	r.ask("", "a")
	r.poll("a @")
	r.frame("1: a b")
	other := &restRig{t: t, srv: first, conn: r.conn}
	other.open()
	first.Answer(answerStatus(500))
	other.ask("", "b")
	other.poll("b @")
	other.ends(codes.Unknown, "500")
	r.srv = second
	r.set("1", "a", "c")
	r.ask("1", "a", "c")
	r.poll("a c @")
	r.frame("1: a c")
	r.ask("1", "a")
	r.poll("a @1")
}

// spec: REST-2
func TestRESTUnreachable(t *testing.T) {
	closed := listen(t, "127.0.0.1:0")
	closed.Close()
	addr := closed.Addr().String()
	c := buildREST(t, transport.RESTConfig{}, polled(addr, addr))
	_, err := c.Open(testContext(t), "")
	wantConnectError(t, err, "rest-server", codes.Unavailable, addr+": dial tcp "+addr+": connect: connection refused; "+addr)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = c.Open(ctx, "")
	wantConnectError(t, err, "rest-server", codes.Unknown, "context canceled")
}

// Streams of several types share a connection over HTTP/2.
func TestRESTSharedConnection(t *testing.T) {
	ca := newCA(t)
	mine := files(t, ca, t.TempDir())
	r := onSocket(t, testutil.RESTConfig{TLS: serverTLS(t, ca, nil)}, func(addr string) bootstrap.ManagementServer {
		return polledOverTLS(addr, bootstrap.TLS{CACertificateFile: mine.CA})
	})
	for range 5 {
		r.open()
		r.ask("", "a")
		r.poll("a @")
		r.frame("1: a")
		r.set("1", "a")
	}
	if n := r.srv.Connections(); n != 1 {
		t.Errorf("%d connections, want one", n)
	}
}

// After Close there are neither goroutines nor connections.
func TestRESTLeavesNothing(t *testing.T) {
	ca := newCA(t)
	mine := files(t, ca, t.TempDir())
	for _, onlyHTTP1 := range []bool{false, true} {
		r := onSocket(t, testutil.RESTConfig{TLS: serverTLS(t, ca, nil), OnlyHTTP1: onlyHTTP1}, func(addr string) bootstrap.ManagementServer {
			return polledOverTLS(addr, bootstrap.TLS{CACertificateFile: mine.CA})
		})
		before := runtime.NumGoroutine()
		for range 5 { // idle
			r.open()
			r.ask("", "a")
			r.frame("1: a")
			r.set("1", "a")
		}
		r.srv.Answer(answerHang)
		for range 5 { // in a poll
			r.open()
			r.ask("", "a")
		}
		for r.srv.Polls() < 10 {
			r.poll("a @")
		}
		if err := r.conn.Close(); err != nil {
			t.Error(err)
		}
		awaitTrue(t, "connections at the server", func() bool { return r.srv.Connections() == 0 })
		awaitTrue(t, "goroutines", func() bool { return runtime.NumGoroutine() <= before })
	}
}

// awaitTrue waits for what has no event of its own.
func awaitTrue(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for ctx := testContext(t); !ok(); runtime.Gosched() {
		if ctx.Err() != nil {
			buf := make([]byte, 1<<20)
			t.Fatalf("%s are left:\n%s", what, buf[:runtime.Stack(buf, true)])
		}
	}
}

// The names of a server's certificate are in the error of a handshake that they are not good for, as far as
// an error may be long: each of many watches is told of it.
//
// spec: H-9
func TestLongCertificate(t *testing.T) {
	ca := newCA(t)
	mine := files(t, ca, t.TempDir())
	cert, err := ca.Issue(testutil.CertOptions{DNS: []string{strings.Repeat("a.", 9_000) + "x", strings.Repeat("b.", 9_000) + "x"}})
	if err != nil {
		t.Fatal(err)
	}
	pair, err := cert.TLS()
	if err != nil {
		t.Fatal(err)
	}
	for _, sans := range [][]string{nil, {"xds.test"}} {
		srv := testutil.StartRESTServer(t, testutil.RESTConfig{TLS: &tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: []string{"h2"}}})
		rest := polledOverTLS(srv.Addr(), bootstrap.TLS{CACertificateFile: mine.CA, SubjectAltNames: sans})
		overGRPC := bootstrap.ManagementServer{URI: "localhost" + srv.Addr()[strings.LastIndexByte(srv.Addr(), ':'):], ChannelCreds: rest.ChannelCreds}
		for _, server := range []bootstrap.ManagementServer{rest, overGRPC} {
			conn, err := transport.ByServer{GRPC: transport.NewGRPC(transport.GRPCConfig{}), REST: transport.NewREST(transport.RESTConfig{})}.Build(server)
			if err != nil {
				t.Fatal(err)
			}
			_, err = conn.Open(testContext(t), transport.MethodADS)
			if text := fmt.Sprint(err); len(text) > 5<<10 || !strings.Contains(text, "certificate is") || !strings.Contains(text, "truncated") {
				t.Errorf("%q, names %q: an error of %d bytes: %.200s", server.URI, sans, len(text), text)
			}
			conn.Close()
		}
	}
}
