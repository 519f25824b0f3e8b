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
		for _, l := range s.order {
			rs = slices.Grow(rs, l.subs.len())
			for _, c := range l.collections(nil) {
				if c.wanted() {
					rs = append(rs, c.self.dump())
				}
			}
			for sub := range l.owned() {
				if !sub.isCollection() && (sub.wanted() || sub.of.wanted()) {
					rs = append(rs, sub.dump())
				}
			}
		}
	}
	return rs
}

func (sub *subscription) dump() Resource {
	r := Resource{
		Server: sub.server(), TypeURL: sub.link().typ.URL, Name: sub.name, Authority: sub.authority(),
		Status: sub.status, Version: sub.version, Raw: sub.raw, Fault: sub.fault, Watched: sub.wanted(),
		Locator: sub.locator && sub.held(), Attributes: sub.attributes(),
	}
	if sub.held() {
		r.Updated = time.Unix(0, sub.updated)
	}
	switch sub.status {
	case StatusDoesNotExist:
		r.Reason = sub.reason
	case StatusNacked:
		r.Refused = sub.link().refusals.of(sub.fault)
	}
	if r.Fault == nil {
		r.Fault = sub.of.source.joined(sub.link().trouble())
	}
	return r
}

// Held returns the accepted value of a resource without watching it; ok says whether the
// resource is known at all.
func (m *Machine) Held(source int, typeURL, name string) (r Resource, ok bool) {
	c := m.caches[cacheKey{m.sources[source].Scope, typeURL}]
	if c == nil {
		return Resource{}, false
	}
	sub := c.subs.get(name)
	if sub == nil || sub.isCollection() {
		return Resource{}, false
	}
	return sub.dump(), true
}

// Known tells what is known of what a watch asks for; ok is false if it does not live.
func (m *Machine) Known(w *Watch) (r Resource, ok bool) {
	if !w.alive {
		return Resource{}, false
	}
	return w.sub.dump(), true
}

// Works says whether the server that answers for a source has spoken on the stream that it has
// now, or seems to have nothing to say there: what is held could be had again.
func (m *Machine) Works(source int, typeURL string) bool {
	src := m.working[m.sourceKeyOf(source, typeURL)]
	return src != nil && src.stream().works()
}
