package xdstp

import "strings"

// ParseURN reads the name of one resource: what [Parse] reads, without a fragment and
// without a glob (xRFC TP1, "URI-based xDS resource names"). The error is an [*Error].
//
// Where Parse takes a '#' for a part of the ID, ParseURN refuses it, because it is far
// more likely the fragment of a locator, which must not be sent to a server. A '#' that is
// meant is written as %23.
func ParseURN(urn string) (Name, error) {
	n, err := Parse(urn)
	if err != nil {
		return Name{}, err
	}
	if i := strings.IndexByte(urn, '#'); i >= 0 {
		return Name{}, fault(urn, PartDirectives, i, "the name of one resource has none")
	}
	if n.IsGlob() {
		return Name{}, globFault(urn)
	}
	return n, nil
}

const isGlob = "is a glob, which names no single resource"

// globFault points at the '*' of a glob, which is the end of its ID.
func globFault(name string) error {
	end := strings.IndexByte(name, '?')
	if end < 0 {
		end = len(name)
	}
	if at := end - len("*"); name[at] == '*' {
		return fault(name, PartID, at, isGlob)
	}
	return fault(name, PartID, end-len("%2A"), isGlob)
}

// URN gives the name that a server is asked for when the locator is followed: its parts
// without the directives, which are for the client alone. The error is an [*Error]: only
// the scheme xdstp has such names, and a glob is none.
func (l Locator) URN() (Name, error) {
	if l.Scheme != SchemeXDSTP {
		return Name{}, fault(l.String(), PartScheme, 0, `is not "xdstp:"`)
	}
	if l.Name.IsGlob() {
		return Name{}, globFault(l.Name.String())
	}
	return l.Name, nil
}

// Validate says what is wrong with a name that was made by hand; a parsed one is valid.
// The error is an [*Error] whose Input is the text of [Name.String].
func (n Name) Validate() error {
	text := n.String()
	if err := n.typeFault(text, SchemeXDSTP); err != nil {
		return err
	}
	_, err := Parse(text)
	return err
}

// typeFault finds what would read as the end of the type segment; text is the whole that
// the scheme and the name begin.
func (n Name) typeFault(text string, scheme Scheme) error {
	i := strings.IndexAny(n.Type, "/?#")
	if i < 0 {
		return nil
	}
	before := escape([]byte(scheme.String()+"://"), n.Authority, authoritySet)
	return fault(text, PartType, len(before)+len("/")+i, "holds '"+n.Type[i:i+1]+"'")
}

// Validate says what is wrong with a locator that was made by hand; a parsed one is valid.
// The error is an [*Error] whose Input is the text of [Locator.String].
func (l Locator) Validate() error { return l.validate(0) }

func (l Locator) validate(depth int) error {
	text := l.String()
	if err := l.validateName(text); err != nil {
		return err
	}
	for i, d := range l.Directives {
		if d.Alt == nil {
			continue
		}
		if depth == maxAltDepth {
			return fault(text, PartDirectives, len(text), tooDeep)
		}
		if err := d.Alt.validate(depth + 1); err != nil {
			return altFault(text, offsetOfDirective(text, i), err)
		}
	}
	_, err := ParseLocator(text)
	return err
}

// validateName finds what the text of a locator does not show.
func (l Locator) validateName(text string) error {
	n := l.Name
	if l.Scheme == SchemeFile {
		if n.Authority != "" || n.Type != "" || len(n.Params) > 0 {
			return fault(text, PartAuthority, len("file://"), "a file has nothing but an ID")
		}
		return nil
	}
	return n.typeFault(text, l.Scheme)
}

// offsetOfDirective is where a directive stands in the canonical text of a locator.
func offsetOfDirective(text string, i int) int {
	at := strings.IndexByte(text, '#') + 1
	for range i {
		at += strings.IndexByte(text[at:], ',') + 1
	}
	return at
}
