package machine

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"unicode"

	"github.com/xdswatch/xdswatch/internal/wire"
	"github.com/xdswatch/xdswatch/xdstp"
)

// find returns what an entry of a response speaks of; nil if that is not known or not subscribed
// for. It is done for all before any counts, so that a name that comes twice has no effect.
func (m *Machine) find(resp *response, i int) *subscription {
	l := resp.link
	if sub := l.repeated(resp, i); sub != nil {
		sub.see(resp)
		return sub
	}
	name, err := l.nameOf(&resp.Resources[i])
	// TYPE-6: an entry without a name is refused.
	if name == nil {
		resp.nameless = true
		resp.invalid++
		resp.line(i, "", err)
		return nil
	}
	sub, n, err := l.identify(name)
	if err != nil {
		resp.invalid++
		resp.line(i, string(name), err)
		return nil
	}
	if sub != nil && !l.owns(sub) { // SOTW-9: another server's word counts
		if n, err = xdstp.ParseReceived(sub.name); err == nil {
			resp.mayName(n)
		}
		return nil
	}
	canonical := textOf(n)
	if sub == nil && canonical != "" && !resp.mayName(n) {
		return nil // H-11: passed over
	}
	// DYN-2: the variant is for others.
	if !l.chose(sub, canonical, resp.constraints(i)) {
		return nil
	}
	if sub == nil {
		// SOTW-11, DELTA-13: what was not subscribed to is passed over.
		if sub = l.newMember(name, canonical); sub == nil {
			return nil // not subscribed to: ignored before it is looked at
		}
	}
	if sub.seen == resp.serial {
		// ACK-11: the response is refused.
		resp.namedTwice(i, sub)
		return sub
	}
	if l.aliases.own[sub] != nil {
		l.aliases.rename(sub) // it has the name itself now
	}
	resp.spells(sub, name)
	sub.see(resp)
	return sub
}

// repeated returns the subscription that the last response held at the same place, if this one
// has the very payload there that is held, so that its name need not be read. It stands in
// link.subs: one that went since held nothing any more, or took link.last with it.
func (l *link) repeated(resp *response, i int) *subscription {
	if i >= len(l.last) {
		return nil
	}
	sub, r := l.last[i], &resp.Resources[i]
	if sub == nil || !sub.selfNamed || sub.seen == resp.serial || len(r.Name) > 0 || string(sub.raw) != string(r.Payload) {
		return nil
	}
	if !sub.held() || string(r.TypeURL) != l.typ.URL || l.faultOf(r) != nil {
		return nil
	}
	r.Payload = sub.raw // the next comparison is of the same place
	return sub
}

// remember keeps what a state of the world response held, place by place, and gives other
// room in its stead.
func (l *link) remember(found *[]*subscription) {
	if !l.stream.Delta {
		l.last, *found = *found, l.last
	}
	clear(*found)
}

// see notes that a response speaks of a subscription.
func (sub *subscription) see(resp *response) {
	resp.hear(sub.of)
	sub.mark(resp)
}

// mark is see, of a subscription that the response speaks of by an alias: its collection hears nothing.
func (sub *subscription) mark(resp *response) {
	resp.spoken++
	sub.seen = resp.serial
	if sub.withheld {
		sub.withheld, sub.timer = false, 0
		resp.resumes = true
	}
}

// hear notes that the response speaks of a collection, or of something in it.
func (resp *response) hear(c *collection) {
	if c.seen == resp.serial {
		return
	}
	c.seen = resp.serial
	resp.heard = append(resp.heard, c)
	if c.self != nil && c.self.fault != nil {
		resp.healed = append(resp.healed, healed{c, c.self.fault})
	}
}

// newMember makes a subscription for a name that nobody subscribed to by itself; nil if it is in no
// collection that was requested from the server.
func (l *link) newMember(name []byte, canonical string) *subscription {
	c := l.home(canonical)
	if c == nil {
		return nil
	}
	if canonical == "" {
		canonical = string(name)
	}
	// GLOB-2: members come with responses.
	sub := &subscription{name: canonical, status: StatusRequested}
	l.subs.put(sub)
	c.adopt(sub)
	return sub
}

// home is the collection of a name that nobody subscribed to by itself; nil if it is in none
// that was requested from the server.
func (l *link) home(canonical string) *collection {
	c := l.globOf(canonical)
	switch {
	case c != nil && !c.ownedBy(l.stream):
		return nil
	case c != nil && (c.self.subscribed || c.wanted() && l.form != wildNone): // it may come because of either
		return c
	case l.form != wildNone && l.star.ownedBy(l.stream) && !xdstp.IsGlob(canonical):
		return l.star
	}
	return nil
}

