package machine

import (
	"cmp"
	"slices"
	"time"

	"github.com/xdswatch/xdswatch/internal/wire"
	"github.com/xdswatch/xdswatch/xdstp"
)

// Status of a resource, with the names and numbers of CSDS's ClientResourceStatus.
type Status uint8

// The statuses.
const (
	StatusUnknown   Status = iota
	StatusRequested        // see [subscription.unanswered]
	StatusDoesNotExist
	StatusAcked
	StatusNacked
	StatusReceivedError
	StatusTimeout
)

func (s Status) String() string {
	return [...]string{
		"UNKNOWN", "REQUESTED", "DOES_NOT_EXIST", "ACKED", "NACKED", "RECEIVED_ERROR", "TIMEOUT",
	}[s]
}

// subscription is what is wanted and known under one name: a resource, a glob or the wildcard. Members
// of a collection have one each, though nobody watches them by name. There may be a million, so what
// is rare stands in [extra].
type subscription struct {
	name   string
	of     *collection // that it is in; of a collection that itself
	joined []*Watch    // watches of the name, of a collection those of the whole; see [subscription.watches]

	raw     []byte // the accepted payload; nil if none is held
	version string
	updated int64  // when it was accepted, in Unix nanoseconds
	extra   *extra // what few have; nil for nothing
	seen    serial // of the last response of the active server that spoke of it by this name, on any stream, or see [Machine.sent]; 0 for none
	at      uint32 // its place in the roster that lists it, if one does

	gen  uint16 // grows with each change of raw; it may come round
	from uint16 // 1 + the index of the server that said what is known; 0 for none; see fromStore

	// Of this incarnation of the active server's stream; see [subscription.forgetStream].
	timer            // of the answer, while that is waited for
	subscribed  bool // a request names it, or is the wildcard's that answers for it; the writer may still have it
	unconfirmed bool // it goes unless the server speaks of it; see [link.unconfirm]

	status    Status
	reason    Reason // of the absence
	gone      bool   // not in its cache any more
	locator   bool   // raw says where the resource is, and is not the resource
	selfNamed bool   // raw names it itself: it came without a wrapper that does, and not by an alias
}

// forgetStream forgets what the active server was told of a name on this incarnation of its stream, and what it has to
// answer.
func (sub *subscription) forgetStream() {
	sub.timer, sub.subscribed, sub.unconfirmed = 0, false, false
	if sub.isCollection() {
		sub.of.listed = false
	}
}

// wanted says whether it is watched by its name; a collection has one too.
func (sub *subscription) wanted() bool { return len(sub.joined) > 0 }

// lives says that it is watched, or that the client has not yet told the server that it is not watched any more.
func (sub *subscription) lives() bool { return sub.wanted() || sub.subscribed && !sub.gone }

// wasSent says that a request which asks for it has left. For a collection the writer may still have the request: the client
// cannot tell which request a response answers, and to count a collection as complete too early is better than to miss its
// answer.
func (sub *subscription) wasSent() bool {
	return sub.subscribed && (sub.isCollection() || !sub.link().message.names(sub))
}

// isCollection says that it is a glob or the wildcard, and not a resource.
func (sub *subscription) isCollection() bool { return sub == &sub.of.subscription }

func (sub *subscription) isStar() bool { return sub == &sub.of.cache.star.subscription }

func (sub *subscription) held() bool { return sub.raw != nil }

// usable says that there is something that the program can use, whatever is wrong: a value, or of a collection the first
// state.
func (sub *subscription) usable() bool {
	return sub.held() || sub.isCollection() && sub.of.complete || sub.stale()
}

// stream is that of the active server.
func (sub *subscription) stream() *stream { return sub.of.source.stream() }

// link is what the active server was told of the type; nil if nothing is requested from it.
func (sub *subscription) link() *link { return sub.stream().link(sub.of.cache.typ.URL) }

// foreign says that what is known is from another server than the active one, or from the store.
func (sub *subscription) foreign() bool {
	return sub.from != 0 && int(sub.from) != sub.stream().server+1
}

