package machine

// loose are the subscriptions of a type that no glob covers, by the pattern of one that would: a
// new glob takes its own from here. It is made for the first glob of a type. A subscription that
// has gone since may still be listed, until such are most of them.
type loose struct {
	of map[pattern][]*subscription // nil until there was a glob
	n  int                         // in all lists
}

// loosen notes that no glob covers a subscription.
func (c *cache) loosen(sub *subscription) {
	if c.loose.of == nil {
		return
	}
	if c.loose.n > 64+2*c.subs.len() {
		c.findLoose()
		return
	}
	c.loose.add(sub)
}

func (l *loose) add(sub *subscription) {
	if p, segment, ok := split(sub.name); ok && segment != star {
		l.of[p] = append(l.of[p], sub)
		l.n++
	}
}

// findLoose looks for all of them.
func (c *cache) findLoose() {
	c.loose = loose{of: map[pattern][]*subscription{}}
	for sub := range c.subs.all() {
		if !sub.of.isGlob() {
			c.loose.add(sub)
		}
	}
}

// adoptLoose has a new glob adopt what it covers. What only the wildcard holds is a member too: the server
// has sent it already, so the glob's first state may leave it out (DELTA-8).
func (c *cache) adoptLoose(glob *collection) {
	if c.loose.of == nil {
		c.findLoose()
	}
	subs := c.loose.of[glob.pattern]
	delete(c.loose.of, glob.pattern)
	c.loose.n -= len(subs)
	for _, sub := range subs {
		if sub.gone || sub.of.isGlob() {
			continue
		}
		said := sub.stream()
		glob.adopt(sub)
		if l := sub.link(); l != nil && l.stream != said && l.requested && l.stream.Delta && sub.known() && !sub.recalled() {
			l.unconfirm(sub) // the server was not told that it is held
		}
	}
}
