// Package sources numbers the servers and sources that a client's machine knows. They only grow.
package sources

import (
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/xdswatch/xdswatch/authority"
	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/internal/engine"
	"github.com/xdswatch/xdswatch/internal/machine"
	"github.com/xdswatch/xdswatch/internal/wire"
	"github.com/xdswatch/xdswatch/transport"
)

// Config is what sources need of a client.
type Config struct {
	// Override lets the program's choice for a server win over the bootstrap's.
	Override func(bootstrap.ManagementServer) bootstrap.ManagementServer
	// Make makes the engine's server.
	Make func(bootstrap.ManagementServer) engine.Server
	// Extend adds to what the machine knows.
	Extend func([]engine.Server, []machine.Source) error
	// Params are the dynamic parameters of a key's names.
	Params func(authority.Key) map[string]string
	// Stored says that there is a store.
	Stored bool
}

// Place is the key of a source: who answers for a name, and the scope.
type Place struct {
	authority.Key
	Scope string
}

// Source is one that the machine knows. It is not to be changed.
type Source struct {
	Place
	Servers []int // of the machine, in order of priority; at least one
}

// Sources are what the machine knows. Safe for concurrent use.
type Sources struct {
	config  Config
	rest    func(authority string) bool                  // see [machine.Source]
	servers atomic.Pointer[[]bootstrap.ManagementServer] // by machine server

	mu     sync.Mutex
	byKey  map[string]int    // servers
	away   map[int]error     // why a machine server cannot be dialled, whose URI says no target
	placed map[Place]int     // machine sources
	apart  map[[2]string]int // machine scopes: of a scope and a peer
	scopes []string          // what states call them, by machine scope
	all    []Source          // by machine source

	// named are the authorities with a source of their own. They are not under mu: the loop asks for them, and who holds
	// mu may be waiting for the loop.
	named sync.Map
}

// New makes the sources of a bootstrap, and returns what the machine is to know of them. The error joins what is wrong
// with servers.
func New(c Config, table *authority.Table) (s *Sources, servers []engine.Server, sources []machine.Source, err error) {
	s = &Sources{
		config: c, byKey: map[string]int{}, away: map[int]error{}, placed: map[Place]int{},
		apart: map[[2]string]int{{}: 0}, scopes: []string{""},
	}
	s.rest = rest(table) // tables of watches have the same authorities
	s.servers.Store(&[]bootstrap.ManagementServer{})
	var faults []error
	for _, from := range table.Sources() {
		added, source, err := s.add(table, Place{Key: from.Key}, from.Servers, from.FallbackOnReachabilityOnly)
		faults = append(faults, err)
		servers, sources = append(servers, added...), append(sources, source)
	}
	return s, servers, sources, errors.Join(faults...)
}

// Server is one that the machine knows.
func (s *Sources) Server(i int) bootstrap.ManagementServer { return s.Servers()[i] }

// Servers are all that the machine knows; not to be changed.
func (s *Sources) Servers() []bootstrap.ManagementServer { return *s.servers.Load() }

// Source is one that the machine knows.
func (s *Sources) Source(i int) Source {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all[i]
}

// Scopes are the names of the machine's scopes, by number. The scope of a source that a watch brought along
// is the watch's, followed by "@" and the name of the source's first server.
func (s *Sources) Scopes() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.scopes // who reads it keeps its length, so what is appended later is not seen
}

// Find gives the machine's source of a place, which it makes if there is none.
func (s *Sources) Find(table *authority.Table, at Place, r authority.Resolved) (source int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if source, ok := s.placed[at]; ok {
		return source, nil
	}
	added, made, err := s.add(table, at, r.Servers, r.FallbackOnReachabilityOnly)
	if err != nil {
		return 0, err
	}
	return s.placed[at], s.config.Extend(added, []machine.Source{made})
}