// credit notes that the active server said what is known.
func (sub *subscription) credit() { sub.from = uint16(sub.stream().server + 1) }

// keptDeleted says that the value is held although the server has deleted the resource.
func (sub *subscription) keptDeleted() bool { return sub.held() && sub.status == StatusDoesNotExist }

// stays says that a value is held, and not only for the grace of a deletion, which was judged when it came.
func (sub *subscription) stays() bool {
	return sub.held() && !(sub.keptDeleted() && sub.leaseOf(leaseGrace) != nil)
}

// exists says that there is such a resource, as far as the server said: it is held, or its value was refused, or there
// is an error for it. The watches of collections were told so.
func (sub *subscription) exists() bool {
	return sub.held() || sub.status == StatusNacked || sub.status == StatusReceivedError
}

// authority of the name; "" of an old-style one.
func (sub *subscription) authority() string {
	authority, _ := xdstp.AuthorityOf(sub.name)
	return authority
}

// watches are those that are not over, in the order in which they began. The list may be kept: it is not changed.
func (sub *subscription) watches() []*Watch {
	if sub.rare().over > 0 {
		sub.joined = except(sub.joined, func(w *Watch) bool { return w.sub == nil })
		sub.alter(func(x *extra) { x.over = 0 })
	}
	return sub.joined
}

// patient says that all of some watches are patient: for them nothing follows from silence. There is at least one.
func patient(watches []*Watch) bool {
	return len(watches) > 0 && !slices.ContainsFunc(watches, func(w *Watch) bool { return !w.Patient })
}

// endWatch takes out a watch that is over: once the list is looked at, or half of it is over, since the end of many watches
// would take the square of their number if each changed the list.
func (sub *subscription) endWatch() {
	if len(sub.joined) == 1 { // the usual case
		sub.joined = nil
		return
	}
	if sub.alter(func(x *extra) { x.over++ }); 2*sub.rare().over >= len(sub.joined) {
		sub.watches()
	}
}

// server is the one that said what is known; of a collection, and where none did, the active one.
func (sub *subscription) server() int {
	if from := sub.from &^ fromStore; from != 0 && !sub.isCollection() {
		return int(from) - 1
	}
	return sub.stream().server
}

// hold keeps a payload in place of the one that is held, as it was given.
func (sub *subscription) hold(raw []byte, as given) {
	if raw == nil {
		raw = []byte{} // an empty message is one
	}
	sub.keep(raw, as)
}

// letGo ends the holding of a payload.
func (sub *subscription) letGo() { sub.keep(nil, given{}) }

func (sub *subscription) keep(raw []byte, as given) {
	src := sub.of.source
	src.heldBytes -= sub.counted()
	// CACHE-2: bytes are held.
	sub.raw = raw
	if as != sub.given() {
		sub.alter(func(x *extra) { x.given = as })
	}
	src.heldBytes += sub.counted()
}

// counted is how many bytes are counted of a subscription.
func (sub *subscription) counted() int64 {
	if sub.given().shared {
		return 0
	}
	size := len(sub.raw)
	if whole := sub.rare().whole; whole != nil {
		size += len(whole.Raw)
	}
	return int64(size)
}

// listable says that there is a version of what is held that may be told to the active server.
func (sub *subscription) listable() bool {
	// DELTA-9: of a value with flaws the version is not accepted. With that of the last whole one a server that is back at it would
	// not say it again.
	return sub.holdsOwn() && len(sub.flaws()) == 0
}

// holdsOwn says that a value is held that the active server gave and did not delete.
func (sub *subscription) holdsOwn() bool {
	// DELTA-2: the version of a value that the server deleted, and that is kept, is not listed.
	// ACK-10, DELTA-3, S-19: nor is the version of a value that another server gave.
	return sub.held() && !sub.foreign() && !sub.keptDeleted()
}

// absent says that there is no such resource, as far as is known. If its time to live ran out, nothing is known.
func (sub *subscription) absent() bool {
	return sub.status == StatusDoesNotExist && sub.reason != ReasonTTL
}

