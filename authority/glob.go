package authority

import "slices"

// ResolveGlob understands the URL of a glob collection of a type, and finds its servers.
func (t *Table) ResolveGlob(typeURL, url string) (Resolved, error) {
	n, err := parseGlob(typeURL, url)
	if err != nil {
		return Resolved{}, &NameError{Name: url, TypeURL: typeURL, Err: err}
	}
	a, ok := t.authorities[n.Authority]
	if !ok {
		return Resolved{}, &UnknownAuthorityError{Name: url, Authority: n.Authority, Known: slices.Clone(t.known)}
	}
	return Resolved{Authority: n.Authority, Name: n.String(), Servers: a.Servers, FallbackOnReachabilityOnly: a.FallbackOnReachabilityOnly}, nil
}
