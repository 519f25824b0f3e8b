package machine

import (
	"slices"
	"time"

	"github.com/xdswatch/xdswatch/internal/wire"
	"github.com/xdswatch/xdswatch/xdstp"
)

// reader finds what a response speaks of, and sorts what it says of it. It is gone once the response is
// read.
type reader struct {
	*response
	found    []*subscription       // the subscription that each entry is for, by its own name; nil for none
	recorded map[*subscription]int // index of a subscription's statement in statements; not of those that plan adds

	aliased  map[int]*aliased     // entries that have aliases, by index
	aliasUse map[*aliasTarget]int // how often the response spoke of a resource that has aliases

	outside      int    // how many structured names the server does not answer for
	firstOutside string // the first of these names
	loggedError  bool   // the log says that an error was passed over

	newBytes  int   // bytes of payloads that have to be decoded
	before    int   // newBytes when the last task began
	heldBytes int64 // how many bytes of the server's resources are held if all of newBytes is accepted
}

// read finds the subscriptions that a response speaks of, plans what it says of each, and asks for new values to be
// decoded.
func (m *Machine) read(now time.Time, resp *response) {
	r := &reader{response: resp, found: slices.Grow(m.found[:0], len(resp.Resources)), heldBytes: resp.link.stream.heldBytes()}
	r.ready, m.ready = m.ready, nil
	for i := range r.Resources {
		r.found = append(r.found, r.find(i))
	}
	r.keepInstead(now, r.found)
	m.logOutside(r)
	r.findAliases()
	r.findRemoved()
	m.findErrors(r)
	for i, sub := range r.found {
		if a := r.aliased[i]; sub != nil || a != nil {
			r.plan(now, i, sub, a)
		}
	}
	m.found = r.link.remember(r.found)
	r.conclude()
	if r.newBytes > releasable && r.newBytes > r.Size/2 {
		r.released = true
		m.fx.Release = append(m.fx.Release, r.ref)
	}
	m.fx.Decode = append(m.fx.Decode, r.tasks...)
	m.proceed(now, resp)
}

// find returns the subscription that entry i is for; nil for none. The reader finds those of all entries before it plans
// any, so that of a name which stands twice no entry is used.
func (r *reader) find(i int) *subscription {
	l := r.link
	if sub := l.repeated(r.response, i); sub != nil {
		return r.seeOwn(sub)
	}
	name, err := l.nameOf(&r.Resources[i])
	if len(r.Resources[i].Name) == 0 && name != nil {
		if over := r.ChargeName(name); over != nil {
			name, err = nil, over
		}
	}
	// TYPE-6: an entry without a name is refused.
	if name == nil {
		r.nameless = true
		r.refuse(resources, i, "", err)
		return nil
	}
	sub, n, err := l.cache.identify(name)
	// WILD-2: a resource cannot have the name of the wildcard that is requested: its entry is refused, unless it says that
	// there is no resource.
	if string(name) == star && l.home("") != nil {
		if err = errGlob; r.statesNone(i) {
			return nil
		}
	}
	if err != nil {
		r.refuse(resources, i, string(name), err)
		return nil
	}
	if sub != nil && !l.owns(sub) { // SOTW-9: another server's word counts
		n, err = xdstp.ParseReceived(sub.name)
		if may := err != nil || r.mayName(n); may && !l.named(sub) && l.chose(sub, sub.name, r.constraints(i)) {
			r.tellQuirks(i, name)
		}
		return nil
	}
	canonical := textOf(n)
	if sub == nil && canonical != "" && !r.mayName(n) {
		return nil // H-11: passed over
	}
	// DYN-2: the variant is for others.
	if !l.chose(sub, canonical, r.constraints(i)) {
		return nil
	}
	if sub == nil {
		// SOTW-11, DELTA-13, S-15: what was not subscribed to is passed over.
		if sub = l.newMember(name, canonical); sub == nil {
			r.tellQuirks(i, name)
			return nil // the client does not look at what is wrong with it
		}
	}
	if sub.seen == r.serial {
		// ACK-11, DELTA-8: a duplicate is refused.
		r.namedTwice(i, sub)
		return sub
	}
	return r.seeOwn(sub) // TTL-4: present, also by a heartbeat
}

