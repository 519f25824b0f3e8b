package transport

import (
	"errors"

	"github.com/xdswatch/xdswatch/bootstrap"
)

// ByServer is a [Builder] that calls the builder for the kind of each server. It refuses a
// server whose kind has no builder.
type ByServer struct {
	GRPC Builder // of all other servers
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
