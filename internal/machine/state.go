package machine

import (
	"math"
	"time"
)

// Machine is the state of the protocol. Not safe for concurrent use.
type Machine struct {
	config    Config
	servers   []*Server
	sources   []Source
	working   map[sourceKey]*source // the sources that are used
	caches    map[cacheKey]*cache
	streams   []*stream
	agenda    agenda
	slots     map[slot]*stream
	serial    serial // of the last response
	lastAlarm timer
	params    []ParamsChanged // of types for which they were changed, in the order of the first change
	node      []byte          // of the newest stream
	fx        Effects

	sifting []*response // with long lists of removed names, some of which are looked at in each step
	stepped time.Time   // when the last step was
	late    bool        // the last tick was late

	discarded Notice          // one without watches is written here; used again
	found     []*subscription // what a response speaks of; used again
	ready     []planned       // of a response; its room is used again
}

// slot names a stream for life: by its server and scope, and by its type where the server has a stream for each.
type slot struct {
	server, scope int
	url           string
}

// longest is a time that does not pass, and can be added to another.
const longest = math.MaxInt64 / 4

// touch finds the stream of an event and has it looked at. It returns nil if that incarnation of the stream is over.
func (m *Machine) touch(r Ref) *stream {
	s := m.streams[r.Stream]
	if m.agenda.touch(s); s.ref != r {
		return nil
	}
	return s
}
