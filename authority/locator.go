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
	fail := func(err error) (Located, error) {
		return Located{}, &NameError{Name: text, TypeURL: typeURL, Err: err}
	}
	if l.Scheme != xdstp.SchemeXDSTP {
		return fail(ErrScheme)
	}
	if err := check(l.Name); err != nil {
		return fail(err)
	}
	form, err := formOf(typeURL, l.Name)
	if err != nil {
		return fail(err)
	}
	out := Located{Locator: l.String()}
	if !utf8.ValidString(out.Locator) {
		return fail(ErrNotUTF8)
	}
	if out.Resolved, err = t.resolve(typeURL, text, l.Name, form); err != nil {
		return Located{}, err
	}
	var alt *xdstp.Locator
	for _, d := range l.Directives {
		switch {
		case d.Alt != nil:
			alt = d.Alt
		case form != List || d.Entry == "":
			return fail(ErrEntry)
		default:
			out.Entry = d.Entry
		}
	}
	if alt == nil {
		return out, nil
	}
	other, err := t.locate(typeURL, alt.String(), *alt, check)
	switch {
	case err != nil:
		return fail(&AltError{err})
	case other.One() != out.One():
		return fail(&AltError{ErrAltForm})
	}
	out.Alt = &other
	return out, nil
}
