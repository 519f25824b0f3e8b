package machine

import "slices"

// checkLegacy: everything is asked for by a request without names, and nothing else is
// wanted, or the server knows no other form.
func (w *world) checkLegacy(s *simStream, md *model) {
	if names, wild, explicit := w.wantedOn(s.ref.Stream, md); !wild || explicit || len(names) > 0 && !w.legacyAt(s, md) {
		w.fail("an accidental wildcard: wanted is one %v, explicit %v, names %v", wild, explicit, names)
	}
}

// legacyAt says that the server knows no other form, or was found out not to.
func (w *world) legacyAt(s *simStream, md *model) bool {
	ts := w.m.streams[s.ref.Stream].types[md.typ.URL]
	return w.legacy || ts != nil && ts.literal
}

// checkStar: a server that does not know the name `*` gets to see it only where a program
// insists.
func (w *world) checkStar(s *simStream, md *model, names []string) {
	if !w.legacy || w.params || !slices.Contains(names, star) || s.pics[md.typ.URL].explicit {
		return
	}
	if _, _, explicit := w.wantedOn(s.ref.Stream, md); !explicit {
		w.fail("a server that does not know it is asked for %q", names)
	}
	s.pics[md.typ.URL].explicit = true
}

// withheld says that a server may not be told a version that is held: of a member, if the
// glob comes after a wildcard that is not spelled.
func (w *world) withheld(s *simStream, md *model, name string) bool {
	return w.budget || w.legacy && s.pics[md.typ.URL].wild && globOver(name) != ""
}

// leftWith doubts what only a wildcard held that ends with its stream.
func (w *world) leftWith(s *simStream) {
	for _, md := range w.models {
		if md.wild == 0 && s.pics[md.typ.URL] != nil {
			md.left()
		}
	}
}

// asked says whether the server that counts is being asked for every resource of a type.
func (w *world) asked(url string) bool {
	for _, s := range w.streams {
		if s.state == up && s.pics[url] != nil && s.pics[url].wild && w.active(s, url, star) {
			return true
		}
	}
	return false
}
