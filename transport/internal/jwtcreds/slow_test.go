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
)

// A read that hangs holds up only the calls that need it, and those only as long as their
// contexts allow; all that wait share it.
func TestSlowFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	if err := syscall.Mkfifo(file, 0o600); err != nil {
		t.Fatal(err)
	}
	c := New(file)
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
	wg.Wait()
	wantToken(t, c, token)
}
