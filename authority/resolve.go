package authority

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/xdstp"
)

// form is what a structured name stands for.
type form uint8

const (
	single form = iota // one resource
	glob               // "xdstp://a/T/path/*": the resources of a path (xRFC TP1)
	list               // "xdstp://a/TCollection/id": a resource that lists others (xRFC TP1)
)

// Resolved is a parsed resource name with its servers.
type Resolved struct {
	// Authority that the name belongs to; "" with Old, and also of the empty authority.
	Authority string
	// Old says that the name is an old-style one, without an authority.
	Old bool
	// TypeURL is the type URL in requests: that of the resource, or for a list collection the
	// collection's own.
	TypeURL string
	// Name is the canonical text, the key of the resource. Equal names have equal texts.
	Name string
	// Spelling is the name in requests: the name as it was written, its context parameters in
	// order, or for a locator as gRPC writes it (gRFC A47). "" if that is Name.
	Spelling string
	// Servers in order of priority; at least one. Shared: read only.
	Servers []bootstrap.ManagementServer
	// FallbackOnReachabilityOnly is the authority's (gRFC A95).
	FallbackOnReachabilityOnly bool
	// InitialFetchTimeout is how long a watch waits for its first answer, as the source says; 0
	// or less is no bound (initial_fetch_timeout of envoy.config.core.v3.ConfigSource).
	InitialFetchTimeout time.Duration
	// Default says that the servers are those of the bootstrap's default source.
	Default bool
	// Peer is set if the servers are those of the watch's own source, and not the bootstrap's;
	// equal sources have equal texts, which have no other meaning.
	Peer string
}

// Label is the authority as metrics show it: its name, [OldLabel] (gRFC A78) or [DefaultLabel].
func (r Resolved) Label() string {
	switch {
	case r.Old:
		return OldLabel
	case r.Default:
		return DefaultLabel
	}
	return r.Authority
}

// Key returns the key of the name's source.
func (r Resolved) Key() Key {
	if r.Default {
		return Key{Default: true}
	}
	return Key{Old: r.Old, Authority: r.Authority, Peer: r.Peer}
}

// Resolve parses the name of a single resource of a type, and finds its servers. An old-style
// name may hold any characters; the type segment of a structured one must be the message of the
// type URL (xRFC TP1). Its context parameters may be any: see [xdstp.Name.CheckReserved] for those of a
// program's own names. It sends nothing and does not block.
//
// The error is a [*NameError], or an [*UnknownAuthorityError] for a name that is good but
// has no servers.
func (t *Table) Resolve(typeURL, name string) (Resolved, error) {
	if err := checkText(name); err != nil {
		return Resolved{}, &NameError{Name: name, TypeURL: typeURL, Err: err}
	}
	// AUTH-3: a plain name belongs to the top-level servers.
	if !xdstp.IsXDSTP(name) {
		return t.resolveOld(typeURL, name)
	}
	n, what, err := parse(typeURL, name)
	if err == nil && what != single {
		err = notSingle(what)
	}
	if err != nil {
		return Resolved{}, &NameError{Name: name, TypeURL: typeURL, Err: err}
	}
	return t.resolve(typeURL, name, n, what)
}

// ResolveReceived is [Table.Resolve] for a structured name that a server sent, in a locator.
func (t *Table) ResolveReceived(typeURL string, n xdstp.Name) (Resolved, error) {
	if err := CheckReceived(typeURL, n); err != nil {
		return Resolved{}, err
	}
	return t.resolve(typeURL, n.URI(), n, single)
}

// CheckReceived says what is wrong with the name of a single resource of a type that a
// server sent, in a locator, whoever answers for it: nil, or a [*NameError].
func CheckReceived(typeURL string, n xdstp.Name) error {
	text := n.String()
	err := checkText(text)
	if err == nil {
		var what form
		if what, err = formOf(typeURL, n); err == nil && what != single {
			err = notSingle(what)
		}
	}
	if err != nil {
		return &NameError{Name: text, TypeURL: typeURL, Err: err}
	}
	return nil
}

