package transport

import (
	"encoding/json"
	"fmt"
	"io"
)

// What builds and what is built holds headers and keys, which printing would show.

// Format implements [fmt.Formatter]: the configuration is not printed.
func (*GRPC) Format(s fmt.State, _ rune) { io.WriteString(s, "transport.GRPC") }

// Format implements [fmt.Formatter]: the configuration is not printed.
func (*REST) Format(s fmt.State, _ rune) { io.WriteString(s, "transport.REST") }

// Format implements [fmt.Formatter]: the message is not printed.
func (f Frame) Format(s fmt.State, _ rune) {
	n := 0
	for _, part := range f.Parts {
		n += len(part)
	}
	fmt.Fprintf(s, "message of %d bytes", n)
}

// MarshalJSON writes what Format prints.
func (f Frame) MarshalJSON() ([]byte, error) { return json.Marshal(fmt.Sprint(f)) }

// Format implements [fmt.Formatter].
func (c *conn) Format(s fmt.State, _ rune) { fmt.Fprintf(s, "connection to %q", c.name) }

// Format implements [fmt.Formatter].
func (c *restConn) Format(s fmt.State, _ rune) { fmt.Fprintf(s, "connection to %q", c.name) }

// Format implements [fmt.Formatter].
func (*stream) Format(s fmt.State, _ rune) { io.WriteString(s, "stream over gRPC") }

// Format implements [fmt.Formatter].
func (s *restStream) Format(st fmt.State, _ rune) { fmt.Fprintf(st, "polls of %q", s.conn.name) }
