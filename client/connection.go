package client

import (
	"context"
	"fmt"
	"time"

	"github.com/xdswatch/xdswatch/internal/engine"
	"github.com/xdswatch/xdswatch/internal/redact"
	"github.com/xdswatch/xdswatch/transport"
)

// Connection is the connection to a management server, which the client's own streams use too,
// for another protocol that the server speaks on it: package
// [github.com/xdswatch/xdswatch/load] reports load on it. Its methods are safe for concurrent use.
type Connection struct{ use *engine.Use }

// Connect keeps the connection to a management server until [Connection.Close], also while the
// client needs no stream of its own there. The server is one of the client's over gRPC, by the URI
// that events have in Event.Server, or the bootstrap; of several with one URI, such as one with other
// features, the first. It does no network I/O: [Connection.Open] dials if there is no connection.
//
// Errors: [ErrClosed], and one that says that the client has no such server, or that its carrier
// or its version of the transport has no other protocols.
func (c *Client) Connect(server string) (*Connection, error) {
	err := fmt.Errorf("xds: the client has no server %q", redact.Target(server))
	for i, s := range c.sources.Servers() {
		switch {
		case s.Name() != server && s.URI != server:
		case s.REST() != nil || s.File() != nil || s.TransportV2:
			err = fmt.Errorf("xds: server %q is not reached over gRPC in version 3", redact.Target(server))
		default:
			if use := c.engine.Use(i); use != nil {
				return &Connection{use}, nil
			}
			return nil, ErrClosed
		}
	}
	return nil, err
}

// Open opens a stream of a gRPC method, with the headers and credentials of the bootstrap; see
// [transport.Conn]. It blocks while it dials; it does not wait for a server that is away. The
// stream ends with ctx, and with the client. Errors: those of the transport's Build and Open, and ctx's.
// It must not be called after Close.
func (x *Connection) Open(ctx context.Context, method string) (transport.Stream, error) {
	return x.use.Open(ctx, method)
}

// Pause returns how long to wait before the next stream is opened, by the client's backoff:
// longer after each attempt that failed, short and random after a stream that served, on which the
// server has answered. It does not block. Each call is the end of one attempt: with served false it makes
// the next wait longer.
func (x *Connection) Pause(served bool) time.Duration { return x.use.Pause(served) }

// Close lets the connection go, which is closed if nothing else uses it. Streams should be closed
// before. A second call does nothing.
func (x *Connection) Close() { x.use.Release() }
