package machine

import (
	"slices"
	"time"

	"github.com/xdswatch/xdswatch/internal/wire"
)

// received takes a response. The next one is read after Delivered, so the machine works on one response of a stream at a
// time, whichever incarnation it came on.
func (m *Machine) received(now time.Time, s *stream, r *wire.Response) {
	// FC-1: timers stand still.
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
	if l != nil && l.requested { // FALLBACK-5: a response of another type says nothing
		m.revert(now, s)
	}
	n := m.tellOf(s.ref, NoticeResponse, r.TypeURL)
	n.Version, n.Ignored = r.Version, l == nil || !l.requested
	n.Exchange = &Exchange{Nonce: r.Nonce, ControlPlane: r.ControlPlane, Resources: len(r.Resources), Size: r.Size}
	// TYPE-4: it is not answered.
	if n.Ignored {
		for _, q := range s.quirks {
			q.received(m, now, nil)
		}
		m.ignore(s, l, r)
		return
	}
	if s.writing == l && !l.written {
		m.written(now, l) // nothing was subscribed to before it, so it has left
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

// untyped is the type of a response that does not say it; "" if that cannot be told. Streams
// of one type need not say it. On others an entry tells it, or what was subscribed to.
func (s *stream) untyped(r *wire.Response) string {
	// ADS-1: a stream of one type tells it.
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

// hasAll says whether all names mean something here.
func (l *link) hasAll(names [][]byte) bool {
	return !slices.ContainsFunc(names, func(name []byte) bool { return !l.concerns(name) })
}

// maxIgnored bounds of how many types a stream remembers the nonce without having requested them.
const maxIgnored = 64

// maxIgnoredBytes is how long a type URL may be together with its nonce that are remembered so. A
// type that is requested after a longer nonce is requested without one.
const maxIgnoredBytes = 4 << 10

// siftMost is how many names a step looks at in a long list of what is removed. There may be
// millions of them, most of which are nobody's, and the loop has other streams to serve.
const siftMost = 1 << 14

// sift drops the names that nobody knows from a long list of what a response removes, before
// anything is done with it: some of them in each step. The rule that a response must not hold and remove the same name
// (ACK-11) is therefore not applied to names of such a list that are new with this response.
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

// concerns says whether a name means anything here.
func (l *link) concerns(name []byte) bool {
	sub, _ := l.lookup(name)
	return sub != nil || l.cache.aliases.called(name) != nil
}