func structured(name string) bool { return xdstp.IsXDSTP(name) }

var xdstpScheme = []byte("xdstp:")

// fromStore is set in subscription.from once the store has answered, until a server says what is known: gives or confirms a
// value, or says that there is none. What is wrong with a stale value does not end it. With a server's number beside it
// the store had a value, which this server gave before the program was started; alone it says that the store has nothing.
const fromStore = 1 << 15

// stale says that the value, or the first state of a collection, is from the store.
func (sub *subscription) stale() bool { return sub.from > fromStore }

// loaded says that what is known is the store's answer.
func (sub *subscription) loaded() bool { return sub.from&fromStore != 0 }

// storable says whether the store has to do with a subscription.
func (sub *subscription) storable() bool {
	return sub.of.cache.typ.Stored && sub.of.source.Stored
}

// unanswered says that no server has answered for it: not since it was first wanted, or was asked for anew
// ([subscription.askAnew]), or what was known went. What the store has and trouble with the server are no answers, so a
// stale value may be held.
func (sub *subscription) unanswered() bool { return sub.status == StatusRequested }

// needsStore says that nothing at all is known of what is watched, not even that the store has nothing: then the store is
// asked. For a fallback a stale value is lacking too; see [source.lacks].
func (sub *subscription) needsStore() bool {
	return sub.storable() && sub.wanted() && sub.unanswered() && sub.from == 0
}

// loading says whether the store is being asked for a subscription of which no server has spoken meanwhile: its watches
// wait for the answer.
func (sub *subscription) loading() bool {
	return sub.unanswered() && sub.of.source.share(sub.of.cache).loads[sub] != nil
}

// extra is what few subscriptions have. The zero value is nothing.
type extra struct {
	fault *Fault // what is wrong; nil if nothing

	// spelling is the name as requests have it: as the watch spelled it that first caused one, since servers may
	// compare names as text (XDSTP-4). "" if that is the canonical name.
	spelling string

	target *aliasTarget // the resource of which the name is an alias; nil if it is none

	// Of the value that is held.
	given      given
	attributes *wire.Attributes // what the server said beside it; nil for nothing
	flaws      []error          // what is wrong with parts of it, which is told each time that the same comes again
	whole      *Whole           // the last value without flaws, if this one has some; nil for none
	leases     [leaseKinds]*lease

	renewed bool // refused with a response that called it new; see [response.renews]
	over    int  // watches that are over and still in the list; see [subscription.endWatch]
}

// given is the name under which a server gave the held value, if that is not the subscription's own. In delta the first
// request lists the version under this name. The zero value is the subscription's own name.
type given struct {
	name   string
	alias  bool // it is another name than the subscription's, which is an alias; else it is spelled otherwise
	shared bool // the bytes are those of another subscription of the resource, where they are counted
}

// Whole is a value without flaws after which one with flaws came. Watches use of the newer what can be used, and keep this one's
// parts for the rest, also those that come late. The response of the newer was NACKed: the store keeps this one.
type Whole struct {
	Raw     []byte
	Version string
}

// alter changes the extra of a subscription. It makes one first if there is none, and drops it if it is empty afterwards. It
// allocates, so it is not to be called for most subscriptions.
func (sub *subscription) alter(change func(*extra)) {
	if sub.extra == nil {
		sub.extra = new(extra)
	}
	if change(sub.extra); sub.extra.empty() {
		sub.extra = nil
	}
}

func (x *extra) empty() bool {
	return x.fault == nil && x.spelling == "" && x.target == nil && x.given == given{} && x.attributes == nil &&
		len(x.flaws) == 0 && x.whole == nil && x.leases == [leaseKinds]*lease{} && !x.renewed && x.over == 0
}

// nothing is what most subscriptions have; it is never changed.
var nothing extra

// rare is the extra of a subscription, to be looked at.
func (sub *subscription) rare() *extra {
	if sub.extra == nil {
		return &nothing
	}
	return sub.extra
}

func (sub *subscription) fault() *Fault { return sub.rare().fault }

