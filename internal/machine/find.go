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

// find returns what an entry of a response speaks of; nil if that is not known or not asked
// for. It is done for all before any counts, so that a name that comes twice has no effect.
func (m *Machine) find(resp *response, i int) *entry {
	ts := resp.ts
	if e := ts.repeated(resp, i); e != nil {
		e.see(resp)
		return e
	}
	name, err := ts.nameOf(&resp.Resources[i])
	if name == nil {
		resp.nameless = true
		resp.invalid++
		resp.line(i, "", err)
		return nil
	}
	e, n, err := ts.identify(name)
	if err != nil {
		resp.invalid++
		resp.line(i, string(name), err)
		return nil
	}
	canonical := textOf(n)
	if e == nil && canonical != "" && !resp.mayName(n) {
		return nil // H-11: passed over
	}
	if !ts.chose(e, canonical, resp.constraints(i)) {
		return nil
	}
	if e == nil {
		if e = ts.newMember(name, canonical); e == nil {
			return nil // not asked for: ignored before it is looked at
		}
	}
	if e.seen == resp.serial {
		resp.namedTwice(i, e)
		return e
	}
	if ts.aliases.own[e] != nil {
		ts.aliases.rename(e) // it has the name itself now
	}
	resp.spells(e, name)
	e.see(resp)
	return e
}

// repeated returns the entry that the last response held at the same place, if this one
// has the very payload there that is held, so that its name need not be read. It stands in
// ts.entries: one that went since held nothing any more, or took ts.last with it.
func (ts *typeState) repeated(resp *response, i int) *entry {
	if i >= len(ts.last) {
		return nil
	}
	e, r := ts.last[i], &resp.Resources[i]
	if e == nil || !e.selfNamed || e.seen == resp.serial || len(r.Name) > 0 || string(e.raw) != string(r.Payload) {
		return nil
	}
	if !e.held() || string(r.TypeURL) != ts.typ.URL || ts.faultOf(r) != nil {
		return nil
	}
	r.Payload = e.raw // the next comparison is of the same place
	return e
}

// remember keeps what a state of the world response held, place by place, and gives other
// room in its stead.
func (ts *typeState) remember(found *[]*entry) {
	if !ts.stream.Delta {
		ts.last, *found = *found, ts.last
	}
	clear(*found)
}

// see notes that a response speaks of an entry.
func (e *entry) see(resp *response) {
	resp.hear(e.of)
	e.mark(resp)
}

// mark is see, of an entry that the response speaks of by an alias: its collection hears nothing.
func (e *entry) mark(resp *response) {
	resp.spoken++
	e.seen = resp.serial
	if e.withheld {
		e.withheld, e.timer = false, 0
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

// newMember makes an entry for a name that nobody asked for by itself; nil if it is in no
// collection that the server was asked for.
func (ts *typeState) newMember(name []byte, canonical string) *entry {
	c := ts.home(canonical)
	if c == nil {
		return nil
	}
	if canonical == "" {
		canonical = string(name)
	}
	e := &entry{name: canonical, status: StatusRequested}
	ts.entries.put(e)
	c.adopt(e)
	return e
}

// home is the collection of a name that nobody asked for by itself; nil if it is in none
// that the server was asked for.
func (ts *typeState) home(canonical string) *collection {
	c := ts.globOf(canonical)
	switch {
	case c != nil && (c.self.asked || c.wanted() && ts.form != wildNone): // it may come because of either
		return c
	case ts.form != wildNone && !xdstp.IsGlob(canonical):
		return ts.star
	}
	return nil
}

// lookup finds the entry of a name as a server spells it; nil if there is none. Structured
// names are equal by their parts (gRFC A47); of one that has no entry the canonical text
// is returned.
func (ts *typeState) lookup(name []byte) (e *entry, canonical string) {
	e, n, err := ts.identify(name)
	if err != nil {
		return e, ""
	}
	return e, textOf(n)
}

// textOf is the canonical text of a structured name; "" of none.
func textOf(n xdstp.Name) string {
	if n.Type == "" {
		return ""
	}
	return n.String()
}

// identify is lookup for the name of a resource: the name that it returns is that of a structured
// one without an entry, else it is zero. The error says that there can be no such resource of the
// type.
func (ts *typeState) identify(name []byte) (e *entry, n xdstp.Name, err error) {
	if e = ts.entries.read(name); e != nil || !bytes.HasPrefix(name, xdstpScheme) {
		return e, n, nil
	}
	if n, err = xdstp.ParseReceived(string(name)); err != nil {
		return nil, n, err
	}
	if e = ts.entries.get(n.String()); e == nil && ts.typ.Segment != "" && n.Type != ts.typ.Segment {
		return nil, n, fmt.Errorf("the name is that of a %s", n.Type) // C-3
	}
	return e, n, nil
}

// mayName says whether the server may speak of a structured name that nobody asked for by itself:
// it answers for its authority. What it may not say is counted, and logged once.
func (resp *response) mayName(n xdstp.Name) bool {
	ch := resp.ts.star.chain
	if ch == nil || ch.Answers == nil || ch.Answers(resp.ts.stream.server, n.Authority) {
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
			Warn: true, Server: resp.ts.stream.server, TypeURL: resp.ts.typ.URL, Name: resp.firstForeign,
			Text:  "a response holds structured names of authorities that its server does not answer for; they are passed over",
			Attrs: []any{"count", resp.foreign},
		})
	}
}

