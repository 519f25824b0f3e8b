package view

import (
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/xdswatch/xdswatch/internal/protoequal"
)

// same says whether a program can tell the roots and routes of two shapes apart.
func (s *shape) same(o *shape) bool {
	if (s.listener == nil) != (o.listener == nil) || s.host != o.host || len(s.routes) != len(o.routes) {
		return false
	}
	if s.listener != nil && (s.listener.Message != o.listener.Message || !sameError(s.listener.Note, o.listener.Note)) {
		return false
	}
	return slices.EqualFunc(s.routes, o.routes, (*RouteConfig).same) && equal(s.scopes, o.scopes)
}

// equal compares what stands in collections, where one message may come in another's place.
func equal[M proto.Message](a, b []M) bool {
	return slices.EqualFunc(a, b, func(x, y M) bool { return protoequal.Equal(x, y) })
}

func (rc *RouteConfig) same(o *RouteConfig) bool {
	return rc.Name == o.Name && rc.Message == o.Message && sameError(rc.Err, o.Err) && sameError(rc.Note, o.Note) &&
		rc.Deleted.Equal(o.Deleted)
}

// refresh brings versions, notes and deletions into the published shape, whose resources may
// change otherwise while a newer shape is in making.
func (c *core) refresh() {
	old := c.shown
	if old == nil {
		return
	}
	s := *old
	if p := c.rootPart; s.listener != nil && p.message == s.listener.Message {
		l := *s.listener
		l.Origin = p.origin
		if read, ok := p.read.(*listenerRead); ok && len(s.scopes) == 0 { // else the note is of them too
			l.Note = join(p.ambient, read.note, s.lack)
		}
		s.listener = &l
	}
	lack := s.lack
	if s.listener != nil {
		lack = nil
	}
	s.routes = slices.Clone(s.routes)
	for i, p := range s.parts {
		if p == nil || p.message == nil {
			continue
		}
		rc := *s.routes[i]
		rc.Deleted, rc.Note = p.deleted, join(p.ambient, rc.unserved, lack)
		if p.message == rc.Message {
			rc.Origin = p.origin
			if read, ok := p.read.(*routesRead); ok {
				rc.Note = join(p.ambient, read.note, rc.unserved, lack)
			}
		}
		s.routes[i] = &rc
	}
	if s.same(old) {
		c.out.differs(changeQuiet)
	} else {
		c.out.differs(changeLoud)
	}
	*old = s
}
