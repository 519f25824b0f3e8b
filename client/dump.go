package client

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"github.com/xdswatch/xdswatch/internal/listing"
	"github.com/xdswatch/xdswatch/internal/machine"
	"github.com/xdswatch/xdswatch/xdstp"
)

// Status of a resource, by the names of CSDS's ClientResourceStatus: "REQUESTED",
// "DOES_NOT_EXIST", "ACKED", "NACKED", "RECEIVED_ERROR", "TIMEOUT".
type Status string

// State is what the client knows of one resource or, with the name "*", of a wildcard.
type State struct {
	Type      string    `json:"type"` // URL
	Name      string    `json:"name"`
	Authority string    `json:"authority,omitempty"`
	Status    Status    `json:"status"`
	Version   string    `json:"version,omitempty"` // of the value that is held
	Server    string    `json:"server"`
	Updated   time.Time `json:"updated,omitzero"` // when the value was accepted
	Err       error     `json:"-"`                // what is wrong, nil if nothing
	Raw       []byte    `json:"-"`                // the value's bytes; nil if none is held, read only
	Watched   bool      `json:"watched"`          // watched by name; a member of a collection may not be
	// Reason says why there is no resource, if the status is DOES_NOT_EXIST; else 0.
	Reason Reason `json:"-"`
	// Kept says that the client holds the value though the server has deleted the resource, as
	// configured; Err is [ErrDeletionKept].
	Kept bool `json:"kept,omitempty"`
	// Refused is what the server sent and the client refused; nil unless the status is NACKED.
	Refused *Refused `json:"refused,omitempty"`
	// Redirect is the canonical locator in Raw, if the resource is elsewhere; else "".
	Redirect string `json:"redirect,omitempty"`
	// Attributes are what the server sent beside the value; nil if nothing.
	Attributes *Attributes `json:"-"`

	client *Client
	server int
}

// Refused is a version of a resource that the client refused.
type Refused struct {
	Version string    `json:"version"`
	Time    time.Time `json:"time"` // when the client first received it
	// Raw are the refused bytes, of up to 64 KiB, for the 16 newest refused resources of a type
	// on a stream; nil for others, and if the client refused a whole response. Read only.
	Raw []byte `json:"-"`
}

// Value decodes the bytes that are held, as for an event: nil if there are none, if the resource
// is elsewhere, and for the directory of a list collection. The error is the decoder's.
func (s State) Value() (any, error) {
	if s.Raw == nil || s.Redirect != "" || s.client == nil {
		return nil, nil
	}
	kind := s.client.kindOf(s.Type)
	if _, ok := kind.(listing.Kind); ok {
		return nil, nil
	}
	// U-17: the value is decoded when it is asked for.
	return s.client.engine.Decode(kind, s.server, s.Raw)
}

// MarshalJSON writes the state with its error as {"kind", "message"}.
func (s State) MarshalJSON() ([]byte, error) {
	type plain State
	type jsonError struct {
		Kind    ErrorKind `json:"kind"`
		Message string    `json:"message"`
	}
	out := struct {
		plain
		Error *jsonError `json:"error"`
	}{plain: plain(s)}
	if re, ok := s.Err.(*ResourceError); ok {
		out.Error = &jsonError{re.Kind, re.Error()}
	}
	return json.Marshal(out)
}

// Dump lists every resource that the client subscribes to or holds, sorted by type and name. It
// copies no values, but the client's loop looks at every resource once, which takes less than
// 100 ms for a hundred thousand. It is nil after Close.
func (c *Client) Dump() []State {
	rs := c.engine.Dump()
	if c.closed.Load() {
		return nil
	}
	states := make([]State, 0, len(rs))
	for _, r := range rs {
		states = append(states, c.state(r))
	}
	slices.SortStableFunc(states, func(a, b State) int {
		return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.Name, b.Name))
	})
	return states
}

func (c *Client) state(r machine.Resource) State {
	s := State{
		Type: r.TypeURL, Name: r.Name, Authority: r.Authority, Status: Status(r.Status.String()),
		Version: r.Version, Server: c.server(r.Server).URI, Updated: r.Updated, Raw: r.Raw, Watched: r.Watched,
		Attributes: attributesOf(r.Attributes), Reason: Reason(r.Reason), client: c, server: r.Server,
	}
	s.Kept = r.Status == machine.StatusDoesNotExist && r.Raw != nil
	if f := r.Fault; r.Status == machine.StatusNacked && f != nil && f.Kind == machine.FaultRejected {
		// U-17: what was refused.
		s.Refused = &Refused{Version: f.Version, Time: f.At, Raw: r.Refused}
	}
	if r.Locator {
		if l, err := xdstp.DecodeLocator(r.Raw); err == nil {
			s.Redirect = l.String()
		}
	}
	if r.Fault != nil {
		s.Err = c.resourceError(r.Fault, r.Server, r.TypeURL, r.Name)
	}
	return s
}
