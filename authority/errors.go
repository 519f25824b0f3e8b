package authority

import (
	"errors"
	"fmt"
	"strings"

	"github.com/xdswatch/xdswatch/bootstrap"
)

// Why a name cannot be resolved; a [*NameError] wraps one of these or an [*xdstp.Error].
var (
	// ErrEmptyName is a name of no characters.
	ErrEmptyName = errors.New("it is empty")
	// ErrNotUTF8 is a name that protobuf cannot carry as a string.
	ErrNotUTF8 = errors.New("it is not valid UTF-8")
	// ErrWrongType is a structured name whose type segment is not the type asked for
	// (xRFC TP1).
	ErrWrongType = errors.New("its type segment is another type")
	// ErrGlob is a structured name that stands for a collection, where one resource is
	// asked for (xRFC TP1).
	ErrGlob = errors.New("it ends in a segment \"*\", which stands for a collection")
	// ErrFragment is a structured name with directives behind a '#', which are not
	// followed and must not be sent to a server (xRFC TP1). A '#' that is meant is
	// written %23.
	ErrFragment = errors.New("it has a fragment (\"#…\")")
)

// NameError says why a text is not the name of a resource of a type.
type NameError struct {
	Name    string
	TypeURL string
	// Err is one of the sentinels of this package, or an [*xdstp.Error].
	Err error
}

// Error implements error.
func (e *NameError) Error() string {
	return fmt.Sprintf("resource name %q of type %s: %v", e.Name, e.TypeURL, e.Err)
}

// Unwrap gives the reason.
func (e *NameError) Unwrap() error { return e.Err }

// UnknownAuthorityError is a well-formed name whose authority the bootstrap does not have.
// It is a [bootstrap.ErrUnknownAuthority].
type UnknownAuthorityError struct {
	Name      string
	Authority string
	Known     []string // all authorities of the bootstrap, sorted
}

// Error implements error.
func (e *UnknownAuthorityError) Error() string {
	known := "has none"
	if len(e.Known) > 0 {
		known = "has " + strings.Join(quoted(e.Known), ", ")
	}
	return fmt.Sprintf("resource name %q: authority %q is not in the bootstrap, which %s",
		e.Name, e.Authority, known)
}

// Unwrap gives [bootstrap.ErrUnknownAuthority].
func (e *UnknownAuthorityError) Unwrap() error { return bootstrap.ErrUnknownAuthority }

func quoted(names []string) []string {
	out := make([]string, len(names))
	for i, name := range names {
		out[i] = fmt.Sprintf("%q", name)
	}
	return out
}
