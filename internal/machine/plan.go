package machine

import (
	"fmt"
	"slices"
	"time"

	"github.com/xdswatch/xdswatch/internal/wire"
)

// entry is an entry of a response while plan decides what it means for each of its subscriptions.
type entry struct {
	*wire.Resource
	index   int
	err     error // what is wrong with it before its payload is looked at
	locator bool  // it holds a locator in place of a resource
	item    *Item // that has it decoded, for all subscriptions; nil if none does

	raw  []byte // the bytes that its payload was last compared with; nil for none
	same bool   // the result of that comparison
	hash uint64 // hashOfEntry; 0 until it is needed
}

// plan decides what the entry at index i means for the subscription of its own name, if there is one, and for those of its
// aliases. It changes no subscription: what is new has to be decoded first.
func (r *reader) plan(now time.Time, i int, own *subscription, a *aliased) {
	e := entry{Resource: &r.Resources[i], index: i}
	e.err, e.locator = r.faultOf(e.Resource, a), r.link.redirects(e.Resource)
	if own != nil {
		r.planFor(now, &e, own)
	}
	if a == nil {
		return
	}
	for _, sub := range a.subs {
		r.planFor(now, &e, sub)
	}
	if own == nil && len(a.subs) == 0 { // it has too many aliases
		r.refuse(resources, i, string(e.Name), e.err)
	}
}

// planFor decides what an entry means for one subscription: that it is invalid, unchanged, a heartbeat, says that there is no
// resource, or has to be decoded.
func (r *reader) planFor(now time.Time, e *entry, sub *subscription) {
	note := func(f *Fault) { r.ready = append(r.room(e.index), planned{sub, e.index, f}) }
	refuse := func(err error, hash uint64) { note(r.refusal(now, e.index, err, hash)) }
	known := sub.fault()
	switch {
	case r.recordedOf(sub) == statesTwice:
		r.invalid++
	// REDIR-2: a glob is no resource, nor a redirect.
	case sub.isCollection():
		refuse(errGlob, 0)
	case e.err != nil:
		refuse(e.err, 0)
	// DELTA-12: an entry without a body is a heartbeat.
	case !e.HasBody && r.heartbeat(e.Resource, sub):
		note(nil)
	// TTL-3: a heartbeat of the version that was refused is refused again.
	case !e.HasBody && e.HasTTL && sub.refusedAt(r.entryVersion(e.Resource)):
		refuse(known.Err, known.refused)
	// DELTA-11, DELTA-12: in delta any other entry without a body says that there is no such resource, and in state of the
	// world it is invalid.
	case !e.HasBody && r.link.stream.Delta:
		r.statements = append(r.statements, statement{sub: sub, kind: statesNotFound})
	case !e.HasBody:
		refuse(errNoBody, 0)
	case r.renews(e.index, sub):
		r.decode(e, sub)
	// WATCH-4, S-16: what is unchanged is not decoded, whatever its version.
	case sub.repeatable() && e.isHeld(sub):
		note(nil)
	case known != nil && known.refused == e.hashed():
		refuse(known.Err, known.refused)
	default:
		if err := r.overfills(e, sub); err != nil {
			refuse(err, 0)
		} else {
			r.decode(e, sub)
		}
	}
}

// room is the list ready. If it is full, it gets room for all entries from i on.
func (r *reader) room(i int) []planned {
	if len(r.ready) < cap(r.ready) {
		return r.ready
	}
	return slices.Grow(r.ready, len(r.Resources)-i)
}

// faultOf says what is wrong with an entry before its payload is looked at: by itself ([link.faultOf]), with its
// aliases, or with its size.
func (r *reader) faultOf(entry *wire.Resource, a *aliased) error {
	if err := r.link.faultOf(entry); err != nil {
		return err
	}
	if a != nil && a.err != nil {
		return a.err
	}
	if most := r.link.stream.config.MaxResource; most > 0 && len(entry.Payload) > most {
		return fmt.Errorf("the resource has %d bytes, over the limit of %d (Config.MaxResourceSize)", len(entry.Payload), most)
	}
	return nil
}

// repeatable says that nothing need be told if the held value comes again.
func (sub *subscription) repeatable() bool {
	// LKG-4: a server that gives the stale value again confirms it, and that is told.
	return sub.held() && !sub.stale() && !sub.switchesAlias()
}

// isHeld says that an entry holds the value that is held, and the same attributes, but for aliases.
func (e *entry) isHeld(sub *subscription) bool {
	if sub.locator != e.locator || !e.equals(sub) {
		return false
	}
	// TYPE-5: cache control and metadata beside the value count too.
	return e.Attributes.Same(sub.attributes())
}

// overfills returns an error if the client would hold more bytes of the server than it may once a subscription holds the
// entry's payload, which is held once for all subscriptions of the entry.
func (r *reader) overfills(e *entry, sub *subscription) error {
	most, size := r.link.stream.config.MaxHeld, len(e.Payload)
	if most <= 0 || e.item != nil || r.heldBytes+int64(size)-sub.counted() <= most {
		return nil
	}
	return fmt.Errorf("the resource has %d bytes; with it more than %d bytes of the server's resources would be held (Config.MaxHeldSize)", size, most)
}

// heartbeat says that an entry without a resource is a heartbeat of the held value.
func (resp *response) heartbeat(r *wire.Resource, sub *subscription) bool {
	const virtualHost = "type.googleapis.com/envoy.config.route.v3.VirtualHost"
	version := resp.entryVersion(r)
	// In state of the world later responses may have left out the resource because it was unchanged. So a heartbeat may have
	// the version of the last response of the type, even if another resource of that was refused, or of the last accepted one.
	l := resp.link
	later := !l.stream.Delta && (version == l.version || version == l.latest) && !sub.refusedAt(version)
	accepted := version == sub.version || later
	// DELTA-12, TTL-3: only with the version of the held value, or in state of the world with a later one as said above.
	return sub.held() && !sub.foreign() && version != "" && accepted && l.cache.typ.URL != virtualHost
}

// refusedAt says that this version of the resource was refused, and no value was accepted since. An empty version does not
// tell which one was.
func (sub *subscription) refusedAt(version string) bool {
	f := sub.fault()
	return version != "" && f != nil && f.Kind == FaultRejected && f.Version == version
}

// equals says whether the payload equals the held one. Subscriptions of one resource share their bytes, so these are
// compared once.
func (e *entry) equals(sub *subscription) bool {
	if e.raw == nil || !identical(e.raw, sub.raw) {
		e.raw, e.same = sub.raw, string(sub.raw) == string(e.Payload)
	}
	return e.same
}

// hashed is the hash of the entry, which is computed once for all its subscriptions.
func (e *entry) hashed() uint64 {
	if e.hash == 0 {
		e.hash = hashOfEntry(e.Payload, e.locator, e.Attributes)
	}
	return e.hash
}
