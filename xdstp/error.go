package xdstp

import "fmt"

// Part is a part of a name or locator, as errors speak of it.
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

// Error says why a text is not a name or locator.
type Error struct {
	Input  string // the whole text
	Part   Part   // the part at fault
	Offset int    // the byte of Input at which the fault stands; its length at the end
	Reason string // reads on after the part: "is empty"
	// Err is the fault of a locator inside an alt directive; its own Input and Offset are
	// those of the decoded inner text. Nil for all other faults.
	Err error
}

// Error implements error.
func (e *Error) Error() string {
	text := fmt.Sprintf("xdstp: %q: %s at byte %d: %s", e.Input, e.Part, e.Offset, e.Reason)
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap gives the fault inside an alt directive, or nil.
func (e *Error) Unwrap() error { return e.Err }

func fault(input string, part Part, offset int, reason string) error {
	return &Error{Input: input, Part: part, Offset: offset, Reason: reason}
}
