package bootstrap

import (
	"slices"
	"time"
)

// Carrier says how a management server is reached: [*GRPC], [*REST] or [*File].
type Carrier interface {
	clone() Carrier
}

// GRPC is a server that is dialled and answers on streams of gRPC.
type GRPC struct {
	// KeepaliveTime is the silence on a connection after which the server is asked for a sign
	// of life; gRPC takes less than 10 seconds for 10. 0 leaves it to the client, whose own
	// setting wins (Envoy's connection_keepalive: interval).
	KeepaliveTime time.Duration
	// KeepaliveTimeout is how long the server may take to give it before the connection counts
	// as lost; 0 leaves it to the client (Envoy's connection_keepalive: timeout).
	KeepaliveTimeout time.Duration
}

// REST is how a server is polled over HTTP with JSON (Envoy's ApiConfigSource of type
// REST). It serves single types in state of the world only, each with polls of its own, as if
// [ManagementServer.PerType] was set; [ManagementServer.Delta] must not be.
type REST struct {
	// Endpoints are where the server can be reached, in order (Envoy's cluster_names): the
	// next is tried when a poll of one fails, and the first after the last. Required.
	Endpoints []RESTEndpoint
	// RefreshDelay is the wait between the end of a poll and the next one, before jitter
	// makes it up to twice as long (refresh_delay). Required. It is short where the server
	// holds back its answers until there is news.
	RefreshDelay time.Duration
	// RequestTimeout bounds a poll from its request to the end of its response
	// (request_timeout); 0 means one second. It is longer than the server holds answers
	// back.
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
	// ChannelCreds are those of this endpoint; without a Type those of the server.
	ChannelCreds ChannelCreds
}

// File is a file that holds a DiscoveryResponse or a list collection
// (envoy.config.core.v3.PathConfigSource).
type File struct {
	// Path of the file, which has to exist when it is first read. Required.
	Path string
	// WatchedDirectory is a directory in which any change may mean that the file is
	// another, such as that of a Kubernetes ConfigMap volume; "" for none. The directories
	// that the path leads through are watched without it.
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

// GRPC is the Carrier of a server that is dialled over gRPC, the zero one where it has none;
// nil for any other.
func (s ManagementServer) GRPC() *GRPC {
	if s.Carrier == nil {
		return &GRPC{}
	}
	g, _ := s.Carrier.(*GRPC)
	return g
}

// REST is the Carrier of a server that is polled over HTTP; nil for any other.
func (s ManagementServer) REST() *REST {
	r, _ := s.Carrier.(*REST)
	return r
}

// File is the Carrier of a server that is a file; nil for any other.
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
