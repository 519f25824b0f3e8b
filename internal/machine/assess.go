package machine

import (
	"fmt"
	"slices"
	"time"

	"github.com/xdswatch/xdswatch/internal/wire"
)

// plan sorts what an entry of a response says of a subscription, and changes nothing: what is new has to be
// decoded.
func (r *reader) plan(now time.Time, i int, sub *subscription) {
	if r.recordedOf(sub) == statesTwice {
		r.invalid++
		return
	}
	switch it := r.assess(i, sub); it.kind {
	case isNew:
		r.decode(i, sub)
	case isBare:
		r.statements = append(r.statements, statement{sub: sub, kind: statesBare})
	case isHeld:
		r.ready = append(r.room(i), planned{sub: sub, index: i})
	case isInvalid:
		r.ready = append(r.room(i), planned{sub, i, r.refusal(now, i, it.err, it.hash)})
	}
}

// room is what is planned, with room for all entries from i on if it has none.
func (r *reader) room(i int) []planned {
	if len(r.ready) < cap(r.ready) {
		return r.ready
	}
	return slices.Grow(r.ready, len(r.Resources)-i)
}

// assess compares an entry of a response with what is known.
func (r *reader) assess(i int, sub *subscription) finding {
	entry := &r.Resources[i]
	switch err := r.faultOf(i); {
	case sub.isCollection():
		return finding{kind: isInvalid, err: errGlob}
	case err != nil:
		return finding{kind: isInvalid, err: err}
	case entry.HasBody:
		return r.compare(i, sub)
	case r.heartbeat(entry, sub):
		return finding{kind: isHeld}
	case r.link.stream.Delta:
		return finding{kind: isBare}
	}
	return finding{kind: isInvalid, err: errNoBody}
}

// faultOf says what is wrong with an entry before its payload is looked at.
func (r *reader) faultOf(i int) error {
	entry, most := &r.Resources[i], r.link.stream.maxResource
	if err := r.link.faultOf(entry); err != nil {
		return err
	}
	if a := r.byIndex[i]; a != nil && a.err != nil {
		return a.err
	}
	if most > 0 && len(entry.Payload) > most {
		return fmt.Errorf("the resource has %d bytes, over the limit of %d (Config.MaxResourceSize)", len(entry.Payload), most)
	}
	return nil
}

// compare compares a payload with what is held, and with what was refused.
func (r *reader) compare(i int, sub *subscription) finding {
	if r.renews(i, sub) {
		return finding{kind: isNew}
	}
	entry := &r.Resources[i]
	locator := r.link.redirects(entry)
	// WATCH-4: what is unchanged is not decoded.
	if r.holds(i, sub, locator) && !sub.switchesAlias() && !sub.stale() {
		return finding{kind: isHeld}
	}
	if f := sub.fault(); f != nil && f.refused != 0 && f.refused == r.hashOf(i, locator) {
		return finding{isInvalid, f.Err, f.refused}
	}
	if err := r.overfills(i, sub); err != nil {
		return finding{kind: isInvalid, err: err}
	}
	return finding{kind: isNew}
}

// holds says that what an entry of a response holds is what was accepted, but for aliases.
func (r *reader) holds(i int, sub *subscription, locator bool) bool {
	if !sub.held() || sub.locator != locator || !r.equals(i, sub) {
		return false
	}
	was, said := sub.attributes(), r.Resources[i].Attributes
	// TYPE-5: what stands beside the value counts.
	return was == said || said.Same(was)
}

// overfills says that too much would be held if a subscription took an entry's payload.
func (r *reader) overfills(i int, sub *subscription) error {
	s, a, size := r.link.stream, r.byIndex[i], len(r.Resources[i].Payload)
	if s.maxHeld <= 0 || a != nil && a.task != nil || r.held+int64(size)-sub.counted() <= s.maxHeld { // a task's is shared
		return nil
	}
	return fmt.Errorf("the resource has %d bytes; with it more than %d bytes of the server's resources would be held (Config.MaxHeldSize)", size, s.maxHeld)
}

// heartbeat says that an entry without a resource is one of what is held.
func (resp *response) heartbeat(r *wire.Resource, sub *subscription) bool {
	const virtualHost = "type.googleapis.com/envoy.config.route.v3.VirtualHost"
	version := resp.versionOf(r)
	// DELTA-12: only at the accepted version.
	return sub.held() && !sub.foreign() && version != "" && version == sub.version && resp.link.cache.typ.URL != virtualHost
}

// equals says whether the payload of an entry of the response is what is held. The names of one
// resource share their bytes, which are compared once.
func (r *reader) equals(i int, sub *subscription) bool {
	payload, a := r.Resources[i].Payload, r.byIndex[i]
	if a == nil {
		return string(sub.raw) == string(payload)
	}
	if a.raw == nil || !identical(a.raw, sub.raw) {
		a.raw, a.same = sub.raw, string(sub.raw) == string(payload)
	}
	return a.same
}

// hashOf is that of an entry of the response, which is worked out once for all its names.
func (r *reader) hashOf(i int, locator bool) uint64 {
	entry, a := &r.Resources[i], r.byIndex[i]
	if a == nil {
		return hashOfEntry(entry.Payload, locator, entry.Attributes)
	}
	if a.hash == 0 {
		a.hash = hashOfEntry(entry.Payload, locator, entry.Attributes)
	}
	return a.hash
}
