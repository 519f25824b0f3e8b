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

const globReason = "is a glob, which names no single resource"

// globFault points at the '*' of a glob, which is the end of its ID.
func globFault(name string) error {
	end := strings.IndexByte(name, '?')
	if end < 0 {
		end = len(name)
	}
	if at := end - len("*"); name[at] == '*' {
		return fault(name, PartID, at, globReason)
	}
	return fault(name, PartID, end-len("%2A"), globReason)
}

// URN returns the name that the client requests when it follows the locator: its parts without
// the directives, which are for the client alone. The error is an [*Error]: only the scheme
// xdstp has such names, and a glob is none.
func (l Locator) URN() (Name, error) {
	if l.Scheme != SchemeXDSTP {
		return Name{}, fault(l.String(), PartScheme, 0, `is not "xdstp:"`)
	}
	if l.Name.IsGlob() {
		return Name{}, globFault(l.Name.String())
	}
	return l.Name, nil
}
