package testutil

import (
	"context"
	"fmt"
	"maps"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// TCPProxy stands between a client and a server on TCP and does what networks do: it cuts,
// delays, swallows and refuses. It listens on loopback, or on a Unix socket, and forwards bytes
// without a look at them. Safe for concurrent use; its maker closes it.
type TCPProxy struct {
	network string // "tcp" or "unix"
	addr    string
	anchor  []net.Conn      // holds the port of TCP
	wg      sync.WaitGroup  // the acceptor and all goroutines of connections
	delay   atomic.Int64    // a time.Duration
	ctx     context.Context // done when the proxy is closed
	cancel  context.CancelFunc

	mu        sync.Mutex
	target    string
	blackhole bool
	listener  net.Listener // nil while connections are refused
	conns     map[*proxyConn]struct{}
}

// NewTCPProxy makes a proxy on a free loopback port that forwards to target, a "host:port"
// which need not listen yet.
func NewTCPProxy(target string) (*TCPProxy, error) { return newTCPProxy("tcp", "127.0.0.1:0", target) }

// NewUnixProxy makes a proxy on a Unix socket that forwards to target, a "host:port" which need not
// listen yet. A socket file that a process left at the path is replaced.
func NewUnixProxy(path, target string) (*TCPProxy, error) { return newTCPProxy("unix", path, target) }

func newTCPProxy(network, addr, target string) (*TCPProxy, error) {
	l, err := listenAt(network, addr)
	if err != nil {
		return nil, fmt.Errorf("tcp proxy: %w", err)
	}
	p := &TCPProxy{network: network, addr: l.Addr().String(), target: target, conns: map[*proxyConn]struct{}{}}
	if network == "tcp" {
		if p.anchor, err = selfConnect(l); err != nil {
			l.Close()
			return nil, fmt.Errorf("tcp proxy: %w", err)
		}
	}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.listen(l)
	return p, nil
}

// listenAt listens on TCP or a Unix socket, for which a file that is there makes way.
func listenAt(network, addr string) (net.Listener, error) {
	if network == "unix" {
		_ = os.Remove(addr) // if that does not do, listening fails
	}
	return net.Listen(network, addr)
}

// selfConnect makes a connection to the listener and returns both of its ends. While it
// stands, the system gives the port to nobody who asks for a free one, although nothing
// may listen there.
func selfConnect(l net.Listener) ([]net.Conn, error) {
	out, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		return nil, err
	}
	in, err := l.Accept()
	if err != nil {
		out.Close()
	}
	return []net.Conn{out, in}, err
}

// Addr is the "host:port" at which clients reach the proxy, or the path of its socket. It never
// changes.
func (p *TCPProxy) Addr() string { return p.addr }

// SetTarget makes connections that are accepted from now on go to target.
func (p *TCPProxy) SetTarget(target string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = target
}

// Delay makes whatever is read from now on, in either direction, arrive d later. It does
// not lower the throughput, and nothing overtakes. 0, as at first, forwards at once.
func (p *TCPProxy) Delay(d time.Duration) { p.delay.Store(int64(d)) }

// Blackhole makes the network silent, as a firewall that forgot its connections or a host
// that lost its power: connections stay open and are accepted, but nothing that is sent
// arrives, not even the end of the other side. When it is switched off, new connections
// work; those that stood in the meantime have lost bytes and stay silent until they are
// cut.
func (p *TCPProxy) Blackhole(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.blackhole = on
	if !on {
		return
	}
	for c := range p.conns {
		c.silent.Store(true)
	}
}

// Refuse makes the proxy's port closed to new connections, or open again; those that
// stand are not touched. The error is that of closing the port or opening it again; the
// proxy keeps it from programs that take any free port. A Unix socket's file is gone meanwhile.
func (p *TCPProxy) Refuse(on bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.ctx.Err() != nil, on == (p.listener == nil):
		return nil
	case on:
		err := p.listener.Close()
		p.listener = nil
		return err
	default:
		l, err := listenAt(p.network, p.addr)
		if err != nil {
			return fmt.Errorf("tcp proxy: %w", err)
		}
		p.listen(l)
		return nil
	}
}

// Cut ends all connections in the orderly way (FIN), with what is still on its way lost.
// New ones are accepted.
func (p *TCPProxy) Cut() { p.end(nil) }

// Reset ends all connections as a crashed peer does (RST). New ones are accepted.
func (p *TCPProxy) Reset() { p.end(errReset) }

// end ends all connections, and waits until both sides of each are closed.
func (p *TCPProxy) end(cause error) {
	p.mu.Lock()
	conns := slices.Collect(maps.Keys(p.conns))
	clear(p.conns)
	p.mu.Unlock()
	for _, c := range conns {
		c.end(cause)
	}
	for _, c := range conns {
		<-c.over
	}
}

// Connections is the number of clients' connections that are open.
func (p *TCPProxy) Connections() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.conns)
}

// Close ends the listener and all connections and waits for the proxy's goroutines.
// A second call does nothing.
func (p *TCPProxy) Close() {
	p.mu.Lock()
	p.cancel()
	if p.listener != nil {
		p.listener.Close()
		p.listener = nil
	}
	p.mu.Unlock()
	p.wg.Wait()
	for _, end := range p.anchor {
		end.Close()
	}
}

// listen takes connections from now on; the caller holds mu, once others know the proxy.
func (p *TCPProxy) listen(l net.Listener) {
	p.listener = l
	p.wg.Go(func() {
		for client, err := l.Accept(); err == nil; client, err = l.Accept() {
			p.add(client)
		}
	})
}

// add starts the connection's goroutine.
func (p *TCPProxy) add(client net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := &proxyConn{client: client, delay: &p.delay, over: make(chan struct{})}
	c.ctx, c.end = context.WithCancelCause(p.ctx)
	c.silent.Store(p.blackhole)
	p.conns[c] = struct{}{}
	target := p.target
	p.wg.Go(func() {
		c.run(target)
		close(c.over)
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.conns, c)
	})
}
