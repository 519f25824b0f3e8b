package machine

import "time"

// siftMost is how many names a step looks at in a long list of what is removed. There may be
// millions of them, most of which are nobody's, and the loop has other streams to serve.
const siftMost = 1 << 14

// sift drops the names that nobody knows from a long list of what a response removes, before
// anything is done with it: some of them in each step. So a name of such a list that the response
// holds too, and that is new, is not told to be named twice.
func (m *Machine) sift(now time.Time, resp *response) {
	if len(resp.Removed) <= siftMost {
		m.read(now, resp, resp.Removed)
		return
	}
	m.sifting = append(m.sifting, &sifting{response: resp, rest: resp.Removed})
}

// siftOn goes on with lists of what is removed.
func (m *Machine) siftOn(now time.Time) {
	all := m.sifting
	m.sifting = nil
	for _, it := range all {
		m.agenda.touch(it.link.stream)
		n := min(siftMost, len(it.rest))
		for _, name := range it.rest[:n] {
			it.removedSum += 7 * hashOf(name)
			if it.link.speaksOf(name) {
				it.known = append(it.known, name)
			}
		}
		if it.rest = it.rest[n:]; len(it.rest) == 0 {
			m.read(now, it.response, it.known)
		} else {
			m.sifting = append(m.sifting, it)
		}
	}
}

// speaksOf says whether a name means anything here.
func (l *link) speaksOf(name []byte) bool {
	sub, _ := l.lookup(name)
	return sub != nil || l.cache.aliases.called(name) != nil
}
