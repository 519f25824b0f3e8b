package client

import "github.com/xdswatch/xdswatch/internal/engine"

// Metrics are hooks for what gRFC A78 counts; [Client.Gauges] has the rest. Any field may
// be nil. The functions are called like those of [Trace] and never by the client's own
// loop: one at a time for each server; while one runs, events wait, and so does the
// server's next response. What happens while the client closes may not be counted.
type Metrics struct {
	// Connected is grpc.xds_client.connected, called when it changes. A server is
	// connected when its first stream is asked for, and no longer when a stream could not
	// be had or ended before its first response; then again at a response, or at what counts
	// as one: two seconds of silence on a new stream on which the server was told what is held
	// and owes nothing, or the end of a stream that is laid to one type. With one stream a
	// type, it is connected while none of them fails.
	Connected func(ServerHealth)
	// ServerFailure is grpc.xds_client.server_failure: the server is no longer connected.
	// Further failures before a response are no news.
	ServerFailure func(server string)
	// ResourceUpdatesValid is grpc.xds_client.resource_updates_valid: resources of a
	// response that are good, also those that have not changed. It is called at most once a
	// response, with what to add.
	ResourceUpdatesValid func(UpdateCount)
	// ResourceUpdatesInvalid is grpc.xds_client.resource_updates_invalid: resources of a
	// response that were refused. A file that cannot be used counts as one of each type that
	// is watched. Resources that were not asked for are not looked at and count in neither.
	ResourceUpdatesInvalid func(UpdateCount)
}

// ServerHealth says whether a server is connected, as [Metrics] means it.
type ServerHealth struct {
	Server    string // URI
	Connected bool
}

// UpdateCount is how many resources of one response were good, or were not.
type UpdateCount struct {
	Server    string // URI
	Type      string // URL
	Resources int    // more than 0
}

// counters makes the engine's hooks of the program's.
func (c *Client) counters() *engine.Metrics {
	m := c.config.Metrics
	if m == nil {
		return nil
	}
	const panicked = "a metrics function panicked"
	return &engine.Metrics{
		Connected: func(server int, connected bool) {
			defer c.survive(panicked, server)
			uri := c.server(server).URI
			call(m.Connected, ServerHealth{uri, connected})
			if !connected {
				call(m.ServerFailure, uri)
			}
		},
		Updates: func(server int, typeURL string, valid, invalid int) {
			defer c.survive(panicked, server)
			count := UpdateCount{Server: c.server(server).URI, Type: typeURL}
			if count.Resources = valid; valid > 0 {
				call(m.ResourceUpdatesValid, count)
			}
			if count.Resources = invalid; invalid > 0 {
				call(m.ResourceUpdatesInvalid, count)
			}
		},
	}
}