// lookup finds the subscription of a name as a server spells it; nil if there is none. Structured
// names are equal by their parts (gRFC A47); of one that has no subscription the canonical text
// is returned.
func (l *link) lookup(name []byte) (sub *subscription, canonical string) {
	sub, n, err := l.identify(name)
	if err != nil || sub != nil && !l.owns(sub) {
		return nil, ""
	}
	return sub, textOf(n)
}

// textOf is the canonical text of a structured name; "" of none.
func textOf(n xdstp.Name) string {
	if n.Type == "" {
		return ""
	}
	return n.String()
}

// identify is lookup for the name of a resource: the name that it returns is that of a structured
// one without a subscription, else it is zero. The error says that there can be no such resource of the
// type.
func (c *cache) identify(name []byte) (sub *subscription, n xdstp.Name, err error) {
	if sub = c.subs.read(name); sub != nil || !bytes.HasPrefix(name, xdstpScheme) {
		return sub, n, nil
	}
	if n, err = xdstp.ParseReceived(string(name)); err != nil {
		return nil, n, err
	}
	if sub = c.subs.get(n.String()); sub == nil && c.typ.Segment != "" && n.Type != c.typ.Segment {
		return nil, n, fmt.Errorf("the name is that of a %s", n.Type) // C-3
	}
	return sub, n, nil
}

// mayName says whether the server may speak of a structured name that nobody subscribed to by itself:
// it answers for its authority. What it may not say is counted, and logged once.
func (resp *response) mayName(n xdstp.Name) bool {
	src := resp.link.star.source
	if src == nil || src.Answers == nil || src.Answers(resp.link.stream.server, n.Authority) {
		return true
	}
	if resp.foreign++; resp.foreign == 1 {
		resp.firstForeign = n.String()
	}
	return false
}

// logForeign tells the operator of names that the server may not speak of.
func (m *Machine) logForeign(resp *response) {
	if resp.foreign > 0 {
		m.fx.Log = append(m.fx.Log, Log{
			Warn: true, Server: resp.link.stream.server, TypeURL: resp.link.typ.URL, Name: resp.firstForeign,
			Text:  "a response holds structured names of authorities that its server does not answer for; they are passed over",
			Attrs: []any{"count", resp.foreign},
		})
	}
}

func structured(name string) bool { return xdstp.IsXDSTP(name) }

var xdstpScheme = []byte("xdstp:")

// nameOf finds the name of an entry: the wrapper's, else the one in the message. Without a
// name the error says why; with one it says what is wrong with the entry.
func (l *link) nameOf(r *wire.Resource) (name []byte, err error) {
	err = l.faultOf(r)
	switch {
	case len(r.Name) > 0:
		return r.Name, err
	case err != nil:
		return nil, err
	case !r.HasBody:
		return nil, errNoBody
	case l.typ.NameField == 0:
		return nil, errNameless
	}
	name, _, err = wire.StringField(r.Payload, l.typ.NameField)
	switch {
	case l.typ.Guessed && !plausible(name, err):
		return nil, errNameless
	case err != nil:
		return nil, fmt.Errorf("the resource does not parse: %w", err)
	case len(name) == 0:
		return nil, errNameless
	}
	return name, nil
}

// maxGuessed is how long a name may be that stands where names usually do, in bytes.
const maxGuessed = 512

// plausible says whether what stands where names usually do is one.
func plausible(name []byte, err error) bool {
	return err == nil && len(name) <= maxGuessed && !bytes.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) })
}

// faultOf says what is wrong with an entry before its payload is looked at.
func (l *link) faultOf(r *wire.Resource) error {
	if r.Fault == nil && r.HasTTL && r.TTL <= 0 {
		return errTTL
	}
	// TYPE-3: each entry is of the type of the response.
	if r.Fault == nil && r.HasBody && string(r.TypeURL) != l.typ.URL && !l.redirects(r) {
		return fmt.Errorf("type URL %q does not match the response's %q", r.TypeURL, l.typ.URL)
	}
	return r.Fault
}

// locatorURL is the type URL of what stands in a resource's place and says where it is.
const locatorURL = "type.googleapis.com/xds.core.v3.ResourceLocator"

// redirects says that an entry holds a locator in place of the resource, as those with
// structured names may (xRFC TP1, "Redirects").
func (l *link) redirects(r *wire.Resource) bool {
	return string(r.TypeURL) == locatorURL && l.typ.URL != locatorURL && bytes.HasPrefix(r.Name, xdstpScheme)
}

