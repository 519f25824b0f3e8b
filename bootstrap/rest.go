package bootstrap

import "time"

// REST is how a server is polled over HTTP with JSON (Envoy's ApiConfigSource of type
// REST). It serves single types in state of the world only.
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
