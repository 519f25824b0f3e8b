package machine

import "github.com/xdswatch/xdswatch/internal/wire"

// attributes are what a stream's server said beside held values: a Resource's aliases,
// cache_control and metadata. Few have any. The zero value has none.
type attributes map[*entry]*wire.Attributes

func (e *entry) attributes() *wire.Attributes { return e.of.ts.stream.attributes[e] }

// describe keeps what stands beside a held value now.
func (e *entry) describe(said *wire.Attributes) {
	if s := e.of.ts.stream; said == nil {
		delete(s.attributes, e)
	} else if !said.Equal(e.attributes()) {
		s.attributes.put(e, said.Clone())
	}
}

func (a *attributes) put(e *entry, own *wire.Attributes) {
	if *a == nil {
		*a = attributes{}
	}
	(*a)[e] = own
}

// move takes those of an entry to another stream.
func (a attributes) move(e *entry, to *attributes) {
	if own := a[e]; own != nil {
		delete(a, e)
		to.put(e, own)
	}
}

// strip forgets what is known beside an entry's value.
func (s *stream) strip(e *entry) {
	s.ttls.clear(e)
	s.graces.clear(e)
	delete(s.attributes, e)
}
