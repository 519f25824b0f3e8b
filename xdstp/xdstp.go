// Package xdstp reads and writes the structured names of xDS resources,
//
//	xdstp://[authority]/type[/id][?key=value&key=value][#directive,directive]
//
// as they are defined by xRFC TP1 (cncf/xds) and used by gRFC A47.
//
// A [Name] is the form without a fragment: it is the name in requests and the key of a resource.
// A [Locator] is the wider URL form, which may have directives and the schemes http and file.
// Two spellings mean the same resource if their decoded parts are equal, so do not compare texts
// as they were received: compare with [Name.Equal], or use the canonical text of [Name.String]
// or [Canonical] as a map key. Canonical text follows Envoy's encoder.
//
// xRFC TP1 calls a name of one resource a URN, and everything that may have directives or
// end in a glob a URL. [ParseURN] and [Locator.URN] give nothing but URNs.
//
// A [Context] is what a client adds to the parameters of a name. Package nodeparams renders the
// part of it that comes from the node.
//
// Everything here is a pure function of its input and safe for concurrent use.
package xdstp

import (
	"slices"
	"strings"
)

const (
	schemePrefix = "xdstp:"
	namePrefix   = "xdstp://"
)

// Name is a structured resource name. All parts are decoded. A Name that came from [Parse]
// shares memory with the text it was read from.
type Name struct {
	// Authority says which control plane the resource belongs to; "" is a valid one.
	Authority string
	// Type is the full name of the message, without "type.googleapis.com/"; never empty
	// in a name that was parsed. It is neither escaped nor unescaped.
	Type string
	// ID tells resources of one type apart; it may hold slashes and may be empty.
	ID string
	// Params are the context parameters: keys are unique, order means nothing. A parsed
	// name has them in canonical order.
	Params []Param
}

// IsXDSTP says whether a resource name is a structured one, by its exact, lower-case
// scheme "xdstp:". Any other name is an old-style one, which has no parts. It does not say
// that the name is well-formed, and does not allocate.
func IsXDSTP(name string) bool { return strings.HasPrefix(name, schemePrefix) }

// IsFile says whether a text is the URL of a file, "file:///…", which [ParseLocator] reads. It
// does not say that the URL is well-formed.
func IsFile(url string) bool { return strings.HasPrefix(url, "file:///") }

// Parse reads a name as a program writes it. The error is an [*Error]. A repeated
// parameter key is an error, because xRFC TP1 leaves open which value holds.
//
// A name has no fragment: an unescaped '#' is a part of the ID or of a parameter. Use
// [ParseLocator] for a text that may have one.
func Parse(name string) (Name, error) { return parse(name, false) }

// ParseReceived reads a name as a server wrote it. It differs from [Parse] in one thing:
// the last value of a repeated parameter key holds (gRFC A47).
func ParseReceived(name string) (Name, error) { return parse(name, true) }

func parse(s string, lastWins bool) (Name, error) {
	if !IsXDSTP(s) {
		return Name{}, fault(s, PartScheme, 0, `is not "xdstp:"`)
	}
	if !strings.HasPrefix(s, namePrefix) {
		return Name{}, fault(s, PartScheme, len(schemePrefix), `"//" must follow it`)
	}
	return parseParts(s, len(namePrefix), lastWins)
}

// parseParts reads everything after the "//", which ends at offset start.
func parseParts(s string, start int, lastWins bool) (Name, error) {
	// XDSTP-1: authority, type, id, context.
	p, err := split(s, start)
	if err != nil {
		return Name{}, err
	}
	params, err := parseParams(s, p.query, lastWins)
	if err != nil {
		return Name{}, err
	}
	return Name{
		Authority: unescape(p.authority),
		Type:      p.typ,
		ID:        unescape(p.id),
		Params:    params,
	}, nil
}

// parts are the pieces of a name as they were written; query is the offset at which the
// parameters begin.
type parts struct {
	authority, typ, id string
	query              int
}

