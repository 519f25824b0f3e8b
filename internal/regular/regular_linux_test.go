package regular

import (
	"net"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// Neither a pipe that nobody writes to nor a socket is opened.
func TestOpenDoesNotWait(t *testing.T) {
	dir := t.TempDir()
	pipe, socket := filepath.Join(dir, "pipe"), filepath.Join(dir, "socket")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	lis, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer lis.Close()
	for _, path := range []string{pipe, socket} {
		done := make(chan error, 1)
		go func() {
			_, _, err := Open(path)
			done <- err
		}()
		select {
		case err := <-done:
			if err != ErrNotRegular {
				t.Errorf("%s: %v, want %v", filepath.Base(path), err, ErrNotRegular)
			}
		case <-time.After(30 * time.Second):
			t.Fatalf("%s: Open waits", filepath.Base(path))
		}
	}
}

// What has no size yet is read, up to the limit.
func TestReadGrowing(t *testing.T) {
	const file = "/proc/self/status" // of 0 bytes, for the system
	if data, err := Read(file, MaxSize); err != nil || len(data) == 0 {
		t.Errorf("read %q, %v", data, err)
	}
	if data, err := Read(file, 10); err == nil || data != nil {
		t.Errorf("read %q, %v; want only an error", data, err)
	}
}
