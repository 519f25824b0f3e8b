package machine

import (
	"cmp"

	"github.com/xdswatch/xdswatch/xdstp"
)

// spellings are the names of a type that are requested in another spelling than the canonical one,
// which is for equality alone (XDSTP-4): that of the watch that first caused the request, for as long
// as the name is subscribed to. Servers may compare names as text. The zero value has none.
type spellings struct {
	of    map[*subscription]string
	given map[*subscription]string // how a server spelled what is held, if not canonically either
}

// onWire is a name as it is subscribed to.
func (s *spellings) onWire(sub *subscription) string {
	if spelling, ok := s.of[sub]; ok {
		return spelling
	}
	return sub.name
}

// spell notes how a name is to be subscribed to, "" for as it is, unless it is subscribed to or about to be.
func (s *spellings) spell(sub *subscription, spelling string) {
	if sub.wanted() || sub.subscribed || sub.noted {
		return
	}
	delete(s.of, sub)
	if spelling != "" && spelling != sub.name {
		if s.of == nil {
			s.of = map[*subscription]string{}
		}
		s.of[sub] = spelling
	}
}

// drop forgets a subscription.
func (s *spellings) drop(sub *subscription) {
	delete(s.of, sub)
	delete(s.given, sub)
}

// spells notes that the server spells a structured name otherwise, since it is told the version
// that it gives by that name.
func (r *reader) spells(sub *subscription, name []byte) {
	if !r.link.stream.Delta || sub.name == string(name) || !xdstp.IsXDSTP(sub.name) {
		return
	}
	if r.spelled == nil {
		r.spelled = map[*subscription]string{}
	}
	r.spelled[sub] = string(name)
}

// giveAs notes the spelling of a subscription whose version was just given.
func (resp *response) giveAs(sub *subscription) { resp.link.spelled.give(sub, resp.spelled[sub]) }

// give notes how a server spelled a subscription when it gave the version that is held; "" for
// canonically.
func (s *spellings) give(sub *subscription, name string) {
	switch {
	case name == "":
		delete(s.given, sub)
	case s.given == nil:
		s.given = map[*subscription]string{sub: name}
	default:
		s.given[sub] = name
	}
}

// ofServer is how a server spelled a subscription when it gave the version that is held.
func (s *spellings) ofServer(sub *subscription) string { return cmp.Or(s.given[sub], sub.name) }
