package machine

import (
	"slices"

	"github.com/xdswatch/xdswatch/internal/wire"
)

// Source is the servers that answer for some names, in order of priority. The first is used. When it cannot be reached and
// something is lacking, the next one is used (gRFC A71).
type Source struct {
	Servers []int // indices of the machine's servers; at least one
	// ReachabilityOnly is gRFC A95's fallback_on_reachability_only: the next server is used
	// though nothing is lacking.
	ReachabilityOnly bool
	// Scope sets streams and subscriptions apart: sources of different scopes share none, so that the
	// same name may be subscribed to by both. In one scope a name has one source.
	Scope int
	// Answers says whether one of the servers answers for the structured names of an authority, so
	// that it may speak of those that nobody subscribed to by themselves. Always the same for the same;
	// nil says that it does for all.
	Answers func(server int, authority string) bool
	// Rest says whether an authority is one of those, of any number, that no other source of the scope serves; nil if
	// the source serves one authority, or old-style names.
	Rest func(authority string) bool
	// Params are what the names are subscribed to with, at servers that know them; nil for none.
	Params *wire.Params
	// Stored says that a store keeps the resources of types that are Stored.
	Stored bool
}

// source is a [Source] at work: which of its servers is active. Where a server has a stream
// for each type, there is one for each type.
//
// The active server's word counts. The client subscribes to the same names at the servers before it, and the first
// response of one makes it the active one again. At the servers after the active one it subscribes to nothing.
type source struct {
	Source
	index     int
	streams   []*stream // of the servers
	active    int
	watches   int      // that are not over
	shares    []*share // of the types that were watched
	heldBytes int64    // of the payloads of what is held, those that several subscriptions share once
	all       *Fault   // what withHigher returned last, so that many watches are told the same one
}

type sourceKey struct {
	source int
	url    string // "" if all types share streams
}

// AddSource adds a source and returns its index.
func (m *Machine) AddSource(s Source) int {
	m.sources = append(m.sources, s)
	return len(m.sources) - 1
}

// Servers are those of a source, in order of priority.
func (m *Machine) Servers(source int) []int { return m.sources[source].Servers }

// sourceKeyOf names the source that answers for a type's names.
func (m *Machine) sourceKeyOf(i int, typeURL string) sourceKey {
	key := sourceKey{source: i}
	if slices.ContainsFunc(m.sources[i].Servers, func(i int) bool { return m.servers[i].PerType }) {
		key.url = typeURL
	}
	return key
}

// sourceOf finds or makes the source that answers for a type's names.
func (m *Machine) sourceOf(i int, t *Type) *source {
	key := m.sourceKeyOf(i, t.URL)
	src := m.working[key]
	if src == nil {
		src = &source{Source: m.sources[i], index: i}
		for _, server := range src.Servers {
			s := m.streamFor(server, src.Scope, t)
			s.sources = append(s.sources, src)
			src.streams = append(src.streams, s)
		}
		m.working[key] = src
	}
	return src
}

// stream is that of the active server.
func (src *source) stream() *stream { return src.streams[src.active] }

// reached are the streams of the servers at which names are subscribed to: the active one and those before it.
func (src *source) reached() []*stream { return src.streams[:src.active+1] }

func (src *source) reaches(s *stream) bool { return slices.Contains(src.reached(), s) }

// standsBy says that a stream is that of a server before the active one: names are subscribed to there too, and it becomes
// active with its first response.
func (src *source) standsBy(s *stream) bool { return slices.Contains(src.streams[:src.active], s) }

// answersFor says whether one of the servers answers for the structured names of an authority.
func (src *source) answersFor(server int, authority string) bool {
	return src.Answers == nil || src.Answers(server, authority)
}

// lacks says whether something that is watched is unanswered, though a value from the store may be held.
func (src *source) lacks() bool {
	for _, sh := range src.shares {
		for sub := range sh.all() {
			if sub.wanted() && sub.unanswered() { // FALLBACK-1: an absence and a refused value are answers
				return true
			}
		}
	}
	return false
}
