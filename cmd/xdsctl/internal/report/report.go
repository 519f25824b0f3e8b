// Package report is what `xdsctl watch` prints: the events as records, and the two ways of
// writing them, JSON for programs and text for people.
package report

import (
	"encoding/json"
	"errors"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource/resourcejson"
	"github.com/xdswatch/xdswatch/xdstp"
)

// Record is one event: one of the types of this package.
type Record interface{ head() Head }

// Printer writes records, each whole before it returns. It is safe for concurrent use. Its error is
// the writer's.
type Printer interface{ Print(Record) error }

// Names of events. They are a stable interface, as are all keys of the JSON.
const (
	EventUpdate       = "update"
	EventDoesNotExist = "does-not-exist"
	EventError        = "error"
	EventAmbientError = "ambient-error"
	EventStreamUp     = "stream-up"
	EventStreamDown   = "stream-down"
	EventACK          = "ack"
	EventNACK         = "nack"
	EventSynced       = "synced"
	EventDump         = "dump"
)

// Head begins each record.
type Head struct {
	Time  Time   `json:"time"`
	Event string `json:"event"`
}

func (h Head) head() Head { return h }

// About says which resource a record is about; the name of a whole collection is "*" or
// its URL.
type About struct {
	Head
	Type string `json:"type"` // URL
	Name string `json:"name"`
	// Authority of a structured name; nil with another.
	Authority *string `json:"authority,omitempty"`
	// Subscription is the text of the one that the record answers.
	Subscription string `json:"subscription,omitempty"`
	// Asked is the name as the subscription spells it; "" if that is Name.
	Asked string `json:"asked,omitempty"`
	// Stale is of an update or a first state that is from the store.
	Stale bool `json:"stale,omitempty"`
	// From is the server that the record is of.
	From string `json:"-"`
}

// Update is a new or changed resource that was accepted.
type Update struct {
	About
	Version  string   `json:"version"`
	Resource Resource `json:"resource"`
	Server   string   `json:"server"`
	Locator  string   `json:"locator,omitempty"` // where it is, if not under its name
}

// Absent is a resource that does not exist.
type Absent struct {
	About
	Reason string `json:"reason"`
	// Instead is of what the server did not answer in time; nil if it sent nothing of the type.
	Instead *Instead `json:"instead,omitempty"`
}

// Instead is the newest response of a type: what came in place of what did not.
type Instead struct {
	Time  Time     `json:"time"`
	Count int      `json:"count"` // of its resources
	Names []string `json:"names"` // of some of them, three at most; never nil
	Error *Error   `json:"error"` // nil if nothing of it was refused
	Text  string   `json:"-"`     // all of this for people
}

// Fault is an error or an ambient error; the latter has none when it has cleared.
type Fault struct {
	About
	Error *Error `json:"error"`
}

// Synced is the end of the first state of a collection.
type Synced struct{ About }

// Stream is a stream that opened or ended.
type Stream struct {
	Head
	Server string `json:"server"`
	Error  *Error `json:"error"`
	Type   string `json:"-"` // URL, of a stream for one type
}

// Answer is an ACK or a NACK.
type Answer struct {
	Head
	Type    string `json:"type"`    // URL
	Version string `json:"version"` // of the response
	Nonce   string `json:"nonce"`
	Error   *Error `json:"error"`
	Server  string `json:"server"`
}

// Dump is the state of everything.
type Dump struct {
	Head
	Subscriptions []State `json:"subscriptions"` // never nil
}

// State is the state of one resource or collection.
type State struct {
	Type      string  `json:"type"`
	Name      string  `json:"name"`
	Authority *string `json:"authority"` // nil if the name is not structured
	Status    string  `json:"status"`    // by the names of CSDS
	Version   string  `json:"version"`
	Server    string  `json:"server"`
	Updated   *Time   `json:"updated"` // nil if nothing is held
	Error     *Error  `json:"error"`
	Redirect  string  `json:"redirect,omitempty"` // where the resource is, if not here
	Stale     bool    `json:"stale,omitempty"`    // what is held is from the store
	Absence   string  `json:"-"`                  // why there is none, for people

	TimedOut bool     `json:"-"` // there is none since the server did not answer in time
	Instead  *Instead `json:"-"` // what it answered in place of that; nil if nothing
}

// Error is what is wrong.
type Error struct {
	Kind string `json:"kind"`
	// Message names the type, the resource, the server and the node too.
	Message string `json:"message"`
	// Cause is the message without what stands beside it in a line of text.
	Cause string `json:"-"`
}

// ErrorOf makes an Error of what the client gave; nil of nil. What is not about a resource
// is a fault of the configuration.
func ErrorOf(err error) *Error {
	if err == nil {
		return nil
	}
	var re *client.ResourceError
	if errors.As(err, &re) {
		return &Error{string(re.Kind), re.Error(), re.Err.Error()}
	}
	return &Error{string(client.ErrorConfig), err.Error(), err.Error()}
}

// AuthorityOf is the authority of a structured name, nil of another.
func AuthorityOf(name string) *string {
	if authority, ok := xdstp.AuthorityOf(name); ok {
		return &authority
	}
	return nil
}

// Time is written in UTC with all nine digits of its nanoseconds (RFC 3339).
type Time time.Time

const timeLayout = "2006-01-02T15:04:05.000000000Z07:00"

// MarshalJSON implements json.Marshaler.
func (t Time) MarshalJSON() ([]byte, error) {
	return []byte(time.Time(t).UTC().Format(`"` + timeLayout + `"`)), nil
}

// Resource is a value with the bytes that it was made of.
type Resource struct {
	TypeURL string
	Message proto.Message // nil where the type is not known
	Raw     []byte

	options resourcejson.Options // as the printer has them
}

// MarshalJSON implements json.Marshaler.
func (r Resource) MarshalJSON() ([]byte, error) {
	if r.Message == nil {
		return resourcejson.Unknown(r.TypeURL, r.Raw), nil
	}
	return r.options.Message(r.Message), nil
}

var _ json.Marshaler = Resource{}
