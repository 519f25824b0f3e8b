package bootstrap_test

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/xdswatch/xdswatch/bootstrap"
)

// A pipe that nobody writes to does not hold up who parses.
//
// spec: BOOTE-3
func TestEnvoySecretPipe(t *testing.T) {
	doc, dir := sdsDoc(t, pairOfFile+", "+systemRoots, nil)
	if err := syscall.Mkfifo(filepath.Join(dir, "pair"), 0o600); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := bootstrap.Parse("envoy", []byte(doc))
		done <- err
	}()
	select {
	case err := <-done:
		if err == nil || !strings.HasSuffix(err.Error(), `path = "`+dir+`/pair": cannot be read: not a regular file`) {
			t.Errorf("error %v", err)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("Parse waits")
	}
}
