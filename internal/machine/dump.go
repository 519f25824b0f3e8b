package machine

import "time"

// Resource is the state of one subscription or held resource.
type Resource struct {
	Server    int
	TypeURL   string
	Name      string // "*" for a wildcard
	Authority string
	Status    Status
	Version   string // of the held value
	Raw       []byte // the held value; nil if none. Not to be changed
	Updated   time.Time
	Fault     *Fault
	Watched   bool // by name; a wildcard's members may not be
	Locator   bool // Raw is an xds.core.v3.ResourceLocator: the resource is there
}

// Dump lists everything that is wanted or held, by stream, type and name.
func (m *Machine) Dump() []Resource {
	var rs []Resource
	for _, s := range m.streams {
		for _, ts := range s.order {
			if len(ts.wild) > 0 {
				rs = append(rs, ts.dumpWild())
			}
			for _, e := range ts.inOrder() {
				rs = append(rs, e.dump())
			}
		}
	}
	return rs
}

func (ts *typeState) dumpWild() Resource {
	r := Resource{
		Server: ts.stream.server, TypeURL: ts.typ.URL, Name: star, Authority: ts.wild[0].Authority,
		Status: StatusRequested, Fault: ts.trouble(), Watched: true,
	}
	switch {
	case ts.synced:
		r.Status = StatusAcked
	case ts.absence != nil && ts.absence.Fault != nil:
		r.Status, r.Fault = StatusTimeout, ts.absence.Fault
	case ts.absence != nil:
		r.Status = StatusDoesNotExist
	}
	return r
}

func (e *entry) dump() Resource {
	r := Resource{
		Server: e.ts.stream.server, TypeURL: e.ts.typ.URL, Name: e.name, Authority: e.authority(),
		Status: e.status, Version: e.version, Raw: e.raw, Fault: e.fault, Watched: e.wanted(),
		Locator: e.locator && e.held(),
	}
	if e.held() {
		r.Updated = time.Unix(0, e.updated)
	}
	if r.Fault == nil {
		r.Fault = e.ts.trouble()
	}
	return r
}

// Held returns the accepted value of a resource without watching it; ok says whether the
// resource is known at all.
func (m *Machine) Held(server int, typeURL, name string) (r Resource, ok bool) {
	key := slot{server: server}
	if m.config.Servers[server].PerType {
		key.url = typeURL
	}
	s := m.slots[key]
	if s == nil || s.types[typeURL] == nil {
		return Resource{}, false
	}
	e := s.types[typeURL].entries[name]
	if e == nil {
		return Resource{}, false
	}
	return e.dump(), true
}
