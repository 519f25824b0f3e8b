package machine

import (
	"hash/maphash"
	"slices"
	"time"

	"github.com/xdswatch/xdswatch/internal/wire"
)

// Codes of google.rpc.Status that have a meaning here.
const (
	codeInvalidArgument   = 3
	codeNotFound          = 5
	codePermissionDenied  = 7
	codeResourceExhausted = 8
)

// response is one that is being worked on: a [reader] finds what it speaks of, what is new is decoded,
// and then its conclusions are drawn.
type response struct {
	// What the wire said, and what was so when it came. It does not change.
	*wire.Response
	ref        Ref
	link       *link
	serial     uint32
	form       wildForm // how the wildcard was requested
	first      bool     // of the type on its stream
	bodies     bool     // an entry has a resource
	removedSum uint64   // of the names of a long list of removed ones, for fingerprint

	reading
	work
	verdict

	over *requested // what had been requested when the stream ended; nil before
	then *Received  // a response of the type that has to wait for this one
}

// reading is what a response speaks of.
type reading struct {
	says     []saying
	heard    []*collection // that it speaks of, or of something in them
	healed   []healed      // of them, that had an error before
	spoken   int           // of how many subscriptions it speaks
	whole    bool          // of all that there were when it came
	nameless bool          // an entry's name could not be read
	resumes  bool          // it spoke of something whose version was withheld
}

// saying is what a response says of a subscription beside a value.
type saying struct {
	sub  *subscription
	kind sayingKind
	err  *wire.ResourceError // of saysFailed
}

// sayingKind is in the order in which conclusions are drawn.
type sayingKind uint8

const (
	saysNothing sayingKind = iota
	saysTwice              // it is named more than once
	saysFailed             // there is an error for it, and nothing else
	saysBare               // it does not exist: an entry without a body
	saysRemoved            // it does not exist: delta's list
)

// healed is a collection that a response speaks of, and the error that it had.
type healed struct {
	*collection
	fault *Fault
}

// requested is what a server had been told on a stream that is over.
type requested struct {
	collections map[*collection]bool   // whose request had left
	names       map[*subscription]bool // that were subscribed to
}

// on says whether a response of this incarnation is being worked on, or waits for it.
func (resp *response) on(r Ref) bool {
	return resp != nil && (resp.ref == r || resp.then != nil && resp.then.Ref == r)
}

var hashSeed = maphash.MakeSeed()

// hashOf is never 0.
func hashOf(payload []byte) uint64 { return maphash.Bytes(hashSeed, payload) | 1 }

// hashOfEntry is of a payload and the metadata that may be refused with it. It tells the
// bytes of a locator from the same bytes of a resource.
func hashOfEntry(payload []byte, locator bool, a *wire.Attributes) uint64 {
	hash := hashOf(payload)
	if a != nil && len(a.Metadata) > 0 {
		hash = (hash + hashOf(a.Metadata)) | 1
	}
	if locator {
		hash ^= 1 << 63
	}
	return hash
}

// received takes a response. Reading stands still from here to Delivered.
func (m *Machine) received(now time.Time, s *stream, r *wire.Response) {
	// FC-1: timers stand still.
	s.clock.hold(now)
	s.responded, s.reading = true, false
	s.undelivered = append(s.undelivered, s.ref())
	m.tellUp(s)
	m.take(now, s, r)
}

// take works on a response, or puts it off until another of its type is done with.
func (m *Machine) take(now time.Time, s *stream, r *wire.Response) {
	if r.TypeURL == "" {
		r.TypeURL = s.untyped(r)
	}
	l := s.types[r.TypeURL]
	if l != nil && l.busy != nil {
		if old := l.busy.then; old != nil {
			s.dropUndelivered(old.Ref)
		}
		l.busy.then = &Received{s.ref(), r} // link.busy is of an incarnation that is over
		return
	}
	if l != nil && l.requested {
		m.revert(now, l)
	}
	n := Notice{
		Kind: NoticeResponse, Server: s.server, TypeURL: r.TypeURL, Version: r.Version, Stream: s.ref(),
		Ignored:  l == nil || !l.requested,
		Exchange: &Exchange{Nonce: r.Nonce, ControlPlane: r.ControlPlane, Resources: len(r.Resources), Size: r.Size},
	}
	m.fx.Notify = append(m.fx.Notify, n)
	if n.Ignored {
		for _, q := range s.quirks {
			q.received(m, now, nil)
		}
		m.ignore(s, l, r)
		return
	}
	switch {
	case s.writing != l:
	case l.left:
		// A collection that is complete too early is better than one whose answer was missed.
		l.overtaken = true
	default:
		m.written(now, l) // nothing was subscribed to before it, so it has left
	}
	m.serial++
	resp := &response{Response: r, ref: s.ref(), link: l, serial: m.serial, form: l.form, first: !l.answered}
	l.nonce, l.answered, l.pacer = r.Nonce, true, pacer{}
	for _, q := range s.quirks {
		q.received(m, now, l)
	}
	resp.bodies = slices.ContainsFunc(r.Resources, func(r wire.Resource) bool { return r.HasBody })
	l.busy = resp
	m.sift(now, resp)
}