// tellQuirks tells the quirks of entry i, which is passed over since its name was not requested from the server.
func (r *reader) tellQuirks(i int, name []byte) {
	for _, q := range r.link.stream.quirks {
		q.passed(r.link, name, &r.Resources[i])
	}
}

// statesNone says that entry i means that there is no such resource: it is delta's, without a body and with nothing
// wrong with it.
func (r *reader) statesNone(i int) bool {
	e := &r.Resources[i]
	return r.link.stream.Delta && !e.HasBody && r.link.faultOf(e) == nil
}

// seeOwn notes that the response holds a resource by its own name, so that the name is no alias.
func (r *reader) seeOwn(sub *subscription) *subscription {
	_ = r.setAlias(sub, nil) // cannot fail: nothing is added
	sub.see(r.response)
	return sub
}

// see notes that a response speaks of a subscription.
func (sub *subscription) see(resp *response) {
	// ALIAS-2: an alias is in no collection.
	if c := sub.of; c.touched != resp.serial && sub.target() == nil {
		c.touched = resp.serial
		resp.collections = append(resp.collections, c)
	}
	resp.mentioned++
	sub.seen = resp.serial
	// DNE-4: whatever the server says of a subscription confirms it.
	if sub.unconfirmed {
		sub.unconfirmed, sub.timer = false, 0
		resp.link.sweepTimer = 0 // the server is still confirming, and has a full period again for the rest
	}
}

// record notes the statement of the response on a subscription. It replaces one that was noted before.
func (r *reader) record(sub *subscription, kind statementKind, err *wire.ResourceError) {
	if at, ok := r.recorded[sub]; ok {
		r.statements[at] = statement{sub, kind, err}
		return
	}
	if r.recorded == nil {
		r.recorded = map[*subscription]int{}
	}
	r.recorded[sub] = len(r.statements)
	r.statements = append(r.statements, statement{sub, kind, err})
}

// recordedOf is the kind of the statement that was noted of a subscription; statesNothing if none was.
func (r *reader) recordedOf(sub *subscription) statementKind {
	if at, ok := r.recorded[sub]; ok {
		return r.statements[at].kind
	}
	return statesNothing
}

// namedTwice makes a name invalid that a response holds more than once.
func (r *reader) namedTwice(i int, sub *subscription) {
	r.record(sub, statesTwice, nil)
	r.line(resources, i, sub.name, errTwice)
}

// mayName says whether the server answers for the authority of a structured name. If it does not, it may not speak of a
// name that nobody subscribed to by itself: such names are counted, and logged once.
func (r *reader) mayName(n xdstp.Name) bool {
	if r.link.answersFor(n) {
		return true
	}
	if r.outside++; r.outside == 1 {
		r.firstOutside = n.String()
	}
	return false
}

// answersFor says whether the server answers for the authority of a structured name.
func (l *link) answersFor(n xdstp.Name) bool {
	src := l.cache.star.source
	return src == nil || src.answersFor(l.stream.server, n.Authority)
}

// maySay says whether there may be a resource of the name, and the server answers for it.
func (l *link) maySay(name []byte) bool {
	sub, n, err := l.cache.identify(name)
	return err == nil && (sub != nil || n.Type == "" || l.answersFor(n))
}

// logOutside tells the operator of names that the server may not speak of.
func (m *Machine) logOutside(r *reader) {
	if r.outside > 0 {
		m.fx.Log = append(m.fx.Log, Log{
			Warn: true, Server: r.link.stream.server, TypeURL: r.link.cache.typ.URL, Name: r.firstOutside,
			Text:  "a response holds structured names of authorities that its server does not answer for; they are passed over",
			Attrs: []any{"count", r.outside},
		})
	}
}

// findRemoved finds the subscriptions that the response lists as removed, by their own names or as aliases of the name in
// the list. A resource that the response holds too is invalid, unless the list has it with constraints.
func (r *reader) findRemoved() {
	remove := func(sub *subscription) {
		// ACK-11: the response holds it too.
		if sub.seen == r.serial {
			r.namedTwice(-1, sub)
			return
		}
		sub.see(r.response)
		// DELTA-11: a listed removal.
		r.record(sub, statesRemoved, nil)
	}
	for _, name := range r.Removed {
		// DELTA-10: a name that nobody knows means nothing.
		if sub, _ := r.link.lookup(name); sub != nil {
			remove(sub)
		}
	}
	// ALIAS-2: with a resource its aliases are removed. The server may list these too.
	for _, name := range r.Removed {
		for _, sub := range r.aliasSubs(name, nil) {
			if r.recordedOf(sub) != statesRemoved {
				remove(sub)
			}
		}
	}
	for _, n := range r.RemovedNames {
		for _, sub := range r.allOf(n.Name, n.Constraints) {
			// DYN-3: a variant whose place another one takes is not removed (xRFC TP2, "Unconstrained parameters").
			if sub.seen != r.serial && r.link.chose(sub, sub.name, n.Constraints) {
				remove(sub)
			}
		}
	}
}

