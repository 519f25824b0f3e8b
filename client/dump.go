package client

import (
	"encoding/json"
	"iter"
	"slices"
	"time"

	"github.com/xdswatch/xdswatch/internal/listing"
	"github.com/xdswatch/xdswatch/internal/machine"
	"github.com/xdswatch/xdswatch/internal/wire"
	"github.com/xdswatch/xdswatch/xdstp"
)

// Status of a resource, by the names of CSDS's ClientResourceStatus: "REQUESTED",
// "DOES_NOT_EXIST", "ACKED", "NACKED", "RECEIVED_ERROR", "TIMEOUT".
type Status string

// State is what the client knows of one resource or, with the name "*", of a wildcard.
type State struct {
	Type      string `json:"type"` // URL
	Name      string `json:"name"`
	Authority string `json:"authority,omitempty"`
	// Scope is that of the watches ([InScope]), and of those with a source of their own ([FromSource])
	// followed by "@" and the URI of its first server. In a scope a name of a type is unique.
	Scope   string    `json:"scope,omitempty"`
	Status  Status    `json:"status"`
	Version string    `json:"version,omitempty"` // of the value that is held
	Server  string    `json:"server"`
	Updated time.Time `json:"updated,omitzero"` // when the value was accepted
	Err     error     `json:"-"`                // what is wrong, nil if nothing
	Failed  time.Time `json:"failed,omitzero"`  // when what is wrong last happened; zero without Err
	Raw     []byte    `json:"-"`                // the value's bytes; nil if none is held, read only
	Watched bool      `json:"watched"`          // watched by name; a member of a collection may not be
	// Reason says why there is no resource, if the status is DOES_NOT_EXIST; else 0.
	Reason Reason `json:"-"`
	// Kept says that the client holds the value though the server has deleted the resource, as
	// configured; Err is [ErrDeletionKept].
	Kept bool `json:"kept,omitempty"`
	// Refused is what the server sent and the client refused; nil unless the status is NACKED.
	Refused *Refused `json:"refused,omitempty"`
	// Stale says that the value is from Config.Store, and no server has spoken of it since the
	// client was made; its status is that of the subscription, such as REQUESTED.
	Stale bool `json:"stale,omitempty"`
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
	Time    time.Time `json:"time"` // when the client last received it
	// Raw are the refused bytes, of up to 64 KiB, for the 16 newest refused resources of a type
	// on a stream; nil for others, and if the client refused a whole response. Read only.
	Raw []byte `json:"-"`
	// Type is the type URL of Raw: that of the resource, or of a locator, where the server sent a redirect.
	Type string `json:"-"`
}

// Value decodes the bytes that are held, as for an event: nil if there are none, if the resource
// is elsewhere, and for the directory of a list collection. The error is the decoder's.
func (s State) Value() (any, error) {
	if s.Raw == nil || s.Redirect != "" || s.client == nil {
		return nil, nil
	}
	kind := s.client.kinds.of(s.Type)
	if _, ok := kind.(listing.Kind); ok {
		return nil, nil
	}
	if f, ok := kind.(*forms); ok {
		kind = f.plain
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

// Dump lists every resource that the client subscribes to or holds; it is [Client.States] as a list.
// It waits for the client's loop, so neither Config.Logger nor Config.Backoff may call it. It is nil after
// Close.
func (c *Client) Dump() []State { return slices.Collect(c.States()) }

// States yields the state of every resource that the client subscribes to or holds, or of those of some
// types by their URLs, sorted by type, name and scope. It copies no values. Up to 1024 resources are as they were at one moment. Of more
// the client's loop looks at 1024 at a time and serves the program and its servers between, so that
// each state is a moment old: what the client subscribed to after the call may be missing, and what it
// has unsubscribed since is left out. The program may stop ranging at any point, and call any method
// of the client meanwhile. After Close it yields nothing.
func (c *Client) States(typeURLs ...string) iter.Seq[State] {
	return func(yield func(State) bool) {
		scopes := c.sources.Scopes()
		for r := range c.engine.Resources(typeURLs...) {
			if r.Scope >= len(scopes) { // it is new
				scopes = c.sources.Scopes()
			}
			if !yield(c.state(r, scopes)) {
				return
			}
		}
	}
}

func (c *Client) state(r machine.Resource, scopes []string) State {
	s := State{
		Type: r.TypeURL, Name: r.Name, Authority: r.Authority, Scope: scopes[r.Scope], Status: Status(r.Status.String()),
		Version: r.Version, Server: c.uri(r.Server), Updated: r.Updated, Raw: r.Raw, Watched: r.Watched,
		Attributes: attributesOf(r.Attributes), Reason: Reason(r.Reason), Stale: r.Stale, client: c, server: r.Server,
	}
	s.Kept = r.Status == machine.StatusDoesNotExist && r.Raw != nil
	if f := r.Fault; r.Status == machine.StatusNacked && f != nil && f.Kind == machine.FaultRejected {
		// U-17: what was refused.
		s.Refused = &Refused{Version: f.Version, Time: f.At, Raw: r.Refused, Type: r.TypeURL}
		if r.RefusedLocator {
			s.Refused.Type = wire.LocatorURL
		}
	}
	if r.Locator {
		l, _ := xdstp.DecodeLocator(r.Raw) // which was accepted
		s.Redirect = l.String()
	}
	if r.Fault != nil {
		// CSDS-d: when it last failed.
		s.Err, s.Failed = c.resourceError(r.Fault, r.Server, r.TypeURL, r.Name), r.Fault.At
	}
	return s
}
