package machine

import (
	"cmp"

	"github.com/xdswatch/xdswatch/xdstp"
)

// spellings are the names of a type that are asked for in another spelling than the canonical one,
// which is for equality alone (XDSTP-4): that of the watch that first caused the request, for as long
// as the name is asked for. Servers may compare names as text. The zero value has none.
type spellings struct {
	of   map[string]string // by the canonical name
	name map[string]string // the canonical name of each

	given map[*entry]string // how a server spelled what is held, if not canonically either
}

// onWire is a name as it is asked for.
func (ts *typeState) onWire(name string) string {
	if spelling, ok := ts.spelled.of[name]; ok {
		return spelling
	}
	return name
}

// spell notes how a name is to be asked for, "" for as it is, unless it is asked for or about to be.
func (ts *typeState) spell(name, spelling string) {
	if spelling == "" && len(ts.spelled.of) == 0 {
		return
	}
	if e := ts.entries.get(name); e != nil && (e.wanted() || e.asked || e.noted) {
		return
	}
	ts.spelled.drop(name)
	if spelling != "" && spelling != name {
		if ts.spelled.of == nil {
			ts.spelled.of, ts.spelled.name = map[string]string{}, map[string]string{}
		}
		ts.spelled.of[name], ts.spelled.name[spelling] = spelling, name
	}
}

// drop forgets a name that is asked for no more.
func (s *spellings) drop(name string) {
	if spelling, ok := s.of[name]; ok {
		delete(s.of, name)
		delete(s.name, spelling)
	}
}

// dropSpellings forgets what nobody wants; for types that are silent.
func (ts *typeState) dropSpellings() {
	for name := range ts.spelled.of {
		if e := ts.entries.get(name); e == nil || !e.wanted() {
			ts.spelled.drop(name)
		}
	}
}

// askedFor is the entry of a name as it is asked for.
func (ts *typeState) askedFor(name []byte) *entry {
	if e := ts.entries.read(name); e != nil {
		return e
	}
	return ts.entries.get(ts.spelled.name[string(name)])
}

// spells notes that the server spells a structured name otherwise, since it is told the version
// that it gives by that name.
func (resp *response) spells(e *entry, name []byte) {
	if !resp.ts.stream.Delta || e.name == string(name) || !xdstp.IsXDSTP(e.name) {
		return
	}
	if resp.spelled == nil {
		resp.spelled = map[*entry]string{}
	}
	resp.spelled[e] = string(name)
}

// giveAs notes the spelling of an entry whose version was just given.
func (resp *response) giveAs(e *entry) { resp.ts.spelled.give(e, resp.spelled[e]) }

// give notes how a server spelled an entry when it gave the version that is held; "" for
// canonically.
func (s *spellings) give(e *entry, name string) {
	switch {
	case name == "":
		delete(s.given, e)
	case s.given == nil:
		s.given = map[*entry]string{e: name}
	default:
		s.given[e] = name
	}
}

// ofServer is how a server spelled an entry when it gave the version that is held.
func (s *spellings) ofServer(e *entry) string { return cmp.Or(s.given[e], e.name) }
