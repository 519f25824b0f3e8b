package machine

import (
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/xdswatch/xdswatch/internal/wire"
)

// link is one type on one stream: what the client told the server, and what the server answered, on this incarnation
// ([onStream]) or on any. What is wanted and known is in the cache. Types on a stream are independent of each other.
type link struct {
	cache      *cache
	stream     *stream
	names      wire.Names // that the server is to know of, globs among them: as last told, and what has changed since
	watched    int        // how many of them are wanted
	structured int        // how many of those are structured

	resume   string    // the version that the first request of a new stream may have, see [link.versionToClaim]; "" for none; SotW
	accepted time.Time // when the last accepted response came, in either variant; zero if none did

	busy     *response       // received and not finished yet
	last     []*subscription // that the last response in state of the world held, by place; see [link.repeated]
	refusals refusals

	fault *Fault // why the type alone is not served; nil if it is
	onStream
}

// onStream is what is known of a type on one incarnation of its stream.
type onStream struct {
	requested     bool      // a request went to the writer
	written       bool      // it has left
	claimsHeld    bool      // the first request has a version of something that is held
	untold        bool      // the first request left while another server was active: it lists nothing that this server gave
	firstResponse serial    // of the first response; 0 before it
	version       string    // of the last accepted response, or that was claimed before there was one; SotW
	latest        string    // of the last response, refused or not, or that was claimed before there was one; SotW
	nonce         string    // of the newest response; SotW, since delta has it in the reply alone
	instead       *Instead  // what the newest response holds; nil before it
	form          wildForm  // how the wildcard was requested
	unwantedSince time.Time // when nobody was seen to want the legacy wildcard any more; zero while somebody does
	lastFullState serial    // of the last response that held everything; 0 before one did, and when a legacy wildcard begins
	replies       []reply
	message       message         // that is with the writer
	paced         time.Time       // a request that is no reply and only changes what is wanted does not leave before this
	toSweep       []*subscription // that the server has to speak of; see [link.decidedFor]
	sweepTimer    timer           // when it rings, the first due of unconfirmed go
	sweepCount    int             // how many were in toSweep when sweepTimer was set: each had a full period
}

// message is a request that the writer has, until it has left.
type message struct {
	fresh   []*subscription        // named by it and not by the request before; the wildcard too, if the message begins it
	set     map[*subscription]bool // of the same; made when one is looked for first
	hadWild bool                   // the wildcard was requested before it, and responses are the wildcard's until it has left
}

// names says whether a subscription is among those that the message names anew.
func (msg *message) names(sub *subscription) bool {
	if len(msg.fresh) == 0 {
		return false
	}
	if msg.set == nil {
		msg.set = make(map[*subscription]bool, len(msg.fresh))
		for _, sub := range msg.fresh {
			msg.set[sub] = true
		}
	}
	return msg.set[sub]
}

// wildForm is how everything was requested from a server.
type wildForm uint8

const (
	wildNone     wildForm = iota
	wildLegacy            // by a first request without names
	wildExplicit          // by the name `*`
)

// reset forgets an incarnation of the stream.
func (l *link) reset() {
	// STREAM-4, SOTW-5: nonces are forgotten with the stream, and not before.
	l.onStream = onStream{}
	l.names.Flush()
	// DNE-5: its timers stop.
	for sub := range l.owned() {
		// WILD-7: a resource that was moved to the wildcard (giveToStar) has to be confirmed on the next stream too. For
		// resources from the store unconfirmStale decides that anew there.
		waits := l.stream.Delta && sub.unconfirmed && sub.of == l.cache.star && structured(sub.name) && !sub.loaded()
		sub.forgetStream()
		sub.unconfirmed = waits
	}
}

// owns says that the link's server is the active one of a subscription's source: what this server says of the
// subscription counts, and the timers run on its stream. A link that is over has an empty cache, and owns nothing
// ([Machine.forgetTypes]).
func (l *link) owns(sub *subscription) bool {
	return sub.of.cache == l.cache && sub.of.ownedBy(l.stream)
}

// has says that a subscription is in the cache, and the link owns it.
func (l *link) has(sub *subscription) bool { return !sub.gone && l.owns(sub) }

// owned yields the subscriptions that the link owns.
func (l *link) owned() iter.Seq[*subscription] {
	return func(yield func(*subscription) bool) {
		for _, src := range l.stream.sources {
			if src.stream() != l.stream {
				continue
			}
			for sub := range src.share(l.cache).all() {
				if !yield(sub) {
					return
				}
			}
		}
	}
}

// ownedWhere lists those that the link owns and for which something holds, by name.
func (l *link) ownedWhere(holds func(*subscription) bool) (subs []*subscription) {
	for sub := range l.owned() {
		if holds(sub) {
			subs = append(subs, sub)
		}
	}
	slices.SortFunc(subs, byName)
	return subs
}

// rank orders types that owe at the same time: make-before-break order, then the order in
// which they were first watched.
// STREAM-9, ADS-2: the order is fixed.
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

// link finds the link of a type; nil if there is none. A stream has few types, which are compared faster than looked up.
func (s *stream) link(typeURL string) *link {
	for _, l := range s.links {
		if l.cache.typ.URL == typeURL {
			return l
		}
	}
	return nil
}

// linkTo finds or makes the link of a type.
func (s *stream) linkTo(c *cache) *link {
	l := s.link(c.typ.URL)
	if l == nil {
		l = &link{cache: c, stream: s}
		// TYPE-4: the nonce counts from now on.
		l.nonce = s.ignored[c.typ.URL]
		s.links = append(s.links, l)
		slices.SortStableFunc(s.links, func(a, b *link) int { return rank(a.cache.typ.URL) - rank(b.cache.typ.URL) })
	}
	return l
}

// wanted says whether anything of the type is, of this server.
func (l *link) wanted() bool { return l.wantsStar() || l.watched > 0 }

// wantsStar says whether the wildcard is wanted, of this server.
func (l *link) wantsStar() bool {
	return l.cache.star.wanted() && l.cache.star.source.reaches(l.stream)
}

// params are what the names of a collection are requested with; nil for none.
func (l *link) params(c *collection) *wire.Params {
	if l.stream.NoParams {
		return nil
	}
	// DYN-1: names are requested with the parameters of their source.
	return c.source.Params
}

// keepFor is how long what a server deletes is held all the same: 0 for not at all, negative for
// good (gRFC A53).
func (l *link) keepFor() time.Duration {
	// ERR-4: the server's feature; else the program's policy for the type.
	if l.stream.KeepDeleted {
		return -1
	}
	return l.cache.typ.DeletionKeep
}

// keepsForGood says whether what a server deletes is held for good.
func (l *link) keepsForGood() bool { return l.keepFor() < 0 }

// named says whether the last request, or in delta the requests of this stream, named a subscription, or asked for the
// wildcard in any form. Names beside a legacy wildcard count as named in state of the world too, where no request has them.
func (l *link) named(sub *subscription) bool {
	if sub.isStar() {
		return l.form != wildNone
	}
	return l.requested && l.names.Has(sub.onWire())
}

// reply is an ACK, or with a status a NACK, that the client owes.
type reply struct {
	version string // of the response
	nonce   string
	detail  *wire.Status
}

// size is what a reply takes while it is owed.
func (r *reply) size() int {
	const own = 64 // the reply itself
	size := own + len(r.version) + len(r.nonce)
	if r.detail != nil {
		size += own + len(r.detail.Message)
	}
	return size
}
