// Package lives leads a client through random lives against real management servers,
// go-control-plane's with its three caches, Cilium's and Contour's, and compares what its watches
// say with what those hold. It is a module of its own, since it needs those projects; its path is
// below Contour's, whose server is internal.
//
// A life is a list of steps that its seed decides: watches of wildcards and names begin and
// end, resources come, change and go, the server is killed and begins again with versions that
// count from the start. Client, gRPC and server are the real ones, joined in memory, and time
// is fake, so that a life of many minutes takes some milliseconds. A life that fails is made
// shorter as long as it fails in the same way, and printed with all that was said.
//
//	go test . -args -seed 7 -only snapshot/delta -for 10m
package lives
