package machine

import (
	"time"
)

// Count is how many resources are in one state.
type Count struct {
	CountKey
	N       int
	Updated int64 // when the newest of their values was accepted, in Unix nanoseconds; 0 without values
}

// CountKey is what resources are counted by.
type CountKey struct {
	TypeURL    string
	Structured bool   // an xdstp name
	Authority  string // the label of that of an xdstp name; empty of others
	Status     Status
	Held       bool // there is a value, whatever the status
	Stale      bool // it is from the store, and no server has spoken of it since
}

// Counts are resources, counted by what they have in common.
type Counts map[CountKey]*Count

// Count adds to counts the resources that a dump has, without the collections themselves. It looks at no more than
// most subscriptions, and says whether these were the last. Of what comes or goes between two calls, some may be
// counted twice, or not at all. Authorities are counted by their labels, of which there are few, whatever servers send.
func (m *Machine) Count(at *Listing, cs Counts, most int, label func(authority string) string) (done bool) {
	last := &Count{}
	return m.list(at, most, func(sub *subscription) {
		if sub.isCollection() {
			return
		}
		key := CountKey{
			TypeURL: sub.of.cache.typ.URL, Structured: structured(sub.name), Status: sub.shown(), Held: sub.held(), Stale: sub.stale(),
		}
		if key.Structured {
			key.Authority = label(sub.authority())
		}
		// There are runs of equal ones, and few keys for many resources.
		if last.CountKey != key {
			known := cs[key]
			if known == nil {
				known = &Count{CountKey: key}
				cs[key] = known
			}
			last = known
		}
		last.N++
		if key.Held {
			last.Updated = max(last.Updated, sub.updated)
		}
	})
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
		for _, l := range s.links {
			if !l.accepted.IsZero() && l.wanted() {
				as = append(as, Accepted{s.server, l.cache.typ.URL, l.accepted})
			}
		}
	}
	return as
}

// Throttled is what a rate does to a stream.
type Throttled struct {
	Server   int
	Enforced int // messages that had to wait, ever
	Pending  int // types of which something waits now
}

// Throttled lists the streams, for life, whose servers have a rate: a server may have several.
func (m *Machine) Throttled() (all []Throttled) {
	for _, s := range m.streams {
		if s.Rate.Every <= 0 {
			continue
		}
		t := Throttled{Server: s.server, Enforced: s.throttle.enforced}
		if s.state == up {
			t.Pending = s.throttle.pending
		}
		all = append(all, t)
	}
	return all
}
