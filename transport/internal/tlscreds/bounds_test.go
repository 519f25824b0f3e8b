//go:build unix

package tlscreds

import (
	"context"
	"crypto/x509"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/internal/regular"
)

// A file of certificates that is no file, or too large, is refused at once.
//
// spec: H-10
func TestFileBounds(t *testing.T) {
	dir := t.TempDir()
	pipe, large := filepath.Join(dir, "pipe"), filepath.Join(dir, "large")
	if err := errors.Join(syscall.Mkfifo(pipe, 0o600), os.WriteFile(large, make([]byte, regular.MaxPEM+1), 0o600)); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{pipe: "not a regular file", large: "larger than the limit of 8388608 bytes"} {
		for what, spec := range map[string]bootstrap.TLS{
			"ca certificate": {CACertificateFile: path}, "certificate": {CertificateFile: path, PrivateKeyFile: path},
		} {
			if _, _, err := newMaterial(spec).config(t.Context()); err == nil || err.Error() != what+": read "+path+": "+want {
				t.Errorf("%s: error %v, want %s", what, err, want)
			}
		}
	}
}

// A file that cannot be read to its end holds up a handshake no longer than its context, and
// other handshakes share the reading.
//
// spec: H-10
func TestFilesThatHang(t *testing.T) {
	hang, begun := make(chan struct{}), 0
	m := newMaterial(bootstrap.TLS{CACertificateFile: "x"})
	m.roots.load = func() (*x509.CertPool, error) {
		begun++ // one reading at a time
		<-hang
		return x509.NewCertPool(), nil
	}
	for range 3 {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		_, _, err := m.config(ctx)
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "reading certificates") {
			t.Errorf("error %v, want the end of the context", err)
		}
	}
	reading := m.refresh()
	close(hang)
	<-reading
	if begun != 1 {
		t.Errorf("%d readings began, want 1", begun)
	}
	if config, stale, err := m.config(t.Context()); config == nil || config.RootCAs == nil || stale != nil || err != nil {
		t.Errorf("%v, %v, %v once it was read", config, stale, err)
	}
}

// Who looks at a file that cannot be read to its end is told so, and what was read of it stays in use.
//
// spec: H-10
func TestLookAtFilesThatHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := make(chan struct{})
		close(hang)
		m := newMaterial(bootstrap.TLS{CACertificateFile: "x"})
		m.roots.load = func() (*x509.CertPool, error) {
			<-hang
			return x509.NewCertPool(), nil
		}
		if got := m.Look(t.Context()); len(got) != 1 || got["x"] != nil {
			t.Errorf("at first %v", got)
		}
		hang = make(chan struct{})
		begin := time.Now()
		if got := m.Look(t.Context()); got["x"] == nil || got["x"].Error() != "the files have not been read within 5s" || time.Since(begin) != readWait {
			t.Errorf("after %v %v", time.Since(begin), got)
		}
		if config, stale, err := m.config(t.Context()); config == nil || stale == nil || err != nil {
			t.Errorf("%v, %v, %v meanwhile", config, stale, err)
		}
		close(hang)
		synctest.Wait()
		if got := m.Look(t.Context()); got["x"] != nil {
			t.Errorf("once it is read %v", got)
		}
	})
}
