package bootstrap

import (
	"slices"
	"time"
)

// Carrier says how a management server is reached: [*GRPC], [*REST] or [*File].
type Carrier interface {
	clone() Carrier
}

// GRPC is the carrier of a server that is dialled and serves gRPC streams.
type GRPC struct {
	// KeepaliveTime is how long a connection may be silent until the client pings the server;
	// gRPC takes less than 10 seconds for 10. 0 leaves it to the client, whose own setting has
	// precedence (Envoy's connection_keepalive: interval).
	KeepaliveTime time.Duration
	// KeepaliveTimeout is how long the server may take to answer the ping before the connection
	// counts as lost; 0 leaves it to the client (Envoy's connection_keepalive: timeout).
	KeepaliveTimeout time.Duration
}

// REST is how a server is polled over HTTP with JSON (Envoy's ApiConfigSource of type
// REST). It serves single types in state of the world only, each with polls of its own, as if
// [ManagementServer.PerType] was set; [ManagementServer.Delta] must not be.
type REST struct {
	// Endpoints are the addresses of the server, in order (Envoy's cluster_names): after a
	// failed poll of one the client tries the next, and the first after the last. Required.
	Endpoints []RESTEndpoint
	// RefreshDelay is the wait between the end of a poll and the next one; jitter makes it up to
	// twice as long (refresh_delay). Required. Make it short if the server holds back its
	// responses until there is a change.
	RefreshDelay time.Duration
	// RequestTimeout bounds a poll from its request to the end of its response
	// (request_timeout); 0 means one second. Make it longer than the server holds back
	// responses.
	RequestTimeout time.Duration
}

// RESTEndpoint is one address of a polled server.
type RESTEndpoint struct {
	// Address is "host:port", which may follow "dns:///"; "unix:/path"; or
	// "unix-abstract:name". Required.
	Address string
	// Authority is sent as the host of each request; Envoy sends the cluster's name. ""
	// means the server's HostAuthority, and else Address.
	Authority string
	// ChannelCreds are those of this endpoint; without a Type the server's apply.
	ChannelCreds ChannelCreds
}

// File is a file that holds a DiscoveryResponse or a list collection
// (envoy.config.core.v3.PathConfigSource).
type File struct {
	// Path of the file, which has to exist when it is first read. Required.
	Path string
	// WatchedDirectory is a directory in which any change may mean that the file has changed,
	// such as that of a Kubernetes ConfigMap volume; "" for none. The directories in the path
	// are watched without it.
	WatchedDirectory string
}

func (g *GRPC) clone() Carrier {
	out := *g
	return &out
}

func (r *REST) clone() Carrier {
	out := *r
	out.Endpoints = slices.Clone(r.Endpoints)
	return &out
}

func (f *File) clone() Carrier {
	out := *f
	return &out
}

// GRPC returns the Carrier of a server that is dialled over gRPC, the zero one if it has none;
// nil for any other.
func (s ManagementServer) GRPC() *GRPC {
	if s.Carrier == nil {
		return &GRPC{}
	}
	g, _ := s.Carrier.(*GRPC)
	return g
}

// REST returns the Carrier of a server that is polled over HTTP; nil for any other.
func (s ManagementServer) REST() *REST {
	r, _ := s.Carrier.(*REST)
	return r
}

// File returns the Carrier of a server that is a file; nil for any other.
func (s ManagementServer) File() *File {
	f, _ := s.Carrier.(*File)
	return f
}

// carrierFault is what is wrong with a Carrier as such.
func carrierFault(c Carrier) string {
	switch c := c.(type) {
	case nil:
		return ""
	case *GRPC:
		if c != nil {
			return ""
		}
	case *REST:
		if c != nil {
			return ""
		}
	case *File:
		if c != nil {
			return ""
		}
	}
	return "is a nil pointer"
}
