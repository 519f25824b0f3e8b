package machine

import "slices"

// checkLegacy: everything is asked for by a first request without names where that is wanted, and
// not by its name.
func (w *world) checkLegacy(s *simStream, md *model) {
	if _, wild, _ := w.wantedOn(s.ref.Stream, md); !wild || w.byName(s, md) {
		w.fail("an accidental wildcard: wanted is one %v, by its name %v", wild, w.byName(s, md))
	}
}

// byName says that the wildcard is wanted by its name on a stream.
func (w *world) byName(s *simStream, md *model) bool {
	names, _, _ := w.wantedOn(s.ref.Stream, md)
	for name := range names {
		if structured(name) && !w.policy.delta {
			return true
		}
	}
	return w.explicit || w.params || md.byName
}

// checkStar: a server gets to see the name `*` only where it is wanted.
func (w *world) checkStar(s *simStream, md *model, names []string) {
	pic := s.pics[md.typ.URL]
	if !slices.Contains(names, star) || pic.wild && !pic.legacy {
		return
	}
	if pic.legacy = false; !w.byName(s, md) {
		w.fail("the wildcard is asked for by its name: %q", names)
	}
}

// withheld says that a server may not be told a version that is held: of what is asked for by a
// name or a glob that comes after a legacy wildcard.
func (w *world) withheld(s *simStream, md *model, name string) bool {
	pic := s.pics[md.typ.URL]
	return w.budget || pic.legacy && (globOver(name) != "" || md.live[name] > 0)
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

// mayWithhold says that silence may end what is held, since a server was not told the version.
func (w *world) mayWithhold(md *model, n Notice) bool {
	pic := w.stream(n.Stream.Stream).pics[md.typ.URL]
	return w.policy.delta && pic != nil && pic.legacy && (globOver(n.Name) != "" || md.live[n.Name] > 0)
}

// besideLegacy says that a name may be known not to exist from the state of a legacy wildcard.
func (w *world) besideLegacy(md *model, n Notice) bool {
	pic := w.stream(n.Stream.Stream).pics[md.typ.URL]
	return !w.policy.delta && md.typ.FullState && pic != nil && pic.legacy && n.Kind == NoticeDoesNotExist && n.Reason == ReasonAbsent
}
