//go:build unix

package transport_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/testutil"
	"github.com/xdswatch/xdswatch/transport"
)

// badFiles are what may come to stand in the place of a good file, and what is told of each.
var badFiles = []struct {
	want string
	put  func(path string) error
}{
	{"not a regular file", func(path string) error { return syscall.Mkfifo(path, 0o600) }},
	{"", func(path string) error { return os.WriteFile(path, nil, 0o600) }},
	{"not a regular file", func(path string) error { return os.Mkdir(path, 0o700) }},
	{"larger than the limit", func(path string) error {
		return errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, 1<<30))
	}},
	{"too many levels of symbolic links", func(path string) error { return os.Symlink(path, path) }},
	{"no such file", func(string) error { return nil }},
}

// reports collects what is told of files.
type reports struct {
	mu  sync.Mutex
	all []transport.FileReport
}

func (r *reports) add(f transport.FileReport) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, f)
}

func (r *reports) take() (all []transport.FileReport) {
	r.mu.Lock()
	defer r.mu.Unlock()
	all, r.all = r.all, nil
	return all
}

// A file of a credential that is replaced by something that is none is told within seconds, once,
// though no handshake needs it, and so is its recovery. Nothing of it is read that never ends, or
// is too large.
//
// spec: H-10
func TestCredentialFilesGoBad(t *testing.T) {
	ca, err := testutil.NewCA()
	if err != nil {
		t.Fatal(err)
	}
	cert, err := ca.Issue(testutil.CertOptions{DNS: []string{"xds"}})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	content := map[string][]byte{at("ca"): ca.PEM, at("cert"): cert.CertPEM, at("key"): cert.KeyPEM, at("token"): nil}
	tls := &bootstrap.TLS{CACertificateFile: at("ca"), CertificateFile: at("cert"), PrivateKeyFile: at("key")}
	for _, carrier := range []bootstrap.Carrier{nil, &bootstrap.REST{RefreshDelay: time.Hour, Endpoints: []bootstrap.RESTEndpoint{{Address: "127.0.0.1:1"}}}} {
		for path := range content {
			synctest.Test(t, func(t *testing.T) {
				content[at("token")] = fmt.Appendf(nil, "e30.%s.x", base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, `{"exp":%d}`, time.Now().Add(time.Hour).Unix())))
				for path, data := range content {
					replace(t, path, func(path string) error { return os.WriteFile(path, data, 0o600) })
				}
				var told reports
				server := bootstrap.ManagementServer{
					URI: "127.0.0.1:1", Carrier: carrier,
					ChannelCreds: bootstrap.ChannelCreds{Type: "tls", TLS: tls},
					CallCreds:    []bootstrap.CallCreds{{Type: "jwt_token_file", TokenFile: at("token")}},
				}
				conn, err := transport.ByServer{
					GRPC: transport.NewGRPC(transport.GRPCConfig{CredentialFiles: told.add}),
					REST: transport.NewREST(transport.RESTConfig{CredentialFiles: told.add}),
				}.Build(server)
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				wait(20 * time.Second)
				named := path
				if path == at("key") {
					named = at("cert")
				}
				for i, bad := range badFiles {
					var before, after runtime.MemStats
					runtime.ReadMemStats(&before)
					replace(t, path, bad.put)
					wait(7 * time.Second)
					got := told.take()
					if len(got) != 1 || got[0].Path != named || got[0].Err == nil || !strings.Contains(got[0].Err.Error(), bad.want) {
						t.Fatalf("%s, file %d: told %v, want %s: %s", path, i, got, named, bad.want)
					}
					wait(time.Minute)
					if got := told.take(); len(got) > 0 {
						t.Errorf("%s, file %d: told again: %v", path, i, got)
					}
					if runtime.ReadMemStats(&after); after.TotalAlloc-before.TotalAlloc > 64<<20 {
						t.Errorf("%s, file %d: allocated %d bytes", path, i, after.TotalAlloc-before.TotalAlloc)
					}
				}
				replace(t, path, func(path string) error { return os.WriteFile(path, content[path], 0o600) })
				wait(6 * time.Second)
				if got := told.take(); len(got) != 1 || got[0] != (transport.FileReport{Server: "127.0.0.1:1", Key: server.Key(), Path: named}) {
					t.Errorf("%s: told %v of the recovery", path, got)
				}
				replace(t, path, badFiles[0].put)
				wait(7 * time.Second)
				conn.Close()
				wait(time.Second)
				if got := told.take(); len(got) != 2 || got[1].Err != transport.ErrClosed {
					t.Errorf("%s: told %v at the end", path, got)
				}
			})
		}
	}
}

// A pair that is found half replaced is not told, and a file that was never good is not either: each
// attempt to connect says so.
func TestCredentialFilesSettle(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		var told reports
		conn, err := transport.NewGRPC(transport.GRPCConfig{CredentialFiles: told.add}).Build(bootstrap.ManagementServer{
			URI: "127.0.0.1:1", ChannelCreds: bootstrap.ChannelCreds{Type: "tls", TLS: &bootstrap.TLS{CACertificateFile: dir + "/ca"}},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		wait(time.Minute)
		ca, err := testutil.NewCA()
		if err != nil {
			t.Fatal(err)
		}
		good := func(path string) error { return os.WriteFile(path, ca.PEM, 0o600) }
		replace(t, dir+"/ca", good)
		wait(5 * time.Second) // 65 s: read
		replace(t, dir+"/ca", func(path string) error { return os.WriteFile(path, ca.PEM[:100], 0o600) })
		wait(5 * time.Second)
		replace(t, dir+"/ca", good)
		wait(time.Minute)
		if got := told.take(); len(got) > 0 {
			t.Errorf("told %v", got)
		}
	})
}

// replace puts something in the place of a file.
func replace(t *testing.T, path string, put func(path string) error) {
	t.Helper()
	if err := errors.Join(os.RemoveAll(path), put(path)); err != nil {
		t.Fatal(err)
	}
}

// wait lets fake time pass.
func wait(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}
