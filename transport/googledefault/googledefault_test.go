package googledefault_test

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/testutil"
	"github.com/xdswatch/xdswatch/transport"
	"github.com/xdswatch/xdswatch/transport/googledefault"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// authority is one for the process, which reads the system's roots once.
var authority = sync.OnceValues(testutil.NewCA)

// serviceAccount writes a key file whose tokens come from a local server.
func serviceAccount(t *testing.T) string {
	t.Helper()
	tokens := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"access_token":"from-google","token_type":"Bearer","expires_in":3600}`)
	}))
	t.Cleanup(tokens.Close)
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	account, err := json.Marshal(map[string]string{
		"type": "service_account", "client_email": "me@example.com", "token_uri": tokens.URL,
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})),
	})
	if err != nil {
		t.Fatal(err)
	}
	return write(t, "account.json", account)
}

func write(t *testing.T, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// serve refuses each stream with the authorization header that it came with.
func serve(t *testing.T, cert tls.Certificate) (port string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := grpc.NewServer(
		grpc.Creds(credentials.NewServerTLSFromCert(&cert)),
		grpc.UnknownServiceHandler(func(_ any, s grpc.ServerStream) error {
			md, _ := metadata.FromIncomingContext(s.Context())
			return status.Errorf(codes.PermissionDenied, "seen: %v", md["authorization"])
		}),
	)
	go srv.Serve(l)
	t.Cleanup(srv.Stop)
	_, port, _ = net.SplitHostPort(l.Addr().String())
	return port
}

func TestStreamsCarryAToken(t *testing.T) {
	ca, err := authority()
	if err != nil {
		t.Fatal(err)
	}
	cert, err := ca.Issue(testutil.CertOptions{DNS: []string{"localhost"}})
	if err != nil {
		t.Fatal(err)
	}
	pair, err := cert.TLS()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("SSL_CERT_FILE", write(t, "ca.pem", ca.PEM)) // the system's roots
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", serviceAccount(t))

	c, err := transport.NewGRPC(transport.GRPCConfig{}).Build(bootstrap.ManagementServer{
		URI: "dns:///localhost:" + serve(t, pair),
		ChannelCreds: bootstrap.ChannelCreds{
			Type:  googledefault.Type,
			Build: func() (credentials.Bundle, error) { return googledefault.New(nil) },
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	s, err := c.Open(t.Context(), transport.MethodADS)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Recv(); status.Code(err) != codes.PermissionDenied || !strings.Contains(err.Error(), "seen: [Bearer from-google]") {
		t.Errorf("end: %v, want the server to have seen the token", err)
	}
}

func TestNoCredentials(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing.json")
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", missing)
	if _, err := googledefault.New(json.RawMessage(`{}`)); err == nil || !strings.Contains(err.Error(), missing) {
		t.Errorf("error %v, want one that names %s", err, missing)
	}
}
