package machine

import (
	"slices"
	"time"

	"github.com/xdswatch/xdswatch/xdstp"
)

// Count is how many resources are in one state.
type Count struct {
	CountKey
	N int
}

// CountKey is what resources are counted by.
type CountKey struct {
	TypeURL    string
	Structured bool   // an xdstp name
	Authority  string // of an xdstp name; empty of others
	Status     Status
	Held       bool // there is a value, whatever the status
}

// Counts counts the resources that are wanted by name or that a collection's server spoke
// of, in no order. The collections themselves are no resources.
func (m *Machine) Counts() []Count {
	var cs []Count
	for _, s := range m.streams {
		for _, ts := range s.order {
			cs = ts.count(cs)
		}
	}
	return cs
}

// count adds up runs of equal entries, of which there are few for many resources.
func (ts *typeState) count(cs []Count) []Count {
	first := len(cs)
	last := first
	for e := range ts.entries.all() {
		if e.pinned || !e.wanted() && !ts.member(e) {
			continue
		}
		key := CountKey{TypeURL: ts.typ.URL, Structured: xdstp.IsXDSTP(e.name), Status: e.status, Held: e.held()}
		if key.Structured {
			key.Authority = e.authority()
		}
		if last == len(cs) || cs[last].CountKey != key {
			if i := slices.IndexFunc(cs[first:], func(c Count) bool { return c.CountKey == key }); i >= 0 {
				last = first + i
			} else {
				last = len(cs)
				cs = append(cs, Count{CountKey: key})
			}
		}
		cs[last].N++
	}
	return cs
}

// Accepted is when the last response of a type without an invalid resource was taken in.
type Accepted struct {
	Server  int
	TypeURL string
	At      time.Time
}

// Accepted lists the types that are wanted and have had such a response.
func (m *Machine) Accepted() []Accepted {
	var as []Accepted
	for _, s := range m.streams {
		for _, ts := range s.order {
			if !ts.accepted.IsZero() && ts.wanted() {
				as = append(as, Accepted{s.server, ts.typ.URL, ts.accepted})
			}
		}
	}
	return as
}
