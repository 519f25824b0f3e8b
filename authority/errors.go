package authority

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/xdswatch/xdswatch/bootstrap"
)

// Why a name cannot be resolved; a [*NameError] wraps one of these or an [*xdstp.Error].
var (
	// ErrEmptyName is a name of no characters.
	ErrEmptyName = errors.New("it is empty")
	// ErrNotUTF8 is a name that protobuf cannot carry as a string.
	ErrNotUTF8 = errors.New("it is not valid UTF-8")
	// ErrNoServers is an old-style name, if the bootstrap has servers only for names with an
	// authority.
	ErrNoServers = errors.New("the bootstrap has no servers for names without an authority, which are xds_servers of gRPC and ads_config of Envoy")
	// ErrWrongType is a structured name whose type segment is not the type asked for
	// (xRFC TP1).
	ErrWrongType = errors.New("its type segment is another type")
	// ErrGlob is a structured name of a collection, where the program asks for one resource
	// (xRFC TP1).
	ErrGlob = errors.New("it ends in a segment \"*\", which stands for a collection")
	// ErrList is the name of a list collection, where the program asks for one resource (xRFC
	// TP1).
	ErrList = errors.New("it is a list collection")
	// errGlobOfLists is a glob of list collections, which does not exist (xRFC TP1).
	errGlobOfLists = errors.New("it is both a list collection and a glob")
	// ErrNotCollection is the name of one resource, where the program asks for a collection.
	ErrNotCollection = errors.New("it is no collection: neither \"*\", nor a glob (xdstp://authority/type/path/*), nor a list (xdstp://authority/typeCollection/id)")
	// ErrFragment is a structured name with directives behind a '#', where the client does not
	// follow them; they must not be sent to a server (xRFC TP1). Write a '#' in a name as %23.
	ErrFragment = errors.New("it has a fragment (\"#…\")")
)

// NameError says why a text is not the name of a resource or collection of a type.
type NameError struct {
	Name    string
	TypeURL string
	// Err is one of the sentinels of this package, or an [*xdstp.Error].
	Err error
}

// Error implements error.
func (e *NameError) Error() string {
	if e.TypeURL == "" {
		return fmt.Sprintf("resource name %q: %v", e.Name, e.Err)
	}
	return fmt.Sprintf("resource name %q of type %s: %v", e.Name, e.TypeURL, e.Err)
}

// Unwrap returns the reason.
func (e *NameError) Unwrap() error { return e.Err }

// UnknownAuthorityError is a well-formed name whose authority the bootstrap does not have.
// It is a [bootstrap.ErrUnknownAuthority].
type UnknownAuthorityError struct {
	Name      string
	Authority string
	Known     []string // all authorities of the bootstrap, sorted
	// Peer are the authorities of the watch's own source, in its order.
	Peer []string
}

func (t *Table) unknown(name, authority string) error {
	e := &UnknownAuthorityError{Name: name, Authority: authority, Known: slices.Sorted(maps.Keys(t.named))}
	if t.peer != nil {
		e.Peer = slices.Clone(t.peer.authorities)
	}
	return e
}

// Error implements error. Of many authorities it tells the first ones.
func (e *UnknownAuthorityError) Error() string {
	known := "has none"
	if len(e.Known) > 0 {
		known = "has " + listed(e.Known)
	}
	text := fmt.Sprintf("resource name %q: authority %q is not in the bootstrap, which %s",
		e.Name, e.Authority, known)
	if len(e.Peer) > 0 {
		text += "; the source of the watch has " + listed(e.Peer)
	}
	return text
}

// Unwrap returns [bootstrap.ErrUnknownAuthority].
func (e *UnknownAuthorityError) Unwrap() error { return bootstrap.ErrUnknownAuthority }

func listed(names []string) string {
	const most = 20
	var out []string
	for _, name := range names[:min(len(names), most)] {
		out = append(out, fmt.Sprintf("%q", name))
	}
	text := strings.Join(out, ", ")
	if more := len(names) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