// become gives a subscription a status and what is wrong, nil for nothing.
func (sub *subscription) become(status Status, f *Fault) {
	if sub.status = status; f != sub.fault() {
		sub.alter(func(x *extra) { x.fault = f })
	}
}

func (sub *subscription) given() given { return sub.rare().given }

// setFlaws notes what is wrong with parts of the value, and the last value without flaws, if it has any.
func (sub *subscription) setFlaws(flaws []error, last *Whole) {
	if len(flaws)+len(sub.flaws()) == 0 {
		return
	}
	src := sub.of.source
	src.heldBytes -= sub.counted()
	sub.alter(func(x *extra) { x.flaws, x.whole = flaws, last })
	src.heldBytes += sub.counted()
}

func (sub *subscription) flaws() []error { return sub.rare().flaws }

// lastWhole is the last value without flaws, before one with flaws takes its place; nil if there is none, and of redirects.
func (sub *subscription) lastWhole() *Whole {
	switch {
	case !sub.held(), sub.locator:
		return nil
	case len(sub.flaws()) > 0:
		return sub.rare().whole
	}
	return &Whole{sub.raw, sub.version}
}

// setRenewed notes whether a response that called the value new was refused.
func (sub *subscription) setRenewed(renewed bool) {
	if renewed != sub.renewed() {
		sub.alter(func(x *extra) { x.renewed = renewed })
	}
}

func (sub *subscription) renewed() bool { return sub.rare().renewed }

func (sub *subscription) attributes() *wire.Attributes { return sub.rare().attributes }

// aliases are the other names of the value that is held, as the server lists them.
func (sub *subscription) aliases() [][]byte {
	if a := sub.attributes(); a != nil {
		return a.Aliases
	}
	return nil
}

// keepAttributes keeps what stands beside a held value now.
func (sub *subscription) keepAttributes(said *wire.Attributes) {
	if said.Equal(sub.attributes()) {
		return
	}
	if said != nil {
		said = said.Clone()
	}
	sub.alter(func(x *extra) { x.attributes = said })
}

// strip forgets what is known beside a value.
func (sub *subscription) strip() {
	if sub.extra == nil {
		return
	}
	sub.endLease(leaseTTL)
	sub.endLease(leaseGrace)
	sub.setFlaws(nil, nil)
	sub.alter(func(x *extra) { x.attributes = nil })
}

// onWire is the name as it is subscribed to.
func (sub *subscription) onWire() string { return cmp.Or(sub.rare().spelling, sub.name) }

// spell notes the spelling with which requests have the name, nil for the name as it is. It does nothing while the name is
// watched or subscribed to.
func (sub *subscription) spell(spelling *string) {
	if sub.lives() {
		return
	}
	if spelling == nil {
		spelling = &sub.name
	}
	if *spelling != sub.onWire() {
		sub.alter(func(x *extra) { x.spelling = *spelling })
	}
}

// versionName is the name under which the server is told the version that is held.
func (sub *subscription) versionName() string { return cmp.Or(sub.given().name, sub.name) }

// lease is a time for which a resource is held that has a time to live (xDS protocol, "TTL"), or that the
// server deleted and that is kept for a while. The time runs while the stream is down too.
type lease struct {
	sub    *subscription
	stream *stream // whose alarm it is
	kind   leaseKind
	wait   time.Duration // for which it was set last
	timer
}

type leaseKind uint8

const (
	leaseTTL   leaseKind = iota
	leaseGrace           // what the server deleted is kept
	leaseKinds           // how many there are
)

// endLease ends a lease, if there is one.
func (sub *subscription) endLease(kind leaseKind) {
	if l := sub.leaseOf(kind); l != nil {
		l.timer = 0
		l.stream.agenda.touch(l.stream) // the resource may be of another one by now
		sub.alter(func(x *extra) { x.leases[kind] = nil })
	}
}

// leaseOf is a lease; nil if there is none.
func (sub *subscription) leaseOf(kind leaseKind) *lease { return sub.rare().leases[kind] }