// findErrors finds the subscriptions that resource_errors name (xRFC TP3, gRFC A88).
func (m *Machine) findErrors(r *reader) {
	var invalid []*wire.ResourceError
	for i := range r.Errors {
		re := &r.Errors[i]
		switch {
		// ERR-8: an error without a name, or without a code, is invalid.
		case len(re.Name) == 0:
			r.nameless = true
			r.refuse(resourceErrors, i, "", errNameless)
		case re.Code == 0:
			r.refuse(resourceErrors, i, string(re.Name), errNotError)
			invalid = append(invalid, re)
		default:
			m.findError(r, re)
		}
	}
	// SOTW-10: an error without a code still shows that the resource exists.
	for _, re := range invalid {
		for _, sub := range r.allOf(re.Name, nil) {
			if sub.exists() && sub.seen != r.serial && r.link.chose(sub, sub.name, re.Constraints) {
				sub.see(r.response)
			}
		}
	}
}

func (m *Machine) findError(r *reader, re *wire.ResourceError) {
	l := r.link
	sub, canonical := l.lookup(re.Name)
	// ERR-9: lookup found the subscription of a glob, if the error is of the whole glob. An error of one of its members makes
	// the client know the member.
	if sub == nil && l.cache.globOf(canonical) != nil && re.Code != codeNotFound && l.chose(nil, canonical, re.Constraints) {
		sub = l.newMember(re.Name, canonical)
	}
	// ERR-9: only a file states errors of the wildcard; xRFC TP3 has none.
	if l.stream.AlwaysFull && string(re.Name) == star && l.form != wildNone {
		sub = &l.cache.star.subscription
	}
	for _, sub := range slices.Insert(r.aliasSubs(re.Name, re.Constraints), 0, sub) {
		switch said := r.recordedOf(sub); {
		case sub == nil, !l.chose(sub, sub.name, re.Constraints): // nobody subscribed to it
		case said == statesRemoved && re.Code == codeNotFound: // the same, said twice
		// ACK-11: what is removed must not have an error too.
		case said == statesRemoved || said == statesError:
			r.namedTwice(-1, sub)
		// ERR-8: the resource wins over its error.
		case sub.seen == r.serial:
			if !r.loggedError {
				m.log(sub, warning, "a response holds an error for a resource beside it; the error is passed over")
			}
			r.loggedError = true
		default:
			sub.see(r.response)
			r.record(sub, statesError, re)
		}
	}
}

// Bounds of what is kept of the newest response of each type on a stream, for a program that misses a resource in it (U-1).
const (
	maxInsteadNames = 3
	maxInsteadName  = 256 // bytes of each
	maxInsteadText  = 512 // bytes of a refusal
)

// keepInstead keeps how many resources a response holds, and the names of a few: first of those that nobody subscribed to,
// which are nil in found.
func (resp *response) keepInstead(now time.Time, found []*subscription) {
	in := &Instead{At: now, Count: len(resp.Resources)}
	for _, subscribed := range []bool{false, true} {
		for i, sub := range found {
			if len(in.Names) == maxInsteadNames {
				break
			}
			if (sub != nil) != subscribed {
				continue
			}
			if name, _ := resp.link.nameOf(&resp.Resources[i]); len(name) > 0 {
				in.Names = append(in.Names, cut(string(name), maxInsteadName))
			}
		}
	}
	resp.link.instead = in
}

// noteRefusal keeps why a response is NACKed.
func (resp *response) noteRefusal() {
	if in := resp.link.instead; in != nil && resp.nacked() {
		own := *in
		own.Refusal = cut(resp.message(), maxInsteadText)
		resp.link.instead = &own
	}
}
