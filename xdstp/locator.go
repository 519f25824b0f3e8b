package xdstp

import (
	"errors"
	"slices"
	"strings"
)

// maxAltDepth bounds how deep alt directives may hold locators with alt directives.
const maxAltDepth = 8

// Scheme is the scheme of a locator (xds.core.v3.ResourceLocator.Scheme).
type Scheme uint8

// The schemes.
const (
	SchemeXDSTP Scheme = iota // a resource of a control plane
	SchemeHTTP                // the same shape, fetched over HTTP
	SchemeFile                // a file: only an ID, which is its path without the first '/'
)

// String is the scheme as it stands in a URL, without the colon.
func (s Scheme) String() string {
	switch s {
	case SchemeXDSTP:
		return "xdstp"
	case SchemeHTTP:
		return "http"
	case SchemeFile:
		return "file"
	}
	return "unknown"
}

// Locator is the URL form of a resource name: it says where a resource is, and may have
// directives how to find it. Its fragment is for the client alone and is never sent to a server.
type Locator struct {
	Scheme Scheme
	// Name are the parts before the fragment; only ID is set for [SchemeFile]. Its own text
	// is that of an xdstp name, whatever the scheme.
	Name Name
	// Directives in the order of the fragment, each kind at most once.
	Directives []Directive
}

// Directive is one directive of a locator's fragment: an alternative if Alt is set, an
// entry if it is nil.
type Directive struct {
	// Alt is the locator to use if the resource itself cannot be reached.
	Alt *Locator
	// Entry is the name of an inline entry of a list collection.
	Entry string
}

// ParseLocator reads a locator. The error is an [*Error]. A directive that is unknown or
// given twice is an error, as is a repeated parameter key. Alternatives may be nested
// eight deep.
func ParseLocator(url string) (Locator, error) { return reader{}.locator(url, 0) }

// parseReceivedLocator reads a locator as a server wrote it. It differs from
// [ParseLocator] as [ParseReceived] does from [Parse]: the last value of a repeated
// parameter key holds.
func parseReceivedLocator(url string) (Locator, error) {
	return reader{lastWins: true}.locator(url, 0)
}

// reader reads locators and those inside them by one rule.
type reader struct{ lastWins bool }

func (r reader) locator(s string, depth int) (Locator, error) {
	scheme, start, err := parseScheme(s)
	if err != nil {
		return Locator{}, err
	}
	l := Locator{Scheme: scheme}
	plain := s
	// XDSTP-2: the fragment is for the client alone.
	if i := strings.IndexByte(s, '#'); i >= 0 {
		plain = s[:i]
		if l.Directives, err = r.directives(s, i+1, depth); err != nil {
			return Locator{}, err
		}
	}
	if scheme == SchemeFile {
		l.Name, err = parseFile(plain, start)
	} else {
		l.Name, err = parseParts(plain, start, r.lastWins)
	}
	if err != nil {
		return Locator{}, withInput(err, s)
	}
	return l, nil
}

// withInput makes an error speak of the whole text where a part of it was read.
func withInput(err error, input string) error {
	if e, ok := errors.AsType[*Error](err); ok {
		e.Input = input
	}
	return err
}

// parseScheme gives the scheme and the offset behind its "//".
func parseScheme(s string) (scheme Scheme, start int, err error) {
	// XDSTP-6: locators have three schemes.
	for _, scheme := range []Scheme{SchemeXDSTP, SchemeHTTP, SchemeFile} {
		rest, ok := strings.CutPrefix(s, scheme.String()+":")
		if !ok {
			continue
		}
		at := len(s) - len(rest)
		if !strings.HasPrefix(rest, "//") {
			return 0, 0, fault(s, PartScheme, at, `"//" must follow it`)
		}
		return scheme, at + len("//"), nil
	}
	return 0, 0, fault(s, PartScheme, 0, "is none of xdstp, http and file")
}

