// Package grpcresolver lets gRPC channels find their servers by xDS, with a client of this
// module: over both variants, with its federation, its fallback, and one stream for the whole
// program.
//
//	grpc.NewClient("xdswatch:///listener", grpc.WithResolvers(grpcresolver.NewBuilder(c)), …)
//	grpc.NewClient("xdswatch-eds:///backend", grpc.WithResolvers(grpcresolver.NewEDSBuilder(c)), …)
//
// "xdswatch" follows a listener, its routes, clusters and endpoints, as gRPC's own "xds" does: the
// channel's authority chooses the virtual host, and the method and the metadata of an RPC the route.
// Routes with query_parameters, cluster_header, inline_cluster_specifier_plugin or a cluster_specifier_plugin that
// is_optional are left out, as in gRPC.
// "xdswatch-eds" follows one ClusterLoadAssignment, for a server that has endpoints alone.
//
// Each change replaces the channel's endpoints as a whole. Both bring a load balancing policy of
// their own, named [Policy]: it chooses route and cluster (gRPC keeps config selectors to its own
// resolvers), and an endpoint among those that are connected, by priority and weight. Endpoints that
// have been connecting for ten seconds hold up no RPC: those of the next priority are used (gRFC A56). An RPC for
// which there is no endpoint fails with the reason: which resource does not exist, or what
// its server has said.
//
// An RPC over the max_requests of its cluster fails (gRFC A32). Routes with auto_host_rewrite give RPCs
// the hostname of their endpoint as authority, if the server is trusted (gRFC A81).
//
// Not used are timeouts and retries of routes, and the transport sockets of clusters: as in gRPC
// without xDS credentials, the channel's credentials are used (gRFC A29).
package grpcresolver