func structured(name string) bool { return xdstp.IsXDSTP(name) }

var xdstpScheme = []byte("xdstp:")

// nameOf finds the name of an entry: the wrapper's, else the one in the message. Without a
// name the error says why; with one it says what is wrong with the entry.
func (ts *typeState) nameOf(r *wire.Resource) (name []byte, err error) {
	err = ts.faultOf(r)
	switch {
	case len(r.Name) > 0:
		return r.Name, err
	case err != nil:
		return nil, err
	case !r.HasBody:
		return nil, errNoBody
	case ts.typ.NameField == 0:
		return nil, errNameless
	}
	name, _, err = wire.StringField(r.Payload, ts.typ.NameField)
	switch {
	case ts.typ.Guessed && !plausible(name, err):
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
func (ts *typeState) faultOf(r *wire.Resource) error {
	if r.Fault == nil && r.HasTTL && r.TTL <= 0 {
		return errTTL
	}
	if r.Fault == nil && r.HasBody && string(r.TypeURL) != ts.typ.URL && !ts.redirects(r) {
		return fmt.Errorf("type URL %q does not match the response's %q", r.TypeURL, ts.typ.URL)
	}
	return r.Fault
}

// locatorURL is the type URL of what stands in a resource's place and says where it is.
const locatorURL = "type.googleapis.com/xds.core.v3.ResourceLocator"

// redirects says that an entry holds a locator in place of the resource, as those with
// structured names may (xRFC TP1, "Redirects").
func (ts *typeState) redirects(r *wire.Resource) bool {
	return string(r.TypeURL) == locatorURL && ts.typ.URL != locatorURL && bytes.HasPrefix(r.Name, xdstpScheme)
}

// findRemoved finds what the response lists as removed, by its name or by what the server
// calls it. What the response also holds is invalid.
func (resp *response) findRemoved() {
	if len(resp.Removed) == 0 {
		return
	}
	for _, name := range resp.Removed {
		for _, e := range resp.allOf(name, asRemoved) {
			if e.seen == resp.serial {
				resp.namedTwice(-1, e)
				continue
			}
			e.see(resp)
			resp.removed = append(resp.removed, e)
		}
	}
}

// allOf are the entries of a name as a server spells it: its own and those of its aliases.
func (resp *response) allOf(name []byte, as mentionKind) []*entry {
	es := resp.keys(name, nil, as)
	if e, _ := resp.ts.lookup(name); e != nil {
		es = slices.Insert(es, 0, e)
	}
	return es
}

// failed is an entry that a response has an error for.
type failed struct {
	*entry
	*wire.ResourceError
}

var errNotError = errors.New("the status is OK")

// findErrors finds what resource_errors are of (xRFC TP3, gRFC A88). What the response says
// of one resource counts more than what it says of the collection that it is in.
func (m *Machine) findErrors(resp *response) {
	if len(resp.Errors) > 0 {
		resp.ending = map[*entry]bool{}
		for _, e := range resp.removed {
			resp.ending[e] = false
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
	for _, re := range ofGlobs {
		m.findError(resp, re)
	}
	for _, re := range invalid { // what is known of what they name is not over
		for _, e := range resp.allOf(re.Name, asFine) {
			if e.known() && e.seen != resp.serial && resp.ts.chose(e, e.name, re.Constraints) {
				e.see(resp)
			}
		}
	}
}

func (m *Machine) findError(resp *response, re *wire.ResourceError) {
	ts := resp.ts
	e, canonical := ts.lookup(re.Name)
	if !ts.chose(e, canonical, re.Constraints) {
		return
	}
	if c := ts.globOf(canonical); e == nil && c != nil && c.self.asked && re.Code != codeNotFound {
		e = ts.newMember(re.Name, canonical)
	}
	if ts.stream.FullState && string(re.Name) == star && ts.form != wildNone { // else xRFC TP3 does not know it
		e = ts.star.self
	}
	for _, e := range slices.Insert(resp.keys(re.Name, nil, asFailed), 0, e) {
		failing, ending := resp.ending[e]
		switch {
		case e == nil || e.standsBy(): // nobody asks for it
		case ending && !failing && re.Code == codeNotFound: // removed: the same, said twice
		case ending:
			resp.namedTwice(-1, e)
		case e.seen == resp.serial:
			m.passOver(resp, e)
		default:
			e.see(resp)
			resp.failed = append(resp.failed, failed{e, re})
			resp.ending[e] = true
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
func (m *Machine) passOver(resp *response, e *entry) {
	if !resp.passed {
		resp.passed = true
		m.log(e, true, "a response holds an error for a resource beside it; the error is passed over")
	}
}
