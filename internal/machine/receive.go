package machine

import (
	"slices"
	"time"

	"github.com/xdswatch/xdswatch/internal/wire"
)

// received takes a response. The next one is read after Delivered, so the machine works on one response of a stream at a
// time, whichever incarnation it came on.
func (m *Machine) received(now time.Time, s *stream, r *wire.Response) {
	// FC-1: timers stand still until the next response is read.
	s.clock.stop(now)
	if !s.toldUp() {
		m.tellOf(s.ref, NoticeStreamUp, s.typ.url())
	}
	s.responded, s.undelivered = true, true
	m.connected(s)
	if r.TypeURL == "" {
		r.TypeURL = s.untyped(r)
	}
	l := s.link(r.TypeURL)
	if l != nil && l.requested { // FALLBACK-5: a response of a type that was not requested does not count
		m.revert(now, s)
	}
	n := m.tellOf(s.ref, NoticeResponse, r.TypeURL)
	n.Version, n.Ignored = r.Version, l == nil || !l.requested
	n.Exchange = &Exchange{Nonce: r.Nonce, ControlPlane: r.ControlPlane, Resources: len(r.Resources), Size: r.Size}
	// TYPE-4: a response of a type that was not requested is not answered.
	if n.Ignored {
		for _, q := range s.quirks {
			q.received(m, now, nil)
		}
		m.ignore(s, l, r)
		return
	}
	if s.writing == l && !l.written {
		m.written(now, l) // the server responds, so the first request of the type has left
	}
	m.serial = m.serial.next()
	if l.firstResponse == 0 {
		l.firstResponse = m.serial
	}
	resp := &response{Response: r, ref: s.ref, link: l, serial: m.serial}
	// ACK-8, S-20: the newest nonce of the type.
	l.nonce = r.Nonce
	l.paced = time.Time{} // STREAM-9: the server has answered
	for _, q := range s.quirks {
		q.received(m, now, l)
	}
	l.busy = resp
	m.sift(now, resp)
}

// ignore passes over a response of a type that was not requested on this stream: it is
// neither ACKed nor NACKed, but its nonce counts if the type is requested later.
func (m *Machine) ignore(s *stream, l *link, r *wire.Response) {
	switch {
	case len(r.TypeURL)+len(r.Nonce) > maxIgnoredBytes: // H-9
		delete(s.ignored, r.TypeURL)
		if l != nil {
			l.nonce = ""
		}
	// TYPE-4: its nonce counts.
	case l != nil:
		l.nonce = r.Nonce
	case len(s.ignored) < maxIgnored || s.ignored[r.TypeURL] != "":
		s.ignored[r.TypeURL] = r.Nonce
	}
	m.recovered(s)
	n := m.tellOf(s.ref, NoticeEnd, r.TypeURL)
	n.Ignored, n.Exchange = true, &Exchange{}
}

// untyped is the type URL of a response that has none; "" if it cannot be told. On a stream of one type it is that type.
// Otherwise it is the type of an entry, or the only type that was requested, or the only one that knows all removed names.
func (s *stream) untyped(r *wire.Response) string {
	// ADS-1: a stream of one type has that type.
	if s.typ != nil || !s.Delta {
		return s.typ.url()
	}
	// ADS-1, V2-4: delta responses once had no field for it.
	for i := range r.Resources {
		if l := s.link(string(r.Resources[i].TypeURL)); l != nil && l.requested {
			return l.cache.typ.URL
		}
	}
	var requested, fit []string
	for _, l := range s.links {
		if l.requested {
			requested = append(requested, l.cache.typ.URL)
			if l.hasAll(r.Removed) {
				fit = append(fit, l.cache.typ.URL)
			}
		}
	}
	for _, urls := range [][]string{requested, fit} {
		if len(urls) == 1 {
			return urls[0]
		}
	}
	return ""
}

// hasAll says whether the type has something of each of the names.
func (l *link) hasAll(names [][]byte) bool {
	return !slices.ContainsFunc(names, func(name []byte) bool { return !l.concerns(name) })
}

// maxIgnored is of how many types that were not requested a stream remembers the nonce.
const maxIgnored = 64

// maxIgnoredBytes is how long such a type URL and its nonce may be together. A type whose nonce was longer is requested
// without one.
const maxIgnoredBytes = 4 << 10

// siftMost is how many names of a long list of removed names a step looks at. There may be millions of them, of which the
// client knows few, and other streams have to go on.
const siftMost = 1 << 14

// sift drops from a long list of removed names those that the client does not know, some in each step, before the response
// is read. So ACK-11 is not applied to a name in such a list if this response is the first that holds it.
func (m *Machine) sift(now time.Time, resp *response) {
	if len(resp.Removed) <= siftMost {
		m.read(now, resp)
		return
	}
	resp.unsifted, resp.Removed = resp.Removed, resp.Removed[:0]
	m.sifting = append(m.sifting, resp)
}

// siftOn goes on with lists of what is removed.
func (m *Machine) siftOn(now time.Time) {
	all := m.sifting
	m.sifting = nil
	for _, resp := range all {
		m.agenda.touch(resp.link.stream)
		n := min(siftMost, len(resp.unsifted))
		for _, name := range resp.unsifted[:n] {
			resp.removedSum += 7 * hashOf(name)
			if resp.link.concerns(name) {
				resp.Removed = append(resp.Removed, name) // in the place of one that was looked at
			}
		}
		if resp.unsifted = resp.unsifted[n:]; len(resp.unsifted) == 0 {
			m.read(now, resp)
		} else {
			m.sifting = append(m.sifting, resp)
		}
	}
}

// concerns says whether a subscription of the type has the name, or is watched by an alias of the resource of that name.
func (l *link) concerns(name []byte) bool {
	sub, _ := l.lookup(name)
	return sub != nil || l.cache.aliases.target(name) != nil
}
