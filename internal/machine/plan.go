package machine

import (
	"fmt"
	"slices"
	"time"

	"github.com/xdswatch/xdswatch/internal/wire"
)

// entry is one of a response, while it is sorted for all subscriptions that it is of.
type entry struct {
	*wire.Resource
	index   int
	err     error // what is wrong with it before its payload is looked at
	locator bool  // it holds one
	item    *Item // that has it decoded, for all; nil until one does

	raw  []byte // that its payload was last compared with; nil for none
	same bool   // they are equal
	hash uint64 // of it; 0 until it is looked for
}

// plan sorts what the entry at index i says of the subscription that it found, if any, and of those that have
// the resource by an alias. It changes nothing: what is new has to be decoded.
func (r *reader) plan(now time.Time, i int, own *subscription, a *aliased) {
	e := entry{Resource: &r.Resources[i], index: i}
	e.err, e.locator = r.faultOf(e.Resource, a), r.link.redirects(e.Resource)
	if own != nil {
		r.planFor(now, &e, own)
	}
	if a == nil {
		return
	}
	for _, sub := range a.keys {
		r.planFor(now, &e, sub)
	}
	if own == nil && len(a.keys) == 0 { // it has too many aliases
		r.refuse(resources, i, string(e.Name), e.err)
	}
}

// planFor sorts what an entry says of one subscription, compared with what is known of that.
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
	// TTL-3: one at the version that was refused, which the server sent last, says that again.
	case !e.HasBody && e.HasTTL && sub.refusedAt(r.entryVersion(e.Resource)):
		refuse(known.Err, known.refused)
	// DELTA-11, DELTA-12: else in delta it says that the resource is gone, or that its alias is of nothing, and in state of
	// the world it is invalid.
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

// room is what is planned, with room for all entries from i on if it has none.
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

// repeatable says that nothing follows from a held value that comes again.
func (sub *subscription) repeatable() bool {
	// LKG-4: what a server says of a stale value is told, though it be the same.
	return sub.held() && !sub.stale() && !sub.switchesAlias()
}

// isHeld says that what an entry holds is what was accepted, but for aliases.
func (e *entry) isHeld(sub *subscription) bool {
	if sub.locator != e.locator || !e.equals(sub) {
		return false
	}
	// TYPE-5: what stands beside the value counts.
	return e.Attributes.Same(sub.attributes())
}

// overfills says that too much would be held if a subscription took an entry's payload, which is held once for
// all.
func (r *reader) overfills(e *entry, sub *subscription) error {
	most, size := r.link.stream.config.MaxHeld, len(e.Payload)
	if most <= 0 || e.item != nil || r.heldBytes+int64(size)-sub.counted() <= most {
		return nil
	}
	return fmt.Errorf("the resource has %d bytes; with it more than %d bytes of the server's resources would be held (Config.MaxHeldSize)", size, most)
}

// heartbeat says that an entry without a resource is one of what is held.
func (resp *response) heartbeat(r *wire.Resource, sub *subscription) bool {
	const virtualHost = "type.googleapis.com/envoy.config.route.v3.VirtualHost"
	version := resp.entryVersion(r)
	// In state of the world later responses may have left out the resource, which was unchanged, so its version may be that
	// of the last response of the type, though something else in that was refused, or of the last that was accepted.
	l := resp.link
	later := !l.stream.Delta && (version == l.version || version == l.latest) && !sub.refusedAt(version)
	accepted := version == sub.version || later
	// DELTA-12, TTL-3: only at the version that the resource has, or in state of the world at one in which it would have
	// been left out.
	return sub.held() && !sub.foreign() && version != "" && accepted && l.cache.typ.URL != virtualHost
}

// refusedAt says that what is wrong with a resource is that a version of it was refused. An empty one tells nothing apart.
func (sub *subscription) refusedAt(version string) bool {
	f := sub.fault()
	return version != "" && f != nil && f.Kind == FaultRejected && f.Version == version
}

// equals says whether the payload is what is held. The names of one resource share their bytes, which are
// compared once.
func (e *entry) equals(sub *subscription) bool {
	if e.raw == nil || !identical(e.raw, sub.raw) {
		e.raw, e.same = sub.raw, string(sub.raw) == string(e.Payload)
	}
	return e.same
}

// hashed is the entry's hash, which is worked out once for all its names.
func (e *entry) hashed() uint64 {
	if e.hash == 0 {
		e.hash = hashOfEntry(e.Payload, e.locator, e.Attributes)
	}
	return e.hash
}
