package machine

import (
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/xdswatch/xdswatch/internal/wire"
)

// link is one type on one stream: what its server was told, and what it answered. What is wanted and
// known is in the cache. Types on a stream are independent of each other.
type link struct {
	*cache
	stream  *stream
	rank    int
	names   names // that the server is to know of, globs among them: as last told, and what has changed since
	watched int   // how many of them are wanted

	doubtful bool // it was said that the server seems not to know the wildcard by its name

	version  string    // of the last accepted response of this incarnation of the stream, or with ResumeVersion of any; SotW
	lapsed   bool      // since, a collection's member ran out of its time to live, or was seen never to be sent
	accepted time.Time // when it came, in either variant; zero if none did

	busy     *response       // received and not finished yet
	last     []*subscription // that the last response in state of the world held, by place; see [link.repeated]
	refusals refusals

	fault *Fault // why the type alone is not served; nil if it is
	onStream
}

// onStream is what is known of a type on one incarnation of its stream.
type onStream struct {
	requested  bool            // a request was sent
	left       bool            // it has
	resumes    bool            // the first request says what is held
	answered   bool            // a response came
	nonce      string          // of the newest response
	instead    *Instead        // what that holds; nil if there is none
	form       wildForm        // how the wildcard was requested
	leftAt     time.Time       // when nobody was seen to want the legacy wildcard any more; zero while somebody does
	complete   bool            // a response held all there is, in the legacy form
	beside     []*subscription // that are wanted beside a legacy wildcard that does not name them, and not answered yet
	owed       []answer
	fresh      []*subscription // named for the first time by the message with the writer
	freshNames map[string]bool // of fresh; nil until they are looked for
	freshSince uint32          // the last response when that message was made
	overtaken  bool            // a response came since, which may answer it
	starting   bool            // the message with the writer asks for the wildcard
	pacer      pacer
	unlisted   []*subscription // members that the server was not told of
	sweepTimer uint32          // that runs for them; 0 if none
}

// wildForm is how everything was requested from a server.
type wildForm uint8

const (
	wildNone     wildForm = iota
	wildLegacy            // by a first request without names
	wildExplicit          // by the name `*`
)

// star is the explicit wildcard.
const star = "*"

// reset forgets an incarnation of the stream.
func (l *link) reset() {
	if l.busy != nil && l.busy.over == nil {
		l.busy.over = &requested{l.collectionsRequested(), l.namesSubscribed()}
	}
	// STREAM-4: nonces are forgotten.
	l.onStream = onStream{}
	// SOTW-2: the version belongs to the stream.
	if !l.stream.ResumeVersion {
		l.version = ""
	}
	l.names.settle()
	for sub := range l.owned() {
		sub.timer, sub.subscribed, sub.withheld = 0, false, false
	}
	for _, c := range l.collections(nil) {
		if c.self != nil {
			c.self.timer = 0
		}
	}
}

// owns says that a subscription's source uses this server: what it says of it counts, and it runs its
// timers.
func (l *link) owns(sub *subscription) bool { return sub.of.ownedBy(l.stream) }

// has says that a subscription is in the cache, and the link owns it.
func (l *link) has(sub *subscription) bool { return !sub.gone && l.owns(sub) }

// owned yields the subscriptions that the link owns.
func (l *link) owned() iter.Seq[*subscription] {
	return func(yield func(*subscription) bool) {
		for _, src := range l.stream.sources {
			if src.stream() != l.stream {
				continue
			}
			for sub := range l.of(src) {
				if !yield(sub) {
					return
				}
			}
		}
	}
}

// inOrder lists the subscriptions that the link owns by name: those of one source, or for nil all.
func (l *link) inOrder(only *source) []*subscription {
	if only != nil {
		return l.cache.inOrder(only)
	}
	subs := slices.AppendSeq(make([]*subscription, 0, l.subs.len()), l.owned())
	sortSubs(subs)
	return subs
}

// collections lists those that the link owns, of one source or for nil of all: the wildcard's, then those
// without a name, then the globs by name.
func (l *link) collections(only *source) (cs []*collection) {
	if only != nil {
		return l.collectionsOf(only)
	}
	for _, src := range l.stream.sources {
		if src.stream() == l.stream {
			cs = append(cs, l.collectionsOf(src)...)
		}
	}
	slices.SortStableFunc(cs, byKind)
	return cs
}

// collectionsRequested are those whose request has left.
func (l *link) collectionsRequested() map[*collection]bool {
	cs := map[*collection]bool{}
	for _, c := range l.collections(nil) {
		if l.requestLeft(c) {
			cs[c] = true
		}
	}
	return cs
}

// namesSubscribed are the names that were subscribed to at the server.
func (l *link) namesSubscribed() map[*subscription]bool {
	subs := map[*subscription]bool{}
	for sub := range l.owned() {
		if sub.subscribed && !l.leaving(sub) {
			subs[sub] = true
		}
	}
	return subs
}

