package machine

import "time"

// siftMost is how many names a step looks at in a long list of what is removed. There may be
// millions of them, most of which are nobody's, and the loop has other streams to serve.
const siftMost = 1 << 14

// sift drops the names that nobody knows from a long list of what a response removes, before
// anything is done with it: some of them in each step. So a name of such a list that the response
// holds too, and that is new, is not told to be named twice.
func (m *Machine) sift(now time.Time, resp *response) {
	r := resp.Response
	if resp.removes = len(r.Removed); resp.removes <= siftMost {
		m.work(now, resp)
		return
	}
	resp.unsifted, r.Removed = r.Removed, nil
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
			resp.siftSum += 7 * hashOf(name)
			if resp.link.speaksOf(name) {
				resp.Removed = append(resp.Removed, name)
			}
		}
		if resp.unsifted = resp.unsifted[n:]; len(resp.unsifted) == 0 {
			resp.unsifted = nil
			m.work(now, resp)
		} else {
			m.sifting = append(m.sifting, resp)
		}
	}
}

// speaksOf says whether a name means anything here.
func (l *link) speaksOf(name []byte) bool {
	sub, _ := l.lookup(name)
	return sub != nil || l.aliases.of[string(name)] != nil
}
