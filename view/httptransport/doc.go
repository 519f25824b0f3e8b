// Package httptransport sends HTTP requests by xDS: an [http.RoundTripper] that routes each
// request by a view's snapshot, picks an endpoint of its cluster, and keeps the connections.
//
//	v, err := view.New(ctx, c, view.Root{Type: view.RootListener, Name: "egress"}, view.Config{})
//	t := httptransport.New(v, httptransport.Config{})
//	defer t.Close()
//	resp, err := (&http.Client{Transport: t}).Get("http://backend.example/")
//
// With net/http/httputil's ReverseProxy it makes a proxy of a few lines.
//
// The cluster of a request is held until its response's body is closed, so it keeps its endpoints
// when routes have gone on to another (gRFC A74). Connections to an endpoint that was removed are
// closed as soon as they are idle; requests that run finish.
//
// Redirects and direct responses of routes are answered by the transport itself. It follows path
// and host rewrites, the route's timeout where the route has one, drops, and the circuit breaker's
// max_requests. It neither retries nor mirrors, and does not change headers; the route has them as
// data (package view/route).
//
// The timeout begins when the request's body has been read or closed, as Envoy's does: what bounds a body
// that does not end is the request's own context, and of a proxy http.Server's ReadTimeout.
//
// auto_host_rewrite counts only in routes from a management server that the bootstrap trusts
// (gRFC A81): by "trusted_xds_server" in gRPC's bootstrap; with Envoy's the program sets
// bootstrap.Features.TrustedXDSServer. With other servers the host stays that of the request.
package httptransport
