package testutil

import (
	"cmp"
	"maps"
	"slices"
	"sync"
)

// Store holds resources, and serves them on the streams of any number of servers: see [Store.Serve].
// Beside single resources it knows globs, list collections, redirects and aliases (xRFC TP1),
// aggregated or on the streams of single types, state of the world or delta. It holds one set of
// resources for all clients and all authorities, tells each client of the changes in what that
// subscribes to, in one response for each type, and is as good-natured as the protocol allows:
//
//   - A delta client that subscribes to a name is told at once that it does not exist, in
//     removed_resources, or is given it, also if the server thinks that it has it. One that
//     subscribes to a collection always gets a response: with the members, with the glob's
//     own URL in removed_resources if there are none, an empty one if it has them all.
//   - A glob covers the names with one more segment and exactly its context parameters. "*"
//     covers the old-style names of a type, and no structured one.
//   - initial_resource_versions are honoured: what is held is not sent again, and what is
//     gone is removed. A version_info at the beginning of a stream is not: everything is
//     sent.
//   - In state of the world a response of Listener or Cluster restates everything that is
//     subscribed to; one of another type has what changed or is newly subscribed to. Such a
//     client cannot be told that a member of a glob went. A resource is wrapped in
//     envoy.service.discovery.v3.Resource only if it needs it: for its TTL, its aliases,
//     its cache control, its metadata, or a name that does not stand in the message.
//   - A refused resource is not sent again before it changes or is subscribed to anew.
//
// Names are compared by their parts, so that a client may spell them in any way; a resource
// is sent under the name with which it was set.
//
// Its methods are safe for concurrent use. A client that does not read delays nobody else. In a
// testing/synctest bubble it is the bubble's own.
type Store struct {
	counter // taken after mu; all wait for its change

	mu       sync.Mutex
	shelves  map[string]*shelf // by type URL
	sessions map[*Stream]*session
	held     bool // nothing is sent
}

// NewStore makes a store that holds nothing yet.
func NewStore() *Store {
	return &Store{shelves: make(map[string]*shelf), sessions: make(map[*Stream]*session)}
}

// Serve has a server answer from the store. The test may still play a part on its streams.
func (s *Store) Serve() Option {
	return func(srv *Server) {
		OnStream(s.opened)(srv)
		OnRequest(s.heard)(srv)
	}
}

// Streams are those that are open now, in the order of their IDs.
func (s *Store) Streams() []*Stream {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.SortedFunc(maps.Keys(s.sessions), func(a, b *Stream) int { return cmp.Compare(a.ID, b.ID) })
}

// Hold keeps back all responses, or sends them on. Requests are read meanwhile.
func (s *Store) Hold(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held = on
	s.happened()
}
