package main

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
)

// relay makes a TCP address reachable by a Unix socket. Its maker closes it.
type relay struct {
	path, target string
	wg           sync.WaitGroup
	passing      atomic.Int64 // connections

	mu  sync.Mutex
	lis net.Listener // nil while the socket is gone
}

func newRelay(path, target string) (*relay, error) {
	r := &relay{path: path, target: target}
	return r, r.open()
}

// open makes the socket; what was there before is removed.
func (r *relay) open() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := os.Remove(r.path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	lis, err := net.Listen("unix", r.path)
	if err != nil {
		return err
	}
	r.lis = lis
	r.wg.Go(func() { r.accept(lis) })
	return nil
}

// shut removes the socket. Connections that stand go on.
func (r *relay) shut() error { return r.end(true) }

// abandon leaves a socket file behind at which nobody listens, as a process does that was
// killed.
func (r *relay) abandon() error { return r.end(false) }

func (r *relay) end(unlink bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lis == nil {
		return nil
	}
	r.lis.(*net.UnixListener).SetUnlinkOnClose(unlink)
	err := r.lis.Close()
	r.lis = nil
	return err
}

// close waits for all connections to end: their target is to cut them.
func (r *relay) close() {
	_ = r.shut() // its directory goes
	r.wg.Wait()
}

func (r *relay) accept(lis net.Listener) {
	for {
		conn, err := lis.Accept()
		if err != nil {
			return
		}
		r.wg.Go(func() { r.pass(conn) })
	}
}

// connections is the number of those that stand.
func (r *relay) connections() int { return int(r.passing.Load()) }

func (r *relay) pass(a net.Conn) {
	r.passing.Add(1)
	defer r.passing.Add(-1)
	defer a.Close()
	b, err := net.Dial("tcp", r.target)
	if err != nil {
		return
	}
	defer b.Close()
	var wg sync.WaitGroup
	wg.Go(func() { copyAndClose(a, b) })
	wg.Go(func() { copyAndClose(b, a) })
	wg.Wait()
}

// copyAndClose ends both directions with the end of either. It hides what the connections
// are, lest the copy be a splice, whose pipes the net package keeps.
func copyAndClose(dst, src net.Conn) {
	_, _ = io.Copy(struct{ io.Writer }{dst}, struct{ io.Reader }{src}) // how it ended is all the same
	dst.Close()
	src.Close()
}
