package client

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"github.com/xdswatch/xdswatch/internal/machine"
	"github.com/xdswatch/xdswatch/xdstp"
)

// Status of a resource, by the names of CSDS's ClientResourceStatus: "REQUESTED",
// "DOES_NOT_EXIST", "ACKED", "NACKED", "RECEIVED_ERROR", "TIMEOUT".
type Status string

// State is what the client knows of one resource, or with the name "*" of a wildcard.
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
	Watched   bool      `json:"watched"`          // by name; members of a collection need not be
	// Reason says why there is no resource, with the status DOES_NOT_EXIST; 0 of others.
	Reason Reason `json:"-"`
	// Kept says that the value is held though the server has deleted the resource, as
	// configured; Err is [ErrDeletionKept].
	Kept bool `json:"kept,omitempty"`
	// Refused is what the server sent and the client refused; nil unless the status is NACKED.
	Refused *Refused `json:"refused,omitempty"`
	// Redirect is the canonical locator that Raw is of: the resource is elsewhere. "" of all
	// others.
	Redirect string `json:"redirect,omitempty"`
	// Attributes are what stands beside the value; nil if nothing does.
	Attributes *Attributes `json:"-"`

	client *Client
	server int
}

// Refused is a version of a resource that the client refused.
type Refused struct {
	Version string    `json:"version"`
	Time    time.Time `json:"time"` // when it came, or for what came again, first came
	// Raw is what was refused, of up to 64 KiB, and of the 16 newest that were refused of a type
	// on a stream; nil of others, and where a whole response was refused. Read only.
	Raw []byte `json:"-"`
}

// Value decodes what is held, as an event would bring it: nil if nothing is, or if the resource
// is elsewhere, or is the directory of a list collection. The error is the decoder's.
func (s State) Value() (any, error) {
	if s.Raw == nil || s.Redirect != "" || s.client == nil {
		return nil, nil
	}
	kind := s.client.kindOf(s.Type)
	if _, ok := kind.(directoryKind); ok {
		return nil, nil
	}
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

// Dump lists everything that is subscribed to or held, sorted by type and name. Values are
// not copied, but the client's loop looks at every resource once, which takes it less than
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