// rank orders types that owe at the same time: make-before-break order, then the order in
// which they were first watched.
func rank(typeURL string) int {
	const prefix = "type.googleapis.com/envoy.config."
	switch rest, _ := strings.CutPrefix(typeURL, prefix); rest {
	case "cluster.v3.Cluster":
		return 0
	case "endpoint.v3.ClusterLoadAssignment":
		return 1
	case "listener.v3.Listener":
		return 2
	case "route.v3.RouteConfiguration":
		return 3
	}
	return 4
}

// linkTo finds or makes the link of a type.
func (s *stream) linkTo(c *cache) *link {
	l := s.types[c.typ.URL]
	if l == nil {
		l = &link{cache: c, stream: s, rank: rank(c.typ.URL)}
		// TYPE-4: the nonce counts from now on.
		l.nonce = s.ignored[c.typ.URL]
		s.types[c.typ.URL] = l
		s.order = append(s.order, l)
		slices.SortStableFunc(s.order, func(a, b *link) int { return a.rank - b.rank })
	}
	return l
}

// wanted says whether anything of the type is, of this server.
func (l *link) wanted() bool { return l.wantsStar() || l.watched > 0 }

// wantsStar says whether the wildcard is wanted, of this server.
func (l *link) wantsStar() bool { return l.star.wanted() && l.star.source.reaches(l.stream) }

// want has requests name a subscription from now on, or not.
func (l *link) want(sub *subscription, wanted bool) {
	if wanted {
		l.watched++
	} else {
		l.watched--
	}
	l.names.set(l.spelled.onWire(sub), l.params(sub.of), wanted)
}

// params are what the names of a collection are requested with; nil for none.
func (l *link) params(c *collection) *wire.Params {
	if c.source == nil || l.stream.NoParams {
		return nil
	}
	// DYN-1: names are requested with the parameters of their source.
	return c.source.Params
}

// keepFor is how long what a server deletes is held all the same: 0 for not at all, negative for
// good (gRFC A53).
func (l *link) keepFor() time.Duration {
	// ERR-5: a deletion is ignored.
	if l.stream.KeepDeleted {
		return -1
	}
	return l.typ.Keep
}

// keepsDeleted says whether what a server deletes is held for good.
func (l *link) keepsDeleted() bool { return l.keepFor() < 0 }

// member says whether a subscription is kept for its collection alone.
func (l *link) member(sub *subscription) bool { return sub.of.wanted() && l.spoken(sub) }

// spoken says whether the server spoke of a subscription, or does so in the response being worked
// on.
func (l *link) spoken(sub *subscription) bool {
	return !sub.byAlias() && (sub.known() || l.busy != nil && sub.seen == l.busy.serial)
}

// prune drops everything that is not wanted; for types that are silent.
func (l *link) prune() {
	l.names.settle()
	for sub := range l.owned() {
		sub.noted = false
		l.forget(sub)
	}
	if !l.star.wanted() && l.star.ownedBy(l.stream) {
		l.star.forgetState()
	}
	l.cache.prune()
}

// forget drops what nobody wants any more.
func (l *link) forget(sub *subscription) {
	left := sub.of == l.star && l.form == wildLegacy && l.outdated() && l.spoken(sub) // the wildcard may come back, and is not told anew
	if sub.wanted() || l.member(sub) || left || sub.gone || l.leaveToStar(sub) {
		return
	}
	l.drop(sub)
	if sub.isCollection() {
		l.leave(sub.of)
	}
}

func without[T comparable](ws []T, w T) []T {
	if i := slices.Index(ws, w); i >= 0 {
		return slices.Delete(ws, i, i+1)
	}
	return ws
}

// untyped is the type of a response that does not say it; "" if that cannot be told. Streams
// of one type need not say it. Delta responses once had no field for it: there an entry
// tells, or what was subscribed to.
func (s *stream) untyped(r *wire.Response) string {
	if s.url != "" || !s.Delta {
		return s.url
	}
	for i := range r.Resources {
		if l := s.types[string(r.Resources[i].TypeURL)]; l != nil && l.requested {
			return l.typ.URL
		}
	}
	var asked, fit []string
	for _, l := range s.order {
		if l.requested {
			asked = append(asked, l.typ.URL)
			if l.knows(r.Removed) {
				fit = append(fit, l.typ.URL)
			}
		}
	}
	for _, urls := range [][]string{asked, fit} {
		if len(urls) == 1 {
			return urls[0]
		}
	}
	return ""
}

// knows says whether all names are of resources that were subscribed to or are held.
func (l *link) knows(names [][]byte) bool {
	return !slices.ContainsFunc(names, func(name []byte) bool {
		sub, _ := l.lookup(name)
		return sub == nil
	})
}
