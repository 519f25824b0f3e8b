package client

import "github.com/xdswatch/xdswatch/internal/machine"

// Metrics are hooks for what gRFC A78 counts; [Client.Gauges] has the rest. Any field may be
// nil. The functions are called like those of [Trace] and never by the client's own loop, one at
// a time for each server; while one runs, events wait, and so does the server's next response.
// The client may not count what happens while it closes.
type Metrics struct {
	// Connected is grpc.xds_client.connected, called when it changes. A server is connected when
	// the client asks for its first stream, and no longer when the client could not get a stream
	// or a stream ended before its first response. It is connected again at a response, or at
	// one of two signs that count as one: two seconds of silence on a new stream on which the
	// client has sent what it holds and waits for nothing, or the end of a stream that the
	// client puts down to one type. With one stream for each type, it is connected while none of
	// them fails.
	Connected func(ServerHealth)
	// ServerFailure is grpc.xds_client.server_failure: the server is no longer connected. It is
	// not called for further failures before a response.
	ServerFailure func(server string)
	// ResourceUpdatesValid is grpc.xds_client.resource_updates_valid: the good resources of a
	// response, also those that have not changed. It is called at most once for each response,
	// with the number to add.
	ResourceUpdatesValid func(UpdateCount)
	// ResourceUpdatesInvalid is grpc.xds_client.resource_updates_invalid: the resources of a
	// response that the client refused, or that the server sent an error in place of. A file that
	// cannot be used counts as one of each type that is watched. The client does not look at
	// resources that it did not subscribe to; they count in neither.
	ResourceUpdatesInvalid func(UpdateCount)
}

// ServerHealth says whether a server is connected, as [Metrics] defines it.
type ServerHealth struct {
	Server    string // URI, as in [Event]
	Connected bool
}

// UpdateCount is how many resources of one response were good, or were not.
type UpdateCount struct {
	Server    string // URI, as in [Event]
	Type      string // URL
	Resources int    // more than 0
}

// count calls the program's functions.
func (c *Client) count(n *machine.Notice) {
	const panicked = "a metrics function panicked"
	m, uri := c.config.Metrics, c.uri(n.Server)
	switch n.Kind {
	case machine.NoticeConnected:
		call(c, panicked, uri, m.Connected, ServerHealth{uri, true})
	case machine.NoticeDisconnected:
		call(c, panicked, uri, m.Connected, ServerHealth{uri, false})
		call(c, panicked, uri, m.ServerFailure, uri)
	case machine.NoticeEnd:
		// METRIC-1: updates, valid and not.
		if n.Valid > 0 {
			call(c, panicked, uri, m.ResourceUpdatesValid, UpdateCount{uri, n.TypeURL, n.Valid})
		}
		if n.Invalid > 0 {
			call(c, panicked, uri, m.ResourceUpdatesInvalid, UpdateCount{uri, n.TypeURL, n.Invalid})
		}
	}
}
