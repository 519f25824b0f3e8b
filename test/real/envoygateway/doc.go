// Package envoygateway holds tests of the client against Envoy Gateway as it is: a
// process that reads Gateway API resources from a file, and serves what it makes of them with
// mutual TLS. It is a module of its own, and not among those that are always tested, because
// Envoy Gateway takes minutes to build, and has a port of its own that has to be free.
package envoygateway
