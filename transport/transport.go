// Package transport carries the bytes of discovery requests and responses. It handles
// connections, credentials and streams, and does not read the bytes, except for REST, which
// converts them from and to JSON.
package transport

import (
	"context"

	"google.golang.org/grpc/mem"

	"github.com/xdswatch/xdswatch/bootstrap"
)

// Methods of the aggregated discovery service.
const (
	MethodADS      = "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources"
	MethodADSDelta = "/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources"
)

// Builder makes connections to management servers. Safe for concurrent use.
type Builder interface {
	// Build makes a connection to a server without dialling it; its errors are faults of the
	// configuration. The caller closes the connection. A client calls Build when a stream needs
	// the connection, and again after an error. Other streams of the server wait for it, and so
	// does the client's Close, which Build must not call. A panic of Build, or of the
	// connection's Open, makes that attempt fail; so does [runtime.Goexit] there, and in Recv of a stream.
	Build(bootstrap.ManagementServer) (Conn, error)
}

// Conn is the connection to one management server, shared by its streams. It dials when a stream
// is opened, and again at each attempt after one without a connection, with no wait of its own
// between attempts. Safe for concurrent use.
type Conn interface {
	// Open blocks until a stream is open, the attempt failed, or ctx ended; it does not wait for
	// a server that is away. A stream may be open before the server has answered. The error is a
	// [*ConnectError]. The stream lives until it fails, is closed, or ctx ends, so ctx must not
	// be that of the attempt alone.
	Open(ctx context.Context, method string) (Stream, error)
	// Close ends the connection and all its streams; Open then returns an error that is
	// [ErrClosed]. It does not wait for the streams' readers. A second call does nothing.
	Close() error
}

// Stream is one bidirectional stream. One goroutine may send while another receives.
type Stream interface {
	// Send sends one message, given in consecutive parts. It blocks while the peer's flow
	// control does. It does not copy the parts, and may use them for as long as the stream
	// lives: the caller must not modify them after the call, but may send them again.
	// [ErrStreamEnded] says that the stream has ended; Recv returns why.
	Send(msg ...[]byte) error
	// Recv blocks until the next message. The error after the last one is a gRPC status error;
	// io.EOF means that the stream ended with status OK. After an error it returns the same
	// error again.
	Recv() (Frame, error)
	// Close ends the stream at once: messages on their way may be lost, and a blocked Send
	// or Recv returns with an error. It may be called at any time, from any goroutine, and
	// more than once.
	Close()
}

// SendCloser is a [Stream] that can be ended by the client after everything that was sent, as one
// over gRPC can: the server sees the end of the requests, and ends the stream itself. Send must
// not be called any more; messages can still be received.
type SendCloser interface {
	Stream
	CloseSend() error
}

// Frame is a received message.
type Frame struct {
	// Parts are the message, one after another. They belong to the receiver until Free.
	Parts [][]byte
	// Renewed are the indices of resources that count as new even if their bytes are the same:
	// what they refer to has changed. nil for none.
	Renewed map[int]bool
	// Faults say why resources cannot be read that came in another form than the wire's, by their
	// indices; nil for none. The message has their names, as far as these are known. The client
	// refuses these resources.
	Faults map[int]error

	buffers mem.BufferSlice // that Parts are of; nil if they are garbage like any other
	share   *share          // of the budget for large messages; nil if it needs none
}

// Free gives the bytes back for use in another message; nothing may refer to them any more. A
// frame need not be freed, and may be freed once. While one of more than 8 MiB is not, the next
// of its connection may have to wait for five seconds.
func (f Frame) Free() {
	f.buffers.Free()
	f.share.release()
}

// Discarded is a frame without the bytes of this one, which are garbage once nothing refers to
// them. It is to be freed instead.
func (f Frame) Discarded() Frame { return Frame{share: f.share} }
