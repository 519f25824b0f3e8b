package xdstp

import (
	"errors"
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

// Locator is the URL form of a resource name: it says where a resource is found, and may
// direct how. Its fragment is for the client alone and is never sent to a server.
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
	// Alt is where to look if the resource itself cannot be reached.
	Alt *Locator
	// Entry names the inline entry of a list collection that is meant.
	Entry string
}

// ParseLocator reads a locator. The error is an [*Error]. A directive that is unknown or
// given twice is an error, as is a repeated parameter key. Alternatives may be nested
// eight deep.
func ParseLocator(url string) (Locator, error) { return parseLocator(url, 0) }

func parseLocator(s string, depth int) (Locator, error) {
	scheme, start, err := parseScheme(s)
	if err != nil {
		return Locator{}, err
	}
	l := Locator{Scheme: scheme}
	plain := s
	if i := strings.IndexByte(s, '#'); i >= 0 {
		plain = s[:i]
		if l.Directives, err = parseDirectives(s, i+1, depth); err != nil {
			return Locator{}, err
		}
	}
	if scheme == SchemeFile {
		l.Name, err = parseFile(plain, start)
	} else {
		l.Name, err = parseParts(plain, start, false)
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

// parseDirectives reads the fragment, which begins at offset at.
func parseDirectives(s string, at, depth int) ([]Directive, error) {
	var directives []Directive
	var alts, entries int
	for text := range strings.SplitSeq(s[at:], ",") {
		d, err := parseDirective(s, text, at, depth)
		if err != nil {
			return nil, err
		}
		if d.Alt != nil {
			alts++
		} else {
			entries++
		}
		if alts > 1 || entries > 1 {
			return nil, fault(s, PartDirectives, at, "a directive is repeated")
		}
		directives = append(directives, d)
		at += len(text) + 1
	}
	return directives, nil
}

func parseDirective(s, text string, at, depth int) (Directive, error) {
	if value, ok := strings.CutPrefix(text, "entry="); ok {
		return Directive{Entry: unescape(value)}, nil
	}
	if value, ok := strings.CutPrefix(text, "alt="); ok {
		return parseAlt(s, value, at, depth)
	}
	return Directive{}, fault(s, PartDirectives, at, "neither alt= nor entry=")
}

func parseAlt(s, value string, at, depth int) (Directive, error) {
	if depth == maxAltDepth {
		return Directive{}, fault(s, PartDirectives, at, "alternatives are nested too deep")
	}
	alt, err := parseLocator(unescape(value), depth+1)
	if err != nil {
		return Directive{}, &Error{
			Input: s, Part: PartDirectives, Offset: at, Reason: "the alternative", Err: err,
		}
	}
	return Directive{Alt: &alt}, nil
}

// String is the canonical text: equal locators have equal texts, and the text of a parsed
// locator parses to an equal one.
func (l Locator) String() string {
	var a [128]byte
	b := append(append(a[:0], l.Scheme.String()...), "://"...)
	if l.Scheme == SchemeFile {
		b = appendID(b, l.Name.ID)
	} else {
		b = l.Name.appendTo(b)
	}
	mark := byte('#')
	for _, d := range l.Directives {
		b = d.appendTo(append(b, mark))
		mark = ','
	}
	return string(b)
}

func (d Directive) appendTo(b []byte) []byte {
	if d.Alt != nil {
		return escape(append(b, "alt="...), d.Alt.String(), directiveSet)
	}
	return escape(append(b, "entry="...), d.Entry, directiveSet)
}

// Equal says whether both locators have equal parts and the same directives in the same
// order.
func (l Locator) Equal(m Locator) bool { return l.String() == m.String() }