// findRemoved finds what the response lists as removed, by its name or by what the server
// calls it. What the response also holds is invalid.
func (resp *response) findRemoved() {
	if len(resp.Removed) == 0 {
		return
	}
	gone := map[*subscription]bool{} // as this list says
	end := func(sub *subscription) {
		if sub.seen == resp.serial {
			resp.namedTwice(-1, sub)
			return
		}
		sub.see(resp)
		gone[sub] = true
		resp.removed = append(resp.removed, sub)
	}
	for _, name := range resp.Removed {
		if sub, _ := resp.link.lookup(name); sub != nil {
			end(sub)
		}
	}
	// ALIAS-2: what is removed by its own name goes under its aliases too, which the server may list as well.
	for _, name := range resp.Removed {
		for _, sub := range resp.keys(name, nil, asRemoved) {
			if !gone[sub] {
				end(sub)
			}
		}
	}
}

// allOf are the subscriptions of a name as a server spells it: its own and those of its aliases.
func (resp *response) allOf(name []byte, as mentionKind) []*subscription {
	subs := resp.keys(name, nil, as)
	if sub, _ := resp.link.lookup(name); sub != nil {
		subs = slices.Insert(subs, 0, sub)
	}
	return subs
}

// failed is a subscription that a response has an error for.
type failed struct {
	*subscription
	*wire.ResourceError
}

var errNotError = errors.New("the status is OK")

// findErrors finds what resource_errors are of (xRFC TP3, gRFC A88). What the response says
// of one resource counts more than what it says of the collection that it is in.
func (m *Machine) findErrors(resp *response) {
	if len(resp.Errors) > 0 {
		resp.ending = map[*subscription]bool{}
		// ACK-11: what is removed must not have an error too.
		for _, sub := range resp.removed {
			resp.ending[sub] = false
		}
	}
	var ofGlobs, invalid []*wire.ResourceError
	for i := range resp.Errors {
		re := &resp.Errors[i]
		switch {
		case len(re.Name) == 0:
			resp.nameless = true
			resp.errorLine(i, nil, errNameless)
		case re.Code == 0:
			resp.errorLine(i, re.Name, errNotError)
			invalid = append(invalid, re)
		case xdstp.IsGlob(string(re.Name)):
			ofGlobs = append(ofGlobs, re)
		default:
			m.findError(resp, re)
		}
	}
	// ERR-9: an error of a glob is of the whole.
	for _, re := range ofGlobs {
		m.findError(resp, re)
	}
	for _, re := range invalid { // what is known of what they name is not over
		for _, sub := range resp.allOf(re.Name, asFine) {
			if sub.known() && sub.seen != resp.serial && resp.link.chose(sub, sub.name, re.Constraints) {
				sub.see(resp)
			}
		}
	}
}

func (m *Machine) findError(resp *response, re *wire.ResourceError) {
	l := resp.link
	sub, canonical := l.lookup(re.Name)
	if !l.chose(sub, canonical, re.Constraints) {
		return
	}
	if c := l.globOf(canonical); sub == nil && c != nil && c.self.subscribed && re.Code != codeNotFound {
		sub = l.newMember(re.Name, canonical)
	}
	if l.stream.FullState && string(re.Name) == star && l.form != wildNone { // else xRFC TP3 does not know it
		sub = l.star.self
	}
	for _, sub := range slices.Insert(resp.keys(re.Name, nil, asFailed), 0, sub) {
		failing, ending := resp.ending[sub]
		switch {
		case sub == nil: // nobody asks for it
		case ending && !failing && re.Code == codeNotFound: // removed: the same, said twice
		case ending:
			resp.namedTwice(-1, sub)
		// ERR-8: the resource wins over its error.
		case sub.seen == resp.serial:
			m.passOver(resp, sub)
		default:
			sub.see(resp)
			resp.failed = append(resp.failed, failed{sub, re})
			resp.ending[sub] = true
		}
	}
}

// errorLine is line for a resource error.
func (resp *response) errorLine(i int, name []byte, err error) {
	switch {
	case resp.told > maxMessage: // there may be millions
	case name == nil:
		resp.line(-1, fmt.Sprintf("resource error index %d", i), err)
	default:
		resp.line(-1, fmt.Sprintf("resource error index %d: %s", i, name), err)
	}
}

// passOver logs that a response holds an error for what it holds too, once.
func (m *Machine) passOver(resp *response, sub *subscription) {
	if !resp.passed {
		resp.passed = true
		m.log(sub, true, "a response holds an error for a resource beside it; the error is passed over")
	}
}
