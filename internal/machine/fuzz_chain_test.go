package machine

import (
	"slices"
	"strings"
)

// Structured names that a world with globs has besides `a` to `h`, and the globs.
var (
	structuredNames = []string{
		"xdstp://a/t/p/a", "xdstp://a/t/p/b", "xdstp://a/t/p/c",
		"xdstp://a/t/q/a", "xdstp://a/t/q/b", "xdstp://a/t/r",
	}
	globURLs = []string{"xdstp://a/t/p/*", "xdstp://a/t/q/*"}
)

// The sources of a world.
const (
	sourceOld = iota
	sourceA
)

func sourceOf(name string) int {
	if structured(name) {
		return sourceA
	}
	return sourceOld
}

// globOver is the glob that covers a name; "" if none does.
func globOver(name string) string {
	for _, url := range globURLs {
		if strings.HasPrefix(name, strings.TrimSuffix(url, star)) && name != url {
			return url
		}
	}
	return ""
}

func isGlobURL(name string) bool { return slices.Contains(globURLs, name) }

// newSources lets bytes decide how many servers there are and who uses them in which order.
func (w *world) newSources(server Server) (servers []Server, sources []Source) {
	servers = []Server{server}
	sources = []Source{{Servers: []int{0}}, {Servers: []int{0}}}
	if !w.many {
		return servers, sources
	}
	w.clear = w.globs && w.next(2) == 0
	n := 2 + w.next(2)
	for len(servers) < n {
		servers = append(servers, server)
	}
	for i := range sources {
		sources[i] = Source{ReachabilityOnly: w.next(4) == 0}
		first, step := w.next(n), 1+w.next(n-1)
		for k := range 1 + w.next(n) {
			if at := (first + k*step) % n; !slices.Contains(sources[i].Servers, at) {
				sources[i].Servers = append(sources[i].Servers, at)
			}
		}
	}
	return servers, sources
}

// anyName is the name of a resource, of those that are watched and others.
func (w *world) anyName() string {
	if !w.globs {
		return string(rune('a' + w.next(8)))
	}
	n := w.next(8 + len(structuredNames) + len(globURLs))
	switch {
	case n < 8:
		return string(rune('a' + n))
	case n < 8+len(structuredNames):
		return structuredNames[n-8]
	}
	return globURLs[n-8-len(structuredNames)]
}

// chain is who answers for a name.
func (w *world) chain(url, name string) *chain { return w.m.chainOf(sourceOf(name), url) }

// actives is which server each chain uses.
func (w *world) actives() map[*chain]int {
	at := map[*chain]int{}
	for _, ch := range w.m.chains {
		at[ch] = ch.active
	}
	return at
}

// active says whether a stream is the one that counts for a name.
func (w *world) active(s *simStream, url, name string) bool {
	return w.chain(url, name).stream().index == s.ref.Stream
}

// murky says that a name may be with one server for its own watches and with another for
// those of the wildcard, which the model does not tell apart.
func (w *world) murky(md *model, name string) bool {
	return w.many && md.everWild && structured(name)
}

// reaches says whether a stream is asked for the names of a chain.
func (ch *chain) reaches(index int) bool {
	return slices.ContainsFunc(ch.streams[:ch.active+1], func(s *stream) bool { return s.index == index })
}

// moved doubts what is known of chains that changed their server. A response that is the
// reason counts, if nothing else happened in the step.
func (w *world) moved(before map[*chain]int, events []Event) {
	reason, alone := events[0].(Received)
	alone = alone && len(events) == 1
	for _, md := range w.models {
		for _, src := range []int{sourceOld, sourceA} {
			ch := w.m.chainOf(src, md.typ.URL)
			if was, ok := before[ch]; !ok || was == ch.active && !ch.returned(was, events) {
				continue
			}
			w.say("%s: source %d moved to its server %d", md.typ.URL, src, ch.active)
			for _, r := range w.sent {
				r.known()
				if r.md == md && !(alone && r.ref == reason.Ref) {
					r.torn = true
					r.mayCall()
				}
			}
			for name := range md.words {
				if sourceOf(name) == src {
					md.doubt(name)
				}
			}
			for _, r := range w.sent {
				if alone && r.md == md && r.ref == reason.Ref && !r.ignored && !r.blurred && !r.gone {
					r.spread(w)
					r.take(w, src)
				}
			}
		}
	}
}

// returned says whether a source may have gone to a server that answered, and come back
// within the step.
func (ch *chain) returned(was int, events []Event) bool {
	return len(events) > 1 && slices.ContainsFunc(events, func(ev Event) bool {
		r, ok := ev.(Received)
		return ok && slices.ContainsFunc(ch.streams[:was], func(s *stream) bool { return s.index == r.Stream })
	})
}

// tear doubts what responses that are worked on say, of a stream that is closed: a source may
// have left it and come back within the step.
func (w *world) tear(ref Ref) {
	for _, r := range w.sent {
		if r.ref != ref {
			continue
		}
		r.torn = true
		r.known()
		for name := range r.md.words {
			if w.chain(r.md.typ.URL, name).stream().index == ref.Stream {
				r.md.doubt(name)
			}
		}
	}
}

// wantedOn is what a stream is to be asked for.
func (w *world) wantedOn(stream int, md *model) (names map[string]bool, wild, explicit bool) {
	names = map[string]bool{}
	for _, sw := range w.watches {
		switch {
		case sw.Type.URL != md.typ.URL || !w.chain(md.typ.URL, sw.Name).reaches(stream):
		case sw.Name == star:
			wild, explicit = true, explicit || sw.Explicit
		default:
			names[sw.Name] = true
		}
	}
	return names, wild, explicit
}

// line is what is between one stream and the client of one type.
type line struct {
	accepted string                     // version of the last accepted response; SotW; "?" if not known
	busy     *simResponse               // that is being worked on
	said     map[string]map[string]bool // versions by name, that the server gave
}

func (w *world) line(stream int, md *model) *line {
	key := lineKey{stream, md}
	if w.lines[key] == nil {
		w.lines[key] = &line{said: map[string]map[string]bool{}}
	}
	return w.lines[key]
}

type lineKey struct {
	stream int
	md     *model
}

// say notes the versions of a response.
func (l *line) say(r *simResponse) {
	for _, en := range r.entries {
		name := en.name(r.md.typ)
		if l.said[name] == nil {
			l.said[name] = map[string]bool{}
		}
		l.said[name][en.version] = true
	}
}

// types are the types of all streams.
func (w *world) types() map[*typeState]bool {
	all := map[*typeState]bool{}
	for _, s := range w.m.streams {
		for _, ts := range s.order {
			all[ts] = true
		}
	}
	return all
}

// remade doubts what was known of types that were forgotten, and maybe asked for again, in a
// step.
func (w *world) remade(before map[*typeState]bool) {
	for ts := range before {
		now := ts.stream.types[ts.typ.URL] // nil if it is not asked for any more
		if now == ts {
			continue
		}
		md := w.model(ts.typ.URL)
		l := w.line(ts.stream.index, md)
		if l.busy != nil {
			l.busy.gone = true
		}
		l.busy, l.accepted = nil, "?"
		for name := range md.words {
			if w.chain(md.typ.URL, name).stream() == ts.stream {
				md.doubt(name)
			}
		}
	}
}
