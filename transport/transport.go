// Package transport carries the bytes of discovery requests and responses. It knows of
// connections, credentials and streams, and nothing of what the bytes mean.
package transport

import (
	"context"

	"github.com/xdswatch/xdswatch/bootstrap"
)

// Methods of the aggregated discovery service.
const (
	MethodADS      = "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources"
	MethodADSDelta = "/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources"
)

// Builder makes connections to management servers. Safe for concurrent use.
type Builder interface {
	// Build makes a connection to a server without dialling it; its errors are faults of
	// the configuration.
	Build(bootstrap.Server) (Conn, error)
}

// Conn is the connection to one management server, shared by its streams. It dials when a
// stream is opened, and anew for each attempt after one that found no connection. Safe
// for concurrent use.
type Conn interface {
	// Open blocks until a stream stands, the attempt failed, or ctx ended. The stream
	// lives until it fails, is closed, or ctx ends.
	Open(ctx context.Context, method string) (Stream, error)
	// Close ends the connection and all its streams. It does not wait for them.
	Close() error
}

// Stream is one bidirectional stream. One goroutine may send while another receives.
type Stream interface {
	// Send blocks while the peer's flow control does. The message is not kept.
	Send(msg []byte) error
	// Recv blocks for the next message; the bytes are the caller's own. The error after
	// the last one is a gRPC status error; io.EOF is a stream that ended with status OK.
	Recv() ([]byte, error)
	// Close ends the stream; a blocked Send or Recv returns with an error.
	Close()
}
