package client

import (
	"encoding/json"
	"fmt"
	"io"
)

// Format implements [fmt.Formatter]: it does not print value and bytes, since they may be a
// Secret's.
func (e Event[T]) Format(s fmt.State, _ rune) {
	fmt.Fprintf(s, "%v %s %q", e.Kind, e.Type, e.Name)
	if e.Version != "" {
		fmt.Fprintf(s, " version %q", e.Version)
	}
	if e.Server != "" {
		fmt.Fprintf(s, " of server %q", e.Server)
	}
	if e.Kind == EventDoesNotExist {
		fmt.Fprintf(s, " (%v)", e.Reason)
	}
	if e.Err != nil {
		fmt.Fprintf(s, ": %v", e.Err)
	}
}

// MarshalJSON writes what Format prints: a program that wants the value as JSON writes Event.Value.
func (e Event[T]) MarshalJSON() ([]byte, error) { return json.Marshal(fmt.Sprint(e)) }

// Format implements [fmt.Formatter]: it does not print the value, since it may be a Secret's.
func (c Change) Format(s fmt.State, _ rune) { fmt.Fprintf(s, "change of %q", c.Name) }

// MarshalJSON writes what Format prints.
func (c Change) MarshalJSON() ([]byte, error) { return json.Marshal(fmt.Sprint(c)) }

// Format implements [fmt.Formatter]: it does not print the bytes, since they may be a Secret's.
func (r Refused) Format(s fmt.State, _ rune) {
	fmt.Fprintf(s, "refused version %q of %d bytes", r.Version, len(r.Raw))
}

// Format implements [fmt.Formatter]: it does not print the resource.
func (r StoredResource) Format(s fmt.State, _ rune) {
	fmt.Fprintf(s, "%q of %d bytes, of server %q", r.Name, len(r.Resource), r.Server)
}

// Format implements [fmt.Formatter]: it prints no header and no key of the bootstrap.
func (c Config) Format(s fmt.State, verb rune) {
	type plain Config
	if verb != 'v' { // fmt calls no methods where it tells of a wrong verb
		fmt.Fprintf(s, "%v", plain(c))
		return
	}
	fmt.Fprintf(s, fmt.FormatString(s, verb), plain(c))
}

// Format implements [fmt.Formatter]: it does not print the bytes, since they may be a Secret's.
func (s State) Format(st fmt.State, _ rune) {
	fmt.Fprintf(st, "%s %s %q of server %q", s.Status, s.Type, s.Name, s.Server)
	if s.Version != "" {
		fmt.Fprintf(st, " version %q", s.Version)
	}
	if s.Err != nil {
		fmt.Fprintf(st, ": %v", s.Err)
	}
}

// Format implements [fmt.Formatter]: it prints no fields, which hold headers and keys.
func (c *Client) Format(s fmt.State, _ rune) { io.WriteString(s, "xds client") }