// parseFile reads what follows "file://". A '?' is a part of the path.
func parseFile(s string, start int) (Name, error) {
	path := s[start:]
	if i := strings.IndexByte(path, '/'); i != 0 {
		return Name{}, fault(s, PartAuthority, start, "a file has none: its path must begin here")
	}
	if path == "/" {
		return Name{}, fault(s, PartID, len(s), "is empty")
	}
	return Name{ID: unescape(path[1:])}, nil
}

// directives reads the fragment, which begins at offset at.
func (r reader) directives(s string, at, depth int) ([]Directive, error) {
	var directives []Directive
	for text := range strings.SplitSeq(s[at:], ",") {
		d, err := r.directive(s, text, at, depth)
		if err != nil {
			return nil, err
		}
		// ENTRY-1: each directive at most once.
		if hasKind(directives, d) {
			return nil, fault(s, PartDirectives, at, "a directive is repeated")
		}
		directives = append(directives, d)
		at += len(text) + 1
	}
	return directives, nil
}

// hasKind says whether there is a directive of d's kind.
func hasKind(directives []Directive, d Directive) bool {
	return slices.ContainsFunc(directives, func(o Directive) bool {
		return (o.Alt != nil) == (d.Alt != nil)
	})
}

func (r reader) directive(s, text string, at, depth int) (Directive, error) {
	if value, ok := strings.CutPrefix(text, "entry="); ok {
		return Directive{Entry: unescape(value)}, nil
	}
	if value, ok := strings.CutPrefix(text, "alt="); ok {
		return r.alt(s, value, at, depth)
	}
	return Directive{}, fault(s, PartDirectives, at, "neither alt= nor entry=")
}

func (r reader) alt(s, value string, at, depth int) (Directive, error) {
	// H-4: alternatives are nested no deeper.
	if depth == maxAltDepth {
		return Directive{}, fault(s, PartDirectives, at, tooDeep)
	}
	alt, err := r.locator(unescape(value), depth+1)
	if err != nil {
		return Directive{}, altFault(s, at, err)
	}
	return Directive{Alt: &alt}, nil
}

const tooDeep = "alternatives are nested too deep"

func altFault(s string, at int, err error) error {
	return &Error{Input: s, Part: PartDirectives, Offset: at, Reason: "the alternative", Err: err}
}

// String is the canonical text: equal locators have equal texts, and the text of a parsed
// locator parses to an equal one. It serves as a map key. An alternative nested deeper than
// eight, which no parsed locator holds, is left out.
func (l Locator) String() string {
	var a [128]byte
	return string(l.appendTo(a[:0], 0))
}

func (l Locator) appendTo(b []byte, depth int) []byte {
	b = append(append(b, l.Scheme.String()...), "://"...)
	if l.Scheme == SchemeFile {
		b = escape(append(b, '/'), l.Name.ID, idSet)
	} else {
		b = l.Name.appendTo(b)
	}
	mark := byte('#')
	for _, d := range l.Directives {
		if d.Alt != nil && depth == maxAltDepth {
			continue
		}
		b = d.appendTo(append(b, mark), depth)
		mark = ','
	}
	return b
}

func (d Directive) appendTo(b []byte, depth int) []byte {
	if d.Alt == nil {
		return escape(append(b, "entry="...), d.Entry, directiveSet)
	}
	inner := d.Alt.appendTo(nil, depth+1)
	return escape(append(b, "alt="...), string(inner), directiveSet)
}

// Equal says whether both locators have equal parts and the same directives in the same
// order.
func (l Locator) Equal(m Locator) bool { return l.String() == m.String() }

// Alt returns the alternative of the locator, or nil.
func (l Locator) Alt() *Locator {
	for _, d := range l.Directives {
		if d.Alt != nil {
			return d.Alt
		}
	}
	return nil
}

// Entry returns the inline entry that the locator means; ok is false if it means none.
func (l Locator) Entry() (name string, ok bool) {
	for _, d := range l.Directives {
		if d.Alt == nil {
			return d.Entry, true
		}
	}
	return "", false
}
