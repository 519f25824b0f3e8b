// Package xdswatch is the root of an xDS client library: programs subscribe to resources
// at management servers (listeners, routes, clusters, endpoints, secrets, types of their
// own) and hear of their changes, through reconnects and failures. This package itself is
// empty; see the example of package watcher for a whole program.
//
// A program imports
//
//   - bootstrap, to say which management servers there are: gRPC's JSON or Envoy's JSON
//     and YAML, or a Config made by hand;
//   - client, to make a client of that, and for the kinds of events and errors;
//   - watcher, to watch with it: one resource, a set of them, a whole collection, or a
//     lookup on demand, all typed;
//   - resource/cds, resource/eds, resource/lds and their neighbours, for the types of
//     Envoy's APIs that it uses; resource, for types of its own.
//
// Its tests import testutil: management servers that do what a test tells them, or that
// are the real thing.
//
// # Floors
//
// A package imports only what stands below it.
//
//	watcher           typed watches, sets, collections, iterators, lookups
//	client            the façade: watches, readiness, state, hooks
//	internal/engine   the loop that owns the machine, and all goroutines
//	internal/machine  the protocol as a pure function
//	transport         streams of raw bytes: gRPC, or what a program brings
//	authority         from a name to the servers that are asked for it
//	bootstrap         configuration; the only reader of its files and environment
//	resource          type URL, name, decoding and validation of a type
//	xdstp             names
//
// # What holds everywhere
//
// What a client accepted stays until a server says otherwise, its time to live runs out,
// or nobody watches it: a lost connection, an unreachable server and an invalid update
// take nothing away. Handlers are called one at a time and in the order in which the
// server spoke; they may watch, stop and close. There is no mutable global state, and the
// environment is read only by bootstrap.FromEnv.
package xdswatch
