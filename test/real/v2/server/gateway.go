package main

import (
	"context"
	"net/http"

	api "github.com/envoyproxy/go-control-plane/envoy/api/v2"
	xds "github.com/envoyproxy/go-control-plane/pkg/server/v2"
)

// gateway is what is polled.
type gateway struct{ xds.HTTPGateway }

// ServeHTTP answers as a program around the old gateway did.
func (g *gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, code, err := g.HTTPGateway.ServeHTTP(r)
	if err != nil {
		http.Error(w, err.Error(), code)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(body) // the client may be gone
}

// OnFetchRequest tells of a poll. The other callbacks are for streams.
func (j *journal) OnFetchRequest(_ context.Context, r *api.DiscoveryRequest) error {
	return j.tell("poll", r)
}

// The server's other callbacks.
func (*journal) OnFetchResponse(*api.DiscoveryRequest, *api.DiscoveryResponse)         {}
func (*journal) OnStreamOpen(context.Context, int64, string) error                     { return nil }
func (*journal) OnStreamClosed(int64)                                                  {}
func (*journal) OnStreamRequest(int64, *api.DiscoveryRequest) error                    { return nil }
func (*journal) OnStreamResponse(int64, *api.DiscoveryRequest, *api.DiscoveryResponse) {}
