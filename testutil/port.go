package testutil

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

// ErrRunning is the error of a restart without a stop.
var ErrRunning = errors.New("management server is running")

// bindPatience is how long a restart waits for its port to be free again.
const bindPatience = 10 * time.Second

// port is a [Server] on a TCP address that can be stopped, and started again there.
type port struct {
	addr string
	opts []Option // of each start

	running sync.Mutex // held over starts and stops
	server  *Server    // nil while stopped
}

// listen starts the server for the first time.
func (p *port) listen(addr string, opts ...Option) error {
	s, err := ListenServer(addr, opts...)
	if err != nil {
		return err
	}
	p.addr, p.opts, p.server = s.Target(), opts, s
	return nil
}

// Addr is the address of the server, "127.0.0.1:port". It outlives a restart.
func (p *port) Addr() string { return p.addr }

// Stop closes the listener and cuts all connections, as a process that is killed, and
// waits for the streams to end. A second call does nothing.
func (p *port) Stop() {
	p.running.Lock()
	defer p.running.Unlock()
	if p.server != nil {
		p.server.Close()
		p.server = nil
	}
}

// restart starts a server that was stopped, once its port is free, with options before those of each start.
func (p *port) restart(opts ...Option) error {
	p.running.Lock()
	defer p.running.Unlock()
	if p.server != nil {
		return ErrRunning
	}
	opts = append(opts, p.opts...)
	for deadline := time.Now().Add(bindPatience); ; time.Sleep(20 * time.Millisecond) {
		s, err := ListenServer(p.addr, opts...)
		if err == nil {
			p.server = s
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("restart management server: %w", err)
		}
	}
}
