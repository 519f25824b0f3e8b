package machine

import (
	"bytes"
	"errors"
	"fmt"
	"unicode"

	"github.com/xdswatch/xdswatch/internal/wire"
	"github.com/xdswatch/xdswatch/xdstp"
)

// repeated returns the subscription of the entry that the last response had at index i, if the entry at i of this response has
// the held payload. Then its name need not be read.
func (l *link) repeated(resp *response, i int) *subscription {
	if i >= len(l.last) {
		return nil
	}
	sub, r := l.last[i], &resp.Resources[i]
	if sub == nil || !sub.selfNamed || sub.seen == resp.serial || len(r.Name) > 0 || string(sub.raw) != string(r.Payload) {
		return nil
	}
	if !sub.held() || !l.has(sub) || l.faultOf(r) != nil {
		return nil
	}
	r.Payload = sub.raw // so that plan compares bytes at the same address, which is fast
	return sub
}

// remember keeps the subscriptions of the entries of a response in state of the world, for repeated. It returns another list
// whose room can be used.
func (l *link) remember(found []*subscription) (room []*subscription) {
	if room = found; !l.stream.Delta {
		l.last, room = found, l.last
	}
	clear(room)
	return room
}

// newMember makes a subscription for a name that nobody watches, as a member of a collection; nil if no collection that is
// requested from the server covers the name.
func (l *link) newMember(name []byte, canonical string) *subscription {
	c := l.home(canonical)
	if c == nil {
		return nil
	}
	if canonical == "" {
		canonical = string(name)
	}
	// GLOB-2: members come with responses.
	return c.newMember(canonical)
}

// home is the collection, among those that are requested from the server, in which a name that nobody watches is a member;
// nil if there is none. A name is a member of the wildcard already before that request has left, since some servers send a
// resource only once.
func (l *link) home(canonical string) *collection {
	c, wild := l.cache.globOf(canonical), l.form != wildNone || l.wantsStar()
	switch {
	case c != nil && !c.ownedBy(l.stream):
		return nil
	case c != nil && (c.subscribed || wild): // the server may send it for the glob or for the wildcard
		return c
	case wild && l.cache.star.ownedBy(l.stream) && !xdstp.IsGlob(canonical):
		return l.cache.star
	}
	return nil
}

// lookup finds the subscription of a name as a server spells it; nil if there is none, or if another server's word on it
// counts. Structured names are equal by their parts (gRFC A47). canonical is the text of a structured name without
// subscription.
func (l *link) lookup(name []byte) (sub *subscription, canonical string) {
	sub, n, err := l.cache.identify(name)
	// SOTW-9: another server's word counts, so this one's does not.
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

// identify finds the subscription of a received name. For a structured name without one it returns the parsed
// name, or an error if no resource of the type can have it.
func (c *cache) identify(name []byte) (sub *subscription, n xdstp.Name, err error) {
	if sub = c.subs.read(name); sub != nil || !bytes.HasPrefix(name, xdstpScheme) {
		return sub, n, nil
	}
	if n, err = xdstp.ParseReceived(string(name)); err != nil {
		return nil, n, err // C-3
	}
	// XDSTP-4: structured names are equal by their parts.
	if sub = c.subs.get(n.String()); c.typ.Segment != "" && n.Type != c.typ.Segment {
		return nil, n, fmt.Errorf("the name is that of a %s", n.Type) // C-3, XDSTP-3
	}
	return sub, n, nil
}

// nameOf finds the name of an entry: the wrapper's, else the one in the message. Without a
// name the error says why; with one it says what is wrong with the entry.
func (l *link) nameOf(r *wire.Resource) (name []byte, err error) {
	err = l.faultOf(r)
	switch {
	// TYPE-5: the wrapper's name wins.
	case len(r.Name) > 0:
		return r.Name, err
	case err != nil:
		return nil, err
	case !r.HasBody:
		return nil, errNoBody
	case l.cache.typ.NameField == 0:
		return nil, errNameless
	}
	name, _, err = wire.StringField(r.Payload, l.cache.typ.NameField)
	switch {
	// P-12: in a type that the client does not know, the field where names usually stand may hold something else.
	case l.cache.typ.Guessed && !plausible(name, err):
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

// plausible says whether the content of the field where names usually stand may be a name.
func plausible(name []byte, err error) bool {
	return err == nil && len(name) <= maxGuessed && !bytes.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) })
}

// faultOf says what is wrong with an entry by itself: its form, its type or its time to live.
func (l *link) faultOf(r *wire.Resource) error {
	if r.Fault == nil && r.HasTTL && r.TTL <= 0 {
		return errTTL
	}
	// TYPE-3: each entry is of the type of the response.
	if r.Fault == nil && r.HasBody && string(r.TypeURL) != l.cache.typ.URL && !l.redirects(r) {
		return fmt.Errorf("type URL %q does not match the response's %q", r.TypeURL, l.cache.typ.URL)
	}
	return r.Fault
}

// redirects says that an entry holds a locator in place of the resource, as those with
// structured names may (xRFC TP1, "Redirects").
func (l *link) redirects(r *wire.Resource) bool {
	// REDIR-1: by the type of what the entry holds.
	return string(r.TypeURL) == wire.LocatorURL && l.cache.typ.URL != wire.LocatorURL && bytes.HasPrefix(r.Name, xdstpScheme)
}

var errTTL = errors.New("the time to live is not positive")

// givenAs is the name under which the server gives an entry of the response to a subscription.
func (resp *response) givenAs(i int, sub *subscription, shared bool) given {
	l := resp.link
	alias := sub.target() != nil
	if !alias && !(l.stream.Delta && structured(sub.name)) {
		return given{}
	}
	name, _ := l.nameOf(&resp.Resources[i])
	if string(name) == sub.name {
		return given{}
	}
	return given{string(name), alias, alias && shared}
}