// ignore passes over a response of a type that was not requested on this stream: it is
// neither ACKed nor NACKed, but its nonce counts if the type is requested later.
func (m *Machine) ignore(s *stream, l *link, r *wire.Response) {
	switch {
	case len(r.TypeURL)+len(r.Nonce) > maxIgnoredBytes: // H-9
		delete(s.ignored, r.TypeURL)
		if l != nil {
			l.nonce = ""
		}
	case l != nil:
		l.nonce = r.Nonce
	case s.ignored == nil:
		s.ignored = map[string]string{r.TypeURL: r.Nonce}
	case len(s.ignored) < maxIgnored || s.ignored[r.TypeURL] != "":
		s.ignored[r.TypeURL] = r.Nonce
	}
	if s.troubled() {
		m.recovered(s)
	}
	m.fx.Consumed = append(m.fx.Consumed, s.ref())
}

// end is the end of a response, whatever became of it.
func (m *Machine) end(now time.Time, resp *response) {
	l, s := resp.link, resp.link.stream
	l.busy = nil
	resp.noteRefusal()
	m.fx.Notify = append(m.fx.Notify, Notice{
		Kind: NoticeEnd, Server: s.server, TypeURL: l.typ.URL, Version: resp.Version, Stream: resp.ref,
		Exchange: &Exchange{Valid: resp.valid, Invalid: resp.invalid},
	})
	m.fx.Consumed = append(m.fx.Consumed, resp.ref)
	if then := resp.then; then != nil {
		if m.current(then.Ref) == s && s.state == up {
			m.take(now, s, then.Response)
		} else {
			s.dropUndelivered(then.Ref)
		}
	}
}

// versionOf is the version of an entry: delta's own, else the response's.
func (resp *response) versionOf(r *wire.Resource) string {
	if resp.link.stream.Delta {
		return string(r.Version)
	}
	return resp.Version
}

// constraints of an entry of the response; nil for none.
func (resp *response) constraints(i int) []byte {
	if n := resp.Resources[i].Variant; n > 0 {
		return resp.Constraints[n-1]
	}
	return nil
}

// renews says that an entry of a response is new though its bytes may not be: the response
// says so, or one did that a guard refused.
func (resp *response) renews(i int, sub *subscription) bool {
	return resp.Renewed[i] || resp.link.renewed[sub]
}

// subscribes says that the server was told of a name when the response came, or before its stream ended.
func (resp *response) subscribes(sub *subscription) bool {
	if resp.over != nil {
		return resp.over.names[sub]
	}
	return sub.subscribed && !resp.link.leaving(sub)
}

// awaited says whether the request for a collection had left when the response came.
func (resp *response) awaited(c *collection) bool {
	if !c.ownedBy(resp.link.stream) {
		return false
	}
	if resp.over != nil {
		return resp.over.collections[c] && c.wanted()
	}
	return resp.link.requestLeft(c)
}

// fullState says that a response of the type holds everything.
func (l *link) fullState() bool {
	return !l.stream.Delta && (l.typ.FullState || l.stream.FullState)
}

// tellsAll says that what a response does not hold is not there. One of heartbeats alone says
// nothing of what needs none.
func (resp *response) tellsAll() bool {
	// TTL-4: heartbeats alone end nothing.
	return resp.link.fullState() && !resp.unusable() && (resp.bodies || len(resp.Resources) == 0)
}

// unusable says that a response is that of a file which cannot be used: errors alone, which
// say nothing of the rest.
func (resp *response) unusable() bool {
	return resp.link.stream.FullState && len(resp.Resources) == 0 && len(resp.Errors) > 0
}
