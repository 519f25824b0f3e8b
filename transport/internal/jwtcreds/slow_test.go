//go:build unix

package jwtcreds

import (
	"context"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/xdswatch/xdswatch/internal/regular"
)

// A read that hangs holds up only the calls that need it, and those only as long as their
// contexts allow; all that wait share it.
func TestSlowFile(t *testing.T) {
	file, slow := filepath.Join(t.TempDir(), "token"), make(chan struct{})
	c := New(file)
	c.load = func(file string) (string, time.Time, error) {
		<-slow
		return load(file)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := c.GetRequestMetadata(ctx); status.Code(err) != codes.DeadlineExceeded || !strings.Contains(err.Error(), file) {
		t.Errorf("error %v, want a deadline and the file", err)
	}

	token := lasting("1", time.Hour)
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			if got, err := call(c); err != nil || got != "Bearer "+token {
				t.Errorf("%q, %v; want %q", got, err, token)
			}
		})
	}
	write(t, file, token)
	close(slow)
	wg.Wait()
	wantToken(t, c, token)
}

// A token file that is no file, or too large, is refused at once.
//
// spec: H-10
func TestTokenFileBounds(t *testing.T) {
	pipe, large := filepath.Join(t.TempDir(), "pipe"), filepath.Join(t.TempDir(), "large")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	write(t, large, strings.Repeat("x", regular.MaxToken+1))
	for file, want := range map[string]string{pipe: "not a regular file", large: "larger than the limit of 262144 bytes"} {
		if _, err := call(New(file)); status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), file+": "+want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}