// add makes a source of a list of servers, and those of them that are new. Equal servers
// are one (gRFC A47). A server that cannot be configured leaves nothing behind; one whose URI
// cannot be dialled is as one that is down, if the source has another.
func (s *Sources) add(table *authority.Table, at Place, list []bootstrap.ManagementServer, reachabilityOnly bool) ([]engine.Server, machine.Source, error) {
	var added []engine.Server
	var faults []error
	away := maps.Clone(s.away)
	known, byKey := s.Servers(), map[string]int{} // who reads it keeps its length, so what is appended later is not seen
	source := machine.Source{Stored: s.config.Stored, ReachabilityOnly: reachabilityOnly, Params: wire.NewParams(s.config.Params(at.Key))}
	for _, server := range list {
		server = s.config.Override(server)
		source.Stored = source.Stored && server.File() == nil // the file is there, with its own permissions
		key := server.Key()
		i, old := s.byKey[key]
		if !old {
			var twice bool
			// CFG-3, STREAM-2: equal servers are one.
			if i, twice = byKey[key]; !twice {
				i, byKey[key] = len(known), len(known)
				es := s.config.Make(server)
				known, added = append(known, server), append(added, es)
				if err := configured(es); errors.Is(err, transport.ErrTarget) {
					away[i] = err
				} else {
					faults = append(faults, err)
				}
			}
		}
		if !slices.Contains(source.Servers, i) {
			source.Servers = append(source.Servers, i)
		}
	}
	// C-4: beside another one it is as a server that is down.
	if !slices.ContainsFunc(source.Servers, func(i int) bool { return away[i] == nil }) {
		for _, i := range source.Servers {
			faults = append(faults, away[i])
		}
	}
	if err := errors.Join(faults...); err != nil {
		return nil, machine.Source{}, err
	}
	maps.Copy(s.byKey, byKey)
	s.away = away
	s.servers.Store(&known)
	s.placed[at] = len(s.all)
	s.all = append(s.all, Source{at, source.Servers})
	source.Scope, source.Answers = s.scope(at, list), s.answers(table)
	if at.Default {
		source.Rest = s.rest
	} else if !at.Old {
		s.named.Store(at.Authority, true)
	}
	return added, source, nil
}

// rest says which authorities only the default source of a table serves.
func rest(table *authority.Table) func(authority string) bool {
	named := map[string]bool{}
	for _, s := range table.Sources() {
		if !s.Key.Old && !s.Key.Default {
			named[s.Key.Authority] = true
		}
	}
	return func(authority string) bool { return !named[authority] }
}

// Label is an authority as metrics show it (METRIC-2).
func (s *Sources) Label(of string) string {
	if _, named := s.named.Load(of); named {
		return of
	}
	return authority.DefaultLabel
}

// answers says which of the machine's servers answer for an authority in a table. It is called by
// the loop alone.
func (s *Sources) answers(table *authority.Table) func(server int, authority string) bool {
	type question struct {
		list   *bootstrap.ManagementServer // the first of a list, which equal ones share
		server int
	}
	known := map[question]bool{}
	return func(server int, authority string) bool {
		list := table.Servers(authority)
		if len(list) == 0 {
			return false
		}
		q := question{&list[0], server}
		is, ok := known[q]
		if !ok {
			key := s.Server(server).Key()
			// H-11: who may say names of the authority.
			is = slices.ContainsFunc(list, func(of bootstrap.ManagementServer) bool { return s.config.Override(of).Key() == key })
			known[q] = is
		}
		return is
	}
}

// configured says what is wrong with the configuration of a server.
func configured(s engine.Server) error {
	conn, err := s.Connect()
	if err != nil {
		return err
	}
	return conn.Close() // it was never dialled
}

// scope returns the machine's number for a scope and the peer that brought sources along.
func (s *Sources) scope(at Place, list []bootstrap.ManagementServer) int {
	// FALLBACK-2: what shares no streams falls back by itself.
	key := [2]string{at.Scope, at.Peer}
	i, ok := s.apart[key]
	if !ok {
		i = len(s.apart)
		s.apart[key] = i
		name := at.Scope
		if at.Peer != "" {
			name += "@" + list[0].Name()
		}
		s.scopes = append(s.scopes, name)
	}
	return i
}
