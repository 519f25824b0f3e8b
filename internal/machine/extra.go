package machine

import (
	"cmp"

	"github.com/xdswatch/xdswatch/internal/wire"
)

// extra is what few subscriptions have. The zero value is nothing.
type extra struct {
	fault *Fault // what is wrong; nil if nothing

	// spelling is the name as requests have it: as the watch spelled it that first caused one, since servers may
	// compare names as text (XDSTP-4). "" if that is the canonical name.
	spelling string

	target *aliasTarget // the resource of which the name is an alias; nil if it is none

	// Of the value that is held.
	given      *given           // nil for the zero value
	attributes *wire.Attributes // what the server said beside it; nil for nothing
	flaws      []error          // what is wrong with parts of it, which is told each time that the same comes again
	leases     [leaseKinds]*lease

	renewed bool // refused with a response that called it new; see [response.renews]
}

// given is under which name a server gave the value that is held, where that is not the subscription's
// own. It is told the version under that name. The zero value is the subscription's own name.
type given struct {
	name   string
	alias  bool // it is another name than the subscription's, which is an alias; else it is spelled otherwise
	shared bool // the bytes are those of another subscription of the resource, where they are counted
}

// alter changes the extra of a subscription, which it makes first, and drops once it is empty. It allocates, so it is
// not for what most subscriptions go through.
func (sub *subscription) alter(change func(*extra)) {
	if sub.extra == nil {
		sub.extra = new(extra)
	}
	if change(sub.extra); sub.extra.empty() {
		sub.extra = nil
	}
}

func (x *extra) empty() bool {
	return x.fault == nil && x.spelling == "" && x.target == nil && x.given == nil && x.attributes == nil &&
		len(x.flaws) == 0 && x.leases == [leaseKinds]*lease{} && !x.renewed
}

func (sub *subscription) fault() *Fault {
	if sub.extra == nil {
		return nil
	}
	return sub.extra.fault
}

// become gives a subscription a status and what is wrong, nil for nothing.
func (sub *subscription) become(status Status, f *Fault) {
	if sub.status = status; f != sub.fault() {
		sub.alter(func(x *extra) { x.fault = f })
	}
}

// setGiven notes under which name the value was given.
func (sub *subscription) setGiven(as given) {
	if as != sub.given() {
		sub.alter(func(x *extra) {
			if x.given = nil; as != (given{}) {
				kept := as // so that only this one is allocated
				x.given = &kept
			}
		})
	}
}

func (sub *subscription) given() given {
	if sub.extra == nil || sub.extra.given == nil {
		return given{}
	}
	return *sub.extra.given
}

// setFlaws notes what is wrong with parts of the value.
func (sub *subscription) setFlaws(flaws []error) {
	if len(flaws)+len(sub.flaws()) > 0 {
		sub.alter(func(x *extra) { x.flaws = flaws })
	}
}

func (sub *subscription) flaws() []error {
	if sub.extra == nil {
		return nil
	}
	return sub.extra.flaws
}

// setRenewed notes whether a response that called the value new was refused.
func (sub *subscription) setRenewed(renewed bool) {
	if renewed != sub.renewed() {
		sub.alter(func(x *extra) { x.renewed = renewed })
	}
}

func (sub *subscription) renewed() bool { return sub.extra != nil && sub.extra.renewed }

func (sub *subscription) attributes() *wire.Attributes {
	if sub.extra == nil {
		return nil
	}
	return sub.extra.attributes
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
	sub.alter(func(x *extra) { x.attributes, x.flaws = nil, nil })
}

// onWire is the name as it is subscribed to.
func (sub *subscription) onWire() string {
	if sub.extra == nil {
		return sub.name
	}
	return cmp.Or(sub.extra.spelling, sub.name)
}

// spell notes how the name is to be subscribed to, nil for as it is, unless it is watched or subscribed to.
func (sub *subscription) spell(spelling *string) {
	if sub.lives() {
		return
	}
	if spelling != nil && *spelling != sub.name {
		sub.alter(func(x *extra) { x.spelling = *spelling })
	} else {
		sub.unspell()
	}
}

// unspell ends that the name is subscribed to in another spelling.
func (sub *subscription) unspell() {
	if sub.extra != nil {
		sub.alter(func(x *extra) { x.spelling = "" })
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
func (sub *subscription) leaseOf(kind leaseKind) *lease {
	if sub.extra == nil {
		return nil
	}
	return sub.extra.leases[kind]
}
