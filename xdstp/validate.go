package xdstp

import "strings"

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
