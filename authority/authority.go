// Package authority finds the management servers that answer for a resource name.
//
// An old-style name belongs to the bootstrap's top-level servers. A structured one,
// "xdstp://authority/type/id", belongs to the authority that it names, and to that alone:
// the empty authority is an entry of the bootstrap like any other (gRFC A47). Only servers
// that the bootstrap knows are ever found, so a control plane cannot lead a client to
// another one.
package authority

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/xdstp"
)

// OldLabel is the label of old-style names in metrics (gRFC A78).
const OldLabel = "#old"

// Table knows the servers of each authority. It is immutable and safe for concurrent use.
type Table struct {
	servers     []bootstrap.ManagementServer
	authorities map[string]bootstrap.Authority
	known       []string
}

// Resolved is a resource name that has been understood, and who answers for it.
type Resolved struct {
	// Authority that the name belongs to; "" with Old, and also of the empty authority.
	Authority string
	// Old is an old-style name, which belongs to no authority.
	Old bool
	// Name is the canonical text: what a server is asked for, and what the resource is
	// kept under. Equal names have equal texts.
	Name string
	// Servers in order of priority; at least one. Shared: read only.
	Servers []bootstrap.ManagementServer
	// FallbackOnReachabilityOnly is the authority's (gRFC A95); false for old-style names.
	FallbackOnReachabilityOnly bool
}

// Label is the authority as metrics show it: its name, or [OldLabel] (gRFC A78).
func (r Resolved) Label() string {
	if r.Old {
		return OldLabel
	}
	return r.Authority
}

// New makes the table of a bootstrap. An authority without servers of its own has the
// top-level ones. The error tells that there is no bootstrap or no top-level server; the
// servers themselves are not looked at (see [bootstrap.Config.Validate]).
func New(c *bootstrap.Config) (*Table, error) {
	if c == nil {
		return nil, errors.New("authority: the bootstrap is nil")
	}
	if len(c.Servers) == 0 {
		return nil, errors.New("authority: the bootstrap has no top-level servers")
	}
	t := &Table{
		servers:     slices.Clone(c.Servers),
		authorities: make(map[string]bootstrap.Authority, len(c.Authorities)),
		known:       slices.Sorted(maps.Keys(c.Authorities)),
	}
	for name, a := range c.Authorities {
		a.Servers = slices.Clone(a.Servers)
		if len(a.Servers) == 0 {
			a.Servers = t.servers
		}
		t.authorities[name] = a
	}
	return t, nil
}

// Resolve understands the name of a single resource of a type, and finds its servers. An
// old-style name may hold any characters; the type segment of a structured one must be the
// message of the type URL. It asks nobody and does not block.
//
// The error is a [*NameError], or an [*UnknownAuthorityError] for a name that is good but
// has no servers.
func (t *Table) Resolve(typeURL, name string) (Resolved, error) {
	if err := checkText(name); err != nil {
		return Resolved{}, &NameError{Name: name, TypeURL: typeURL, Err: err}
	}
	if !xdstp.IsXDSTP(name) {
		return Resolved{Old: true, Name: name, Servers: t.servers}, nil
	}
	n, err := parse(typeURL, name)
	if err != nil {
		return Resolved{}, &NameError{Name: name, TypeURL: typeURL, Err: err}
	}
	a, ok := t.authorities[n.Authority]
	if !ok {
		return Resolved{}, &UnknownAuthorityError{
			Name: name, Authority: n.Authority, Known: slices.Clone(t.known),
		}
	}
	return Resolved{
		Authority:                  n.Authority,
		Name:                       n.String(),
		Servers:                    a.Servers,
		FallbackOnReachabilityOnly: a.FallbackOnReachabilityOnly,
	}, nil
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

// parse reads a structured name of which one resource can be meant.
func parse(typeURL, name string) (xdstp.Name, error) {
	if strings.ContainsRune(name, '#') {
		return xdstp.Name{}, ErrFragment
	}
	n, err := xdstp.Parse(name)
	if err != nil {
		return xdstp.Name{}, err
	}
	if n.Type != xdstp.TypeSegment(typeURL) {
		return xdstp.Name{}, fmt.Errorf("%w: %s", ErrWrongType, n.Type)
	}
	if n.IsGlob() {
		return xdstp.Name{}, ErrGlob
	}
	return n, nil
}