// ResolveCollection parses the name of a collection of resources of a type, and finds its
// servers: "*" (or "" for short), a glob, or a list collection, whose type segment is that of
// the resources followed by "Collection" (xRFC TP1).
//
// For the rest see [Table.Resolve].
func (t *Table) ResolveCollection(typeURL, name string) (Resolved, error) {
	if name == "" || name == "*" {
		return t.resolveOld(typeURL, "*")
	}
	err := checkText(name)
	if err == nil && !xdstp.IsXDSTP(name) {
		err = ErrNotCollection
	}
	if err != nil {
		return Resolved{}, &NameError{Name: name, TypeURL: typeURL, Err: err}
	}
	n, what, err := parse(typeURL, name)
	if err == nil && what == single {
		err = ErrNotCollection
	}
	if err != nil {
		return Resolved{}, &NameError{Name: name, TypeURL: typeURL, Err: err}
	}
	return t.resolve(typeURL, name, n, what)
}

func (t *Table) resolveOld(typeURL, name string) (Resolved, error) {
	from := t.old()
	if !from.known() {
		return Resolved{}, &NameError{Name: name, TypeURL: typeURL, Err: ErrNoServers}
	}
	return Resolved{
		Old: true, TypeURL: typeURL, Name: name, Peer: from.peer,
		Servers: from.servers, FallbackOnReachabilityOnly: from.reachabilityOnly,
		InitialFetchTimeout: from.fetchTimeout,
	}, nil
}

// resolve finds the servers of a structured name; text is how it was written.
func (t *Table) resolve(typeURL, text string, n xdstp.Name, what form) (Resolved, error) {
	// AUTH-1: the authority decides.
	from := t.find(n.Authority)
	if !from.known() {
		// AUTH-3, ERR-12, FED-1: no other server is contacted.
		return Resolved{}, t.unknown(text, n.Authority)
	}
	if what == list {
		// COLL-1: the list is a resource of its own type.
		typeURL = xdstp.ListCollectionURL(typeURL)
	}
	r := Resolved{
		Authority: n.Authority, TypeURL: typeURL,
		Default: from.isDefault, Peer: from.peer,
		Servers: from.servers, FallbackOnReachabilityOnly: from.reachabilityOnly,
		InitialFetchTimeout: from.fetchTimeout,
	}
	r.Call(n, text)
	return r, nil
}

// Call sets Name and Spelling to those of a name that was written as text; its parameters may be
// others.
func (r *Resolved) Call(n xdstp.Name, text string) {
	// C-6, WATCH-5: the key is canonical, the wire has the program's spelling.
	if r.Name, r.Spelling = n.String(), n.SpelledAs(text); r.Spelling == r.Name {
		r.Spelling = ""
	}
}

func checkText(name string) error {
	if name == "" {
		return ErrEmptyName
	}
	if !utf8.ValidString(name) {
		return ErrNotUTF8
	}
	return nil
}

// parse reads a structured name.
func parse(typeURL, name string) (xdstp.Name, form, error) {
	// XDSTP-2: a name has no fragment.
	if strings.ContainsRune(name, '#') {
		return xdstp.Name{}, single, ErrFragment
	}
	n, err := xdstp.Parse(name)
	if err != nil {
		return xdstp.Name{}, single, err
	}
	what, err := formOf(typeURL, n)
	return n, what, err
}

// formOf says what a structured name stands for where a type is asked for.
func formOf(typeURL string, n xdstp.Name) (form, error) {
	segment := xdstp.TypeSegment(typeURL)
	ofLists := xdstp.TypeSegment(xdstp.ListCollectionURL(typeURL))
	switch {
	case n.Type == segment && n.IsGlob():
		return glob, nil
	case n.Type == segment:
		return single, nil
	// XDSTP-3: the type is the watched one.
	case n.Type != ofLists:
		return single, fmt.Errorf("%w: %s", ErrWrongType, n.Type)
	case n.IsGlob():
		return single, errGlobOfLists
	}
	return list, nil
}

func notSingle(what form) error {
	if what == list {
		return ErrList
	}
	return ErrGlob
}
