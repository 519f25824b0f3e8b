package client

import (
	"fmt"
	"sync"
	"weak"

	"github.com/xdswatch/xdswatch/resource"
	"github.com/xdswatch/xdswatch/xdstp"
)

// layout is what is known of the bytes of a list collection but the values in it. It refers
// to the bytes and does not change.
type layout struct {
	src     resource.Source // on whose word the entries were looked at
	entries []dirEntry
	byName  map[string]int // index of an inline entry; less than 0 of a name that comes twice
	flaws   []error        // why entries cannot be used, and which names come twice: the first of them
}

// dirEntry is one xds.core.v3.CollectionEntry: a locator, or something inline.
type dirEntry struct {
	locator *xdstp.Locator // nil of an inline entry, and of a locator that does not parse
	err     error          // why the entry cannot be used

	// Of an inline entry.
	inline        bool
	name, version string // may be empty
	redirects     bool   // it holds a locator in place of a resource
	raw           []byte
}

// mostFlaws is more than a NACK has room for.
const mostFlaws = 128

func (l *layout) flaw(i int, err error) {
	if len(l.flaws) < mostFlaws {
		l.flaws = append(l.flaws, fmt.Errorf("entry %d: %w", i, err))
	}
}

// index fills byName and flaws.
func (l *layout) index() {
	l.byName = map[string]int{}
	locators := map[string]bool{}
	for i := range l.entries {
		e := &l.entries[i]
		if e.err != nil {
			l.flaw(i, e.err)
		}
		switch {
		case e.inline && e.name != "":
			at := i
			if _, twice := l.byName[e.name]; twice {
				at = -1
				l.flaw(i, e.fault(errListedTwice))
			}
			l.byName[e.name] = at
		case e.locator != nil:
			text := e.locator.String()
			if locators[text] {
				l.flaw(i, fmt.Errorf("the locator %q: %w", text, errListedTwice))
			}
			locators[text] = true
		}
	}
}

// like finds the entry whose value is that of entry i of another layout, by the same name or
// without one at the same place; nil if there is none.
func (l *layout) like(i int, e *dirEntry) *dirEntry {
	if e.name != "" {
		var ok bool
		if i, ok = l.byName[e.name]; !ok || i < 0 {
			return nil
		}
	}
	if i >= len(l.entries) {
		return nil
	}
	if was := &l.entries[i]; was.inline && was.name == e.name && was.redirects == e.redirects && string(was.raw) == string(e.raw) {
		return was
	}
	return nil
}

// memberName is what the entry is called in the collection of a URL without directives:
// its locator, or the URL with the directive that finds it. What has no name, or that of
// the collection itself, is called by its index, in a way that is no locator.
func (e *dirEntry) memberName(collection xdstp.Locator, index int) string {
	switch {
	case e.locator != nil && withoutAlt(*e.locator).String() != collection.String():
		return e.locator.String()
	case e.name != "":
		return entryAt(collection, e.name).String()
	}
	return fmt.Sprint(collection, "#", index)
}

// entryAt is the locator of an inline entry.
func entryAt(collection xdstp.Locator, name string) xdstp.Locator {
	collection.Directives = []xdstp.Directive{{Entry: name}}
	return collection
}

// layouts finds the layout of bytes that are held, as long as somebody else keeps it: what
// comes late, or after a change of one entry, need not look at all entries again. Safe for
// concurrent use.
type layouts struct {
	mu   sync.Mutex
	of   map[weak.Pointer[byte]]weak.Pointer[layout] // by the first byte
	kept int                                         // when those that nobody keeps were last dropped
}

// find gives the layout of the very bytes; nil if nobody keeps it.
func (c *layouts) find(src resource.Source, b []byte) *layout {
	if len(b) == 0 {
		return nil
	}
	c.mu.Lock()
	l := c.of[weak.Make(&b[0])].Value()
	c.mu.Unlock()
	if l == nil || l.src != src {
		return nil
	}
	return l
}

func (c *layouts) put(b []byte, l *layout) {
	if len(b) == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of == nil {
		c.of = map[weak.Pointer[byte]]weak.Pointer[layout]{}
	}
	c.of[weak.Make(&b[0])] = weak.Make(l)
	if len(c.of) <= 64+2*c.kept {
		return
	}
	for key, l := range c.of {
		if l.Value() == nil {
			delete(c.of, key)
		}
	}
	c.kept = len(c.of)
}
