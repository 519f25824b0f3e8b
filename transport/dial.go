package transport

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
)

var errEndedEarly = errors.New("the server closed the connection, or sent GOAWAY, before a stream began")

// dials lets gRPC dial each address once an attempt. On its own gRPC dials without a pause
// for as long as connections end before the stream begins.
type dials struct {
	mu    sync.Mutex
	tried map[string]bool // the addresses that were dialed since the last attempt began
}

// begin is the beginning of an attempt.
func (d *dials) begin() {
	d.mu.Lock()
	d.tried = nil
	d.mu.Unlock()
}

// dial is the dialer of a channel.
func (d *dials) dial(ctx context.Context, addr string) (net.Conn, error) {
	if !d.try(addr) {
		return nil, errEndedEarly
	}
	network, addr := split(addr)
	// As gRPC's own, it leaves the times of TCP's keepalive to the system.
	dialer := net.Dialer{KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: -1, Interval: -1, Count: -1}}
	return dialer.DialContext(ctx, network, addr)
}

// try says whether the address may be dialed.
func (d *dials) try(addr string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.tried[addr] {
		return false
	}
	if d.tried == nil {
		d.tried = map[string]bool{}
	}
	d.tried[addr] = true
	return true
}

// split takes apart what gRPC gives a dialer: "host:port", "unix:relative/path",
// "unix:///path", or the name of an abstract socket after a zero byte.
func split(addr string) (network, address string) {
	if path, ok := strings.CutPrefix(addr, "unix:"); ok {
		return "unix", strings.TrimPrefix(path, "//")
	}
	if strings.HasPrefix(addr, "\x00") {
		return "unix", addr
	}
	return "tcp", addr
}
