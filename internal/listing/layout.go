// Package listing reads what stands in the place of a resource (xRFC TP1): redirects, and list collections, that is what
// their entries are, and the values of those that are inline. It knows nothing of watches.
package listing

import (
	"fmt"
	"strings"
	"sync"
	"weak"

	"github.com/xdswatch/xdswatch/resource"
	"github.com/xdswatch/xdswatch/xdstp"
)

// Layout is what is known of the bytes of a list collection but the values in it. It refers
// to the bytes and does not change.
type Layout struct {
	src     resource.Source // on whose word the entries were looked at
	Entries []Entry
	byName  map[string]int // index of an inline entry; less than 0 of a name that comes twice
	flaws   []error        // why entries cannot be used, and which names come twice: the first of them
}

// Entry is one xds.core.v3.CollectionEntry: a locator, or something inline.
type Entry struct {
	Locator *xdstp.Locator // nil of an inline entry, and of a locator that does not parse
	Err     error          // why the entry cannot be used

	// Of an inline entry.
	inline    bool
	name      string // may be empty, as Version
	Version   string
	Redirects bool // it holds a locator in place of a resource
	Raw       []byte
}

// mostFlaws is more than a NACK has room for.
const mostFlaws = 128

func (l *Layout) flaw(i int, err error) {
	if len(l.flaws) < mostFlaws {
		l.flaws = append(l.flaws, fmt.Errorf("entry %d: %w", i, err))
	}
}

// index fills byName and flaws.
func (l *Layout) index() {
	l.byName = map[string]int{}
	locators := map[string]bool{}
	for i := range l.Entries {
		e := &l.Entries[i]
		if e.Err != nil {
			l.flaw(i, e.Err)
		}
		switch {
		case e.inline && e.name != "":
			at := i
			// COLL-4: a name is that of one entry.
			if _, twice := l.byName[e.name]; twice {
				at = -1
				l.flaw(i, e.fault(ErrTwice))
			}
			l.byName[e.name] = at
		case e.Locator != nil:
			text := e.Locator.String()
			if locators[text] {
				l.flaw(i, fmt.Errorf("the locator %q: %w", text, ErrTwice))
			}
			locators[text] = true
		}
	}
}

// like finds the entry whose value is that of entry i of another layout, by the same name or
// without one at the same place; nil if there is none.
func (l *Layout) like(i int, e *Entry) *Entry {
	if e.name != "" {
		var ok bool
		if i, ok = l.byName[e.name]; !ok || i < 0 {
			return nil
		}
	}
	if i >= len(l.Entries) {
		return nil
	}
	if was := &l.Entries[i]; was.inline && was.name == e.name && was.Redirects == e.Redirects && string(was.Raw) == string(e.Raw) {
		return was
	}
	return nil
}

// MemberName is what the entry is called in the collection of a name, or of a URL without directives:
// its locator, or the collection's with the directive that finds it. What has no name, or that of
// the collection itself, is called by its index, in a way that is no locator.
func (e *Entry) MemberName(collection string, index int) string {
	switch {
	case e.Locator != nil && WithoutAlt(*e.Locator).String() != collection:
		return e.Locator.String()
	case e.name != "":
		_, directive, _ := strings.Cut(entryAt(xdstp.Locator{}, e.name).String(), "#")
		return collection + "#" + directive
	}
	return fmt.Sprint(collection, "#", index)
}

// entryAt is the locator of an inline entry.
func entryAt(collection xdstp.Locator, name string) xdstp.Locator {
	collection.Directives = []xdstp.Directive{{Entry: name}}
	return collection
}

// Layouts finds the layout of bytes that are held, as long as somebody else keeps it: what
// comes late, or after a change of one entry, need not look at all entries again. Safe for
// concurrent use.
type Layouts struct {
	mu   sync.Mutex
	of   map[weak.Pointer[byte]]weak.Pointer[Layout] // by the first byte
	kept int                                         // when those that nobody keeps were last dropped
}

// find gives the layout of the very bytes; nil if nobody keeps it.
func (c *Layouts) find(src resource.Source, b []byte) *Layout {
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

func (c *Layouts) put(b []byte, l *Layout) {
	if len(b) == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of == nil {
		c.of = map[weak.Pointer[byte]]weak.Pointer[Layout]{}
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
