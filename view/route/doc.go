// Package route finds the route of a request in a RouteConfiguration, as Envoy and gRPC do:
// the virtual host by its domains, the route by path, headers, query and fraction, then the
// cluster, the redirect or the response that the route asks for.
//
//	table := route.Compile(rc, table)      // shares what has not changed
//	req := route.FromHTTP(r)
//	found, err := table.Match(&req)
//	cluster := found.Choose(&req).Cluster
//
// A [Table] is compiled once for each version of a configuration. It is immutable, so any
// number of goroutines use it without a lock. A match allocates nothing, unless it has to join
// the values of a header that came several times, or path and query (the header ":path").
//
// # Faults
//
// A server may send a route that cannot be used: a regular expression that does not compile, takes too many
// steps or finds no room beside those before it, or a condition that this package does not know. With what
// they repeat, each regular expression of a configuration may take 2,048 steps, and all together 1,048,576,
// beside one for each of their bytes. Such a fault concerns that route alone; [Table.Err] lists all of them.
// A condition in fault counts as fulfilled, and a request that reaches the route gets the fault as its error.
// So a fault never sends a request to a later route that was not meant for it. Requests of gRPC
// (Request.GRPC) ignore conditions on cookies, TLS, dynamic metadata and filter state, and
// treat_missing_header_as_empty and vhost_header, as gRPC does (gRFC A28). They also ignore faults in these conditions and
// in rewrites.
//
// Not known are match trees (VirtualHost.matcher), path templates, matchers on dynamic metadata,
// filter state and TLS, custom string matchers, cluster specifier plugins, format specifiers in
// rewrites, and bodies of direct responses from files.
//
// # Paths
//
// [Table.Match] takes path and host as they are. What an HttpConnectionManager does to them first
// (normalize_path, merge_slashes, path_with_escaped_slashes_action, strip_any_host_port,
// strip_matching_host_port, strip_trailing_host_dot) is a [Normalization]; a view has it beside the routes.
// Where routes keep requests away from something, a path such as /public/../private has to be normalized, or
// refused, before it is matched, and be forwarded as it was matched:
//
//	redirect, err := normalization.Apply(&req, port) // in an http.Handler Normalization.Admit
//
// The package needs Envoy's route messages and nothing else of this module.
package route
