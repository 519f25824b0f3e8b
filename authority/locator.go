package authority

import (
	"unicode/utf8"

	"github.com/xdswatch/xdswatch/xdstp"
)

// Located is a locator that has been understood: the name that a server is asked for, and
// what the directives say, which no server ever sees (xRFC TP1).
type Located struct {
	Resolved
	// Locator is the canonical text of the whole, with its directives.
	Locator string
	// Entry is the name of the inline entry of the list collection Name that is meant; ""
	// if there is no such directive.
	Entry string
	// Alt is where to look while the servers of Name cannot be reached; nil for nowhere
	// else. It means a collection if, and only if, the locator itself does.
	Alt *Located
}

// One says that the locator means one resource, by a name of its own or as the entry of a
// collection; else it means all of a collection.
func (l *Located) One() bool { return l.Form == Single || l.Entry != "" }

// ResolveLocator understands a text that a program gives for a resource or a collection of
// a type: as [Table.Resolve] and [Table.ResolveCollection] do, but with directives allowed
// behind a structured name. An old-style name has no parts, and so no directives.
//
// The alternatives are resolved too: one that no source answers for is an error of the
// whole.
func (t *Table) ResolveLocator(typeURL, text string) (Located, error) {
	if !xdstp.IsXDSTP(text) {
		r, err := t.Resolve(typeURL, text)
		return Located{Resolved: r, Locator: r.Name}, err
	}
	err := checkText(text)
	var l xdstp.Locator
	if err == nil {
		l, err = xdstp.ParseLocator(text)
	}
	if err != nil {
		return Located{}, &NameError{Name: text, TypeURL: typeURL, Err: err}
	}
	return t.locate(typeURL, text, l, checkParams)
}

// ResolveReceived is [Table.ResolveLocator] for a locator that a server sent: its context
// parameters may be any.
//
// A caller that would rather do without an alternative than fail drops that directive.
func (t *Table) ResolveReceived(typeURL string, l xdstp.Locator) (Located, error) {
	return t.locate(typeURL, l.String(), l, func(xdstp.Name) error { return nil })
}

// locate resolves a locator that was written as a text.
func (t *Table) locate(typeURL, text string, l xdstp.Locator, check func(xdstp.Name) error) (Located, error) {
	out := Located{Locator: l.String()}
	form, err := checkLocator(typeURL, l, check)
	if err == nil && !utf8.ValidString(out.Locator) {
		err = ErrNotUTF8
	}
	if err != nil {
		return Located{}, &NameError{Name: text, TypeURL: typeURL, Err: err}
	}
	if out.Resolved, err = t.resolve(typeURL, text, l.Name, form); err != nil {
		return Located{}, err
	}
	if err := t.direct(&out, typeURL, l, check); err != nil {
		return Located{}, &NameError{Name: text, TypeURL: typeURL, Err: err}
	}
	return out, nil
}

// checkLocator says what a locator stands for, its directives apart.
func checkLocator(typeURL string, l xdstp.Locator, check func(xdstp.Name) error) (Form, error) {
	if l.Scheme != xdstp.SchemeXDSTP {
		return Single, ErrScheme
	}
	if err := check(l.Name); err != nil {
		return Single, err
	}
	return formOf(typeURL, l.Name)
}

// direct follows the directives of a locator, whose own name is resolved.
func (t *Table) direct(out *Located, typeURL string, l xdstp.Locator, check func(xdstp.Name) error) error {
	for _, d := range l.Directives {
		switch {
		case d.Alt != nil:
			alt, err := t.locate(typeURL, d.Alt.String(), *d.Alt, check)
			if err != nil {
				return &AltError{err}
			}
			out.Alt = &alt
		case out.Form != List || d.Entry == "":
			return ErrEntry
		default:
			out.Entry = d.Entry
		}
	}
	if out.Alt != nil && out.Alt.One() != out.One() {
		return &AltError{ErrAltForm}
	}
	return nil
}
