// Package endpoint reads a ClusterLoadAssignment: which endpoints may be used, how requests are
// shared among priorities, localities and endpoints, and which requests are dropped.
//
//	set := endpoint.New(assignment, endpoint.Config{})
//	if category, drop := set.Drop(rand.Uint64); drop { … }
//	e := set.Pick(rand.Uint64())
//	if e == nil { return errors.New(set.Reason()) }
//	conn, err := dialer.DialContext(ctx, e.Address.Network, e.Address.Addr)
//
// A [Set] is immutable, so any number of goroutines pick from it without a lock. A pick takes the
// same short time however many endpoints there are, and allocates nothing.
//
// # What is used
//
// Healthy endpoints, and those of unknown health. Draining ones take no new requests, but
// sessions that they have may stay ([Set.Draining]). Others are not used, and there is no panic
// mode: if nothing is healthy there is nothing to pick.
//
// As in Envoy a priority takes all requests while the share of its endpoints that are healthy, times
// the overprovisioning factor (140 % by default), is at least 100 %; what is left goes to the
// next. Localities share a priority by their weights, which shrink in the same way as their
// health; where no locality of a priority has a weight they count as many as their endpoints.
//
// gRPC reads it another way (Config.GRPC): the first priority with a usable endpoint takes
// everything, and a locality without weight takes nothing (gRFC A27).
//
// # Faults
//
// [Set.Err] lists what is wrong with an assignment, by the rules of gRFC A27. The rest of the
// assignment is used: of an address that comes twice the first, as Envoy does, and in place of an overprovisioning
// factor of 0, with which nothing would take a request, the default.
//
// The package needs Envoy's endpoint messages and nothing else of this module.
package endpoint
