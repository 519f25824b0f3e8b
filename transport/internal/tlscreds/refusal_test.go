package tlscreds_test

import (
	"crypto/tls"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/testutil"
	"github.com/xdswatch/xdswatch/transport/internal/tlscreds"
	"google.golang.org/grpc/credentials"
)

// A server that refuses the client's certificate says so only after the client's
// handshake. The reason reaches a reader and a writer, together with why an old
// certificate was used, and the next handshake reads the files again.
func TestRefusalAfterTheHandshake(t *testing.T) {
	ca, other := newCA(t), newCA(t)
	s := server{cert: issue(t, ca, testutil.CertOptions{DNS: []string{"xds"}}), clients: other.Pool()}
	files, err := issue(t, ca, testutil.CertOptions{}).WriteFiles(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	ways := map[string]func(net.Conn) error{
		"reader": func(c net.Conn) error { _, err := io.Copy(io.Discard, c); return err },
		"writer": func(c net.Conn) error {
			for {
				if _, err := c.Write(make([]byte, 1<<10)); err != nil {
					return err
				}
			}
		},
	}
	for name, fail := range ways {
		t.Run(name, func(t *testing.T) {
			creds := tlscreds.New(bootstrap.TLS{CACertificate: ca.PEM, CertificateFile: files.Cert, PrivateKeyFile: files.Key})
			wantRefusal(t, creds, s, fail, "")
			moved := files.Cert + ".moved"
			if err := os.Rename(files.Cert, moved); err != nil {
				t.Fatal(err)
			}
			wantRefusal(t, creds, s, fail, "since now: certificate: open "+files.Cert)
			if err := os.Rename(moved, files.Cert); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// wantRefusal makes a handshake that only the server finds wanting.
func wantRefusal(t *testing.T, creds credentials.TransportCredentials, s server, fail func(net.Conn) error, want string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() {
		if raw, err := l.Accept(); err == nil {
			tls.Server(raw, s.config(t)).Handshake()
			raw.Close()
		}
	})
	raw, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	conn, _, err := creds.ClientHandshake(t.Context(), "xds", raw)
	if err != nil {
		t.Fatal(err)
	}
	err = fail(conn)
	if err == nil || !strings.Contains(err.Error(), "unknown certificate authority") || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want the server's alert and %q", err, want)
	}
}
