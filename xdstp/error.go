package xdstp

import (
	"fmt"
	"strings"
)

// Part is a part of a name or locator, as errors name it.
type Part string

// The parts, in the order in which they stand.
const (
	PartScheme     Part = "scheme"
	PartAuthority  Part = "authority"
	PartType       Part = "type"
	PartID         Part = "id"
	PartParams     Part = "parameters"
	PartDirectives Part = "directives"
)

// PartMessage is a whole protobuf message that is missing or does not parse.
const PartMessage Part = "message"

// Error says why a text or a message is not a name or locator.
type Error struct {
	Input  string // the whole text; "" if Field is set
	Part   Part   // the part at fault
	Offset int    // the byte of Input at which the fault stands; its length at the end
	// Field is the field at fault where a message or a struct was read, by its path, as
	// "ResourceLocator.directives[0].alt.scheme"; "" where a text was read.
	Field  string
	Reason string // reads on after the part or field: "is empty"
	// Err is the fault of a locator inside an alt directive or a field; its own Input and
	// Offset are those of the decoded inner text. For bytes that do not parse it is the
	// decoder's error. Nil for all other faults.
	Err error
}

// Error implements error.
func (e *Error) Error() string {
	var b strings.Builder
	if e.Field != "" {
		fmt.Fprintf(&b, "xdstp: %s: %s", e.Field, e.Reason)
	} else {
		fmt.Fprintf(&b, "xdstp: %q: %s at byte %d: %s", e.Input, e.Part, e.Offset, e.Reason)
	}
	if e.Err != nil {
		fmt.Fprintf(&b, ": %v", e.Err)
	}
	return b.String()
}

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

func fault(input string, part Part, offset int, reason string) error {
	return &Error{Input: input, Part: part, Offset: offset, Reason: reason}
}

func fieldFault(field string, part Part, reason string) error {
	return &Error{Field: field, Part: part, Reason: reason}
}
