package machine

import (
	"slices"
	"time"

	"github.com/xdswatch/xdswatch/internal/wire"
)

// Resource is the state of one subscription or held resource.
type Resource struct {
	Server    int
	TypeURL   string
	Name      string // of a collection "*" or the URL of a glob
	Authority string
	Status    Status
	Version   string // of the held value
	Raw       []byte // the held value; nil if none. Not to be changed
	// Attributes stand beside Raw; nil if none do. Not to be changed.
	Attributes *wire.Attributes
	Updated    time.Time
	Fault      *Fault
	Watched    bool   // by name; a collection's members may not be
	Reason     Reason // why there is no resource; of StatusDoesNotExist, also where the value is kept
	Refused    []byte // the payload that Fault refused; nil where it is not kept. Not to be changed
	Locator    bool   // Raw is an xds.core.v3.ResourceLocator: the resource is there
}

// Dump lists everything that is wanted by name, and what is held of collections that are, by
// stream and type and there in no order. What is wanted no more is not listed while the server
// was not told yet.
func (m *Machine) Dump() []Resource {
	var rs []Resource
	for _, s := range m.streams {
		for _, ts := range s.order {
			for _, c := range ts.collectionsOf(nil) {
				if len(c.watches) > 0 {
					rs = append(rs, c.dump())
				}
			}
			rs = slices.Grow(rs, ts.entries.len())
			for e := range ts.entries.all() {
				if !e.pinned && !e.left() && (e.wanted() || e.of.wanted()) {
					rs = append(rs, e.dump())
				}
			}
		}
	}
	return rs
}

// left says that an entry is of a server that its chain has left, and is to be forgotten
// there.
func (e *entry) left() bool {
	ch := e.of.chain
	return ch != nil && ch.stream() != e.of.ts.stream
}

func (c *collection) dump() Resource {
	r := Resource{
		Server: c.ts.stream.server, TypeURL: c.ts.typ.URL, Name: c.name, Authority: c.watches[0].Authority,
		Status: StatusRequested, Fault: c.chain.joined(c.trouble()), Watched: true,
	}
	switch {
	case c.synced:
		r.Status = StatusAcked
	case c.absence != nil && c.absence.Fault == nil:
		r.Status = StatusDoesNotExist
	case c.absence != nil:
		r.Status, r.Fault = StatusTimeout, c.absence.Fault
		if r.Fault.Kind == FaultRejected {
			r.Status = StatusNacked
		}
	}
	return r
}

func (e *entry) dump() Resource {
	r := Resource{
		Server: e.server(), TypeURL: e.of.ts.typ.URL, Name: e.name, Authority: e.authority(),
		Status: e.status, Version: e.version, Raw: e.raw, Fault: e.fault, Watched: e.wanted(),
		Locator: e.locator && e.held(), Attributes: e.attributes(),
	}
	if e.held() {
		r.Updated = time.Unix(0, e.updated)
	}
	switch e.status {
	case StatusDoesNotExist:
		r.Reason = e.reason
	case StatusNacked:
		r.Refused = e.of.ts.refusals.of(e.fault)
	}
	if r.Fault == nil {
		r.Fault = e.of.chain.joined(e.of.ts.trouble())
	}
	return r
}

// Held returns the accepted value of a resource without watching it; ok says whether the
// resource is known at all.
func (m *Machine) Held(source int, typeURL, name string) (r Resource, ok bool) {
	ch := m.chains[m.chainKeyOf(source, typeURL)]
	if ch == nil {
		return Resource{}, false
	}
	ts := ch.stream().types[typeURL]
	if ts == nil {
		return Resource{}, false
	}
	e := ts.entries.get(name)
	if e == nil || e.pinned {
		return Resource{}, false
	}
	return e.dump(), true
}

// Known tells what is known of what a watch asks for; ok is false if it does not live.
func (m *Machine) Known(w *Watch) (r Resource, ok bool) {
	switch {
	case !w.alive:
		return Resource{}, false
	case w.Wildcard:
		return w.entry.of.dump(), true
	}
	return w.entry.dump(), true
}

// Works says whether the server that answers for a source has spoken on the stream that it has
// now, or seems to have nothing to say there: what is held could be had again.
func (m *Machine) Works(source int, typeURL string) bool {
	ch := m.chains[m.chainKeyOf(source, typeURL)]
	return ch != nil && ch.stream().works()
}
