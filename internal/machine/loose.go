package machine

// loose are the entries of a type that no glob covers, by the pattern of one that would: a
// new glob takes its own from here. It is made for the first glob of a type. An entry that
// has gone since may still be listed, until such are most of them.
type loose struct {
	of map[pattern][]*entry // nil until there was a glob
	n  int                  // in all lists
}

// loosen notes that no glob covers an entry.
func (ts *typeState) loosen(e *entry) {
	if ts.loose.of == nil {
		return
	}
	if ts.loose.n > 64+2*ts.entries.len() {
		ts.findLoose()
		return
	}
	ts.loose.add(e)
}

func (l *loose) add(e *entry) {
	if p, segment, ok := split(e.name); ok && segment != star {
		l.of[p] = append(l.of[p], e)
		l.n++
	}
}

// findLoose looks for all of them.
func (ts *typeState) findLoose() {
	ts.loose = loose{of: map[pattern][]*entry{}}
	for e := range ts.entries.all() {
		if !e.of.isGlob() {
			ts.loose.add(e)
		}
	}
}

// takeLoose has a new glob adopt what it covers.
func (ts *typeState) takeLoose(c *collection) {
	if ts.loose.of == nil {
		ts.findLoose()
	}
	es := ts.loose.of[c.pattern]
	delete(ts.loose.of, c.pattern)
	ts.loose.n -= len(es)
	for _, e := range es {
		if ts.has(e) && !e.of.isGlob() {
			c.adopt(e)
		}
	}
}
