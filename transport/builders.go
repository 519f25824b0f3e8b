package transport

import (
	"errors"

	"github.com/xdswatch/xdswatch/bootstrap"
)

// ByServer is the [Builder] that leaves each server to the builder of its kind. A kind
// whose builder is nil is refused.
type ByServer struct {
	GRPC Builder // of servers that are neither of the others
	REST Builder // of servers with [bootstrap.ManagementServer.REST]
}

// Build makes a connection to the server.
func (b ByServer) Build(s bootstrap.ManagementServer) (Conn, error) {
	builder, kind := b.GRPC, "gRPC"
	if s.REST() != nil {
		builder, kind = b.REST, "REST"
	}
	if builder == nil {
		return nil, buildError(s, errors.New("nothing makes connections over "+kind))
	}
	return builder.Build(s)
}