// split finds the parts and decodes nothing. The authority ends as in any URI, at the
// first '/', '?' or '#' (RFC 3986, section 3.2).
func split(s string, start int) (parts, error) {
	end := start
	for end < len(s) && s[end] != '/' && s[end] != '?' && s[end] != '#' {
		end++
	}
	if end == len(s) || s[end] != '/' {
		return parts{}, fault(s, PartType, end, "is missing: no '/' ends the authority")
	}
	path, query := s[end+1:], len(s)
	if i := strings.IndexByte(path, '?'); i >= 0 {
		path, query = path[:i], end+1+i+1
	}
	typ, id, _ := strings.Cut(path, "/")
	if typ == "" {
		return parts{}, fault(s, PartType, end+1, "is empty")
	}
	if i := strings.IndexByte(typ, '#'); i >= 0 {
		return parts{}, fault(s, PartType, end+1+i, "holds '#'")
	}
	return parts{authority: s[start:end], typ: typ, id: id, query: query}, nil
}

// String is the canonical text: equal names have equal texts, and the text of a parsed
// name parses to an equal one. The parts of a Name made by hand must be valid for that:
// Type neither empty nor with '/', '?' or '#', and no key of Params twice.
func (n Name) String() string {
	var b [128]byte
	// XDSTP-4: one canonical text.
	return string(n.appendTo(append(b[:0], namePrefix...)))
}

// URI is the text of the name as gRPC writes it, for servers that compare names as texts: unlike
// [Name.String] it escapes nothing in the ID that a path may hold, as ':' (RFC 3986, section
// 3.3).
func (n Name) URI() string {
	b := escape([]byte(namePrefix), n.Authority, authoritySet)
	b = append(b, '/')
	b = append(b, n.Type...)
	if n.ID != "" {
		b = escape(append(b, '/'), n.ID, uriSet)
	}
	return string(appendParams(b, n.Params))
}

// SpelledAs is the text of the name with all but its parameters spelled as in text, which is of the
// same authority, type and ID. The parameters are in order; if they are those of text they are
// spelled as there too. For servers that compare names as texts.
func (n Name) SpelledAs(text string) string {
	path, query, found := strings.Cut(text, "?")
	if params, err := parseParams(text, len(text)-len(query), true); !found || err != nil || !slices.Equal(params, inOrder(n.Params)) {
		return string(appendParams([]byte(path), n.Params))
	}
	if query == "" {
		return path
	}
	pairs := strings.Split(query, "&")
	slices.SortStableFunc(pairs, func(a, b string) int { return compareParams(parseParam(a), parseParam(b)) })
	return path + "?" + strings.Join(pairs, "&")
}

func (n Name) appendTo(b []byte) []byte {
	b = escape(b, n.Authority, authoritySet)
	b = append(b, '/')
	b = append(b, n.Type...)
	b = appendID(b, n.ID)
	return appendParams(b, n.Params)
}

// appendID writes no slash for an empty id: "…/type/" and "…/type" are one name.
func appendID(b []byte, id string) []byte {
	if id == "" {
		return b
	}
	return escape(append(b, '/'), id, idSet)
}

// Equal says whether both name the same resource: the same decoded parts, parameters in
// any order.
func (n Name) Equal(m Name) bool {
	// XDSTP-4: equal by the decoded parts.
	return n.Authority == m.Authority && n.Type == m.Type && n.ID == m.ID &&
		slices.Equal(inOrder(n.Params), inOrder(m.Params))
}

// Canonical returns the text that is the key of a resource: that of [Name.String] for a
// structured name, and an old-style name as it is. The error is an [*Error]. A name that is
// canonical already is returned itself.
func Canonical(name string) (string, error) {
	if !IsXDSTP(name) {
		return name, nil
	}
	n, err := Parse(name)
	if err != nil {
		return "", err
	}
	var b [128]byte
	text := n.appendTo(append(b[:0], namePrefix...))
	if string(text) == name {
		return name, nil
	}
	return string(text), nil
}

// AuthorityOf returns the decoded authority of a structured name without reading the rest of it;
// ok is false for an old-style name and for one without an authority and a type. It allocates
// only if the authority holds an escape.
func AuthorityOf(name string) (authority string, ok bool) {
	if !strings.HasPrefix(name, namePrefix) {
		return "", false
	}
	p, err := split(name, len(namePrefix))
	if err != nil {
		return "", false
	}
	return unescape(p.authority), true
}
