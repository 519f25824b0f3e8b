package transport

import (
	"errors"
	"fmt"
)

var (
	// ErrClosed is the cause of a [*ConnectError] from a connection that was closed.
	ErrClosed = errors.New("the connection is closed")
	// ErrTarget is wrapped by an error of Build if gRPC cannot make a channel of a server's URI:
	// that server cannot be used, but others may.
	ErrTarget = errors.New("gRPC cannot dial the URI")
	// ErrStreamEnded is returned by Send on a stream that has ended. Recv returns the reason.
	ErrStreamEnded = errors.New("the stream is over")
)

// PollError says that a server answered a poll, but the client cannot use the answer. It is a
// gRPC status error too.
type PollError struct {
	Status int   // of HTTP
	Err    error // a gRPC status error
}

func (e *PollError) Error() string { return describe(e.Err) }

func (e *PollError) Unwrap() error { return e.Err }

// ConnectError says that a stream to a server could not be opened: no address, no connection, no
// handshake, no call credential. An error of an open stream is a gRPC status error.
type ConnectError struct {
	Server string // the server's URI, as [bootstrap.ManagementServer.Name] tells it
	// Err is a gRPC status error, [ErrClosed], or the cause of the end of the context; with a
	// carrier other than gRPC, that carrier's error.
	Err error
}

func (e *ConnectError) Error() string {
	return fmt.Sprintf("management server %q: no stream: %s", e.Server, describe(e.Err))
}

func (e *ConnectError) Unwrap() error { return e.Err }
