package machine

import (
	"time"

	"github.com/xdswatch/xdswatch/internal/wire"
)

// Effects is what is to be done after a step, field by field; within one the order counts.
// Notices come before the sends of the same step, so that who watches the stream
// sees a resource before its ACK.
type Effects struct {
	// Notify is told to the program, in this order.
	Notify []Notice
	// Release are streams whose response is large and new: once its payloads are copied
	// little refers to its frame, which had better be garbage than be used again.
	Release []Ref
	// Read are streams of which the next response may be read: one for each.
	Read []Ref
	// Decode is work for any goroutine; each task is answered by one Decoded.
	Decode []*Task
	// Guard is what is to be judged by any goroutine; each proposal is answered by one
	// Guarded.
	Guard []*Proposal
	// Close lets go of streams that have ended, and ends others; nothing more is expected of them.
	Close []Ref
	// Open asks for streams; each is answered by Up or Down.
	Open []Open
	// Wait asks for a backoff after streams that are over, though their servers may not know it; each is answered by Retry,
	// unless the stream is closed.
	Wait []Wait
	// Send is at most one message a stream; the next comes after its Written.
	Send []Send
	// Log is for the operator.
	Log []Log
	// Keep is what the store is to keep or forget, in order. Nil without a store.
	Keep []Keep
	// Load asks the store; each is answered by one Loaded or several, of which one is the last. Nil without a store.
	Load []*Load
}

// Open asks for a stream.
type Open struct {
	Ref
	Server int
	Type   *Type // nil for an aggregated stream
}

// Wait asks for a backoff.
type Wait struct {
	Ref
	Server int
	Fault  *Fault // why the stream is down; nil if the attempt was given up
	// Served says that the stream was of use: the waits begin anew if it lived for longer than the last of them.
	Served bool
	// Short asks for a short random pause in place of a wait that grows.
	Short bool
	// Failed says that the end of the stream is trouble with its server.
	Failed bool
}

// Send asks for a message to be written.
type Send struct {
	Ref
	Message [][]byte // its parts, one after another; never written to again
}

// Task is payloads of one type to decode.
type Task struct {
	Server int
	Type   *Type
	Items  []Item

	owner   taskOwner
	results []Result // nil until it is decoded
	entries []*Kept  // of the items, of a load
}

// taskOwner is what a task is part of: a response, or what the store had.
type taskOwner interface {
	// decoded takes what was decoded, as far as all tasks before are decoded too.
	decoded(m *Machine, now time.Time)
}

// nextDecoded takes the first of some tasks; nil if it is not decoded yet.
func nextDecoded(tasks *[]*Task) (t *Task) {
	if len(*tasks) > 0 && (*tasks)[0].results != nil {
		t, (*tasks)[0] = (*tasks)[0], nil
		*tasks = (*tasks)[1:]
	}
	return t
}

// Item is one payload.
type Item struct {
	Raw []byte // who decodes it puts a copy in its place that may be kept
	// Old is the accepted payload, if that is a locator too or, as this one, none; nil if there is none.
	Old []byte
	// Attributes stand beside Raw, and OldAttributes beside Old; nil if none do.
	Attributes, OldAttributes *wire.Attributes
	// Locator says that Raw is an xds.core.v3.ResourceLocator and not of the task's type.
	Locator bool

	gen   uint16
	sub   *subscription
	also  []*subscription // of the same resource, by its other names
	index int             // in the response
}

// NoticeKind says what a notice tells.
type NoticeKind uint8

// Those up to NoticeSynced are for watches; the others say what happened on a stream.
const (
	NoticeUpdated      NoticeKind = iota + 1
	NoticeDoesNotExist            // Reason says why
	NoticeFailed                  // no usable resource; Fault says why
	NoticeAmbient                 // the held resource stays good; nil Fault: all is well again
	NoticeSynced                  // the first state of a collection is complete
	NoticeEnd                     // of a response, which is done with: once all that was told since it came is handled, say Delivered
	NoticeStreamUp
	NoticeStreamDown
	NoticeRequest
	NoticeResponse
	NoticeAck
	NoticeNack
	NoticeConnected // the server of the stream is (gRFC A78)
	NoticeDisconnected
)

// News is what is told of a resource, a collection or a stream.
type News struct {
	Kind    NoticeKind
	Reason  Reason // of NoticeDoesNotExist
	Stale   bool   // what is held is from the store, and no server has spoken of it since
	Server  int
	Name    string
	Version string
	Fault   *Fault
	// Instead is of what the server did not answer in time: what it sent last of the type; nil
	// if nothing.
	Instead *Instead
	Value   any
	Raw     []byte
	// Attributes of NoticeUpdated stand beside Raw; nil if none do. Not to be changed.
	Attributes *wire.Attributes
}

// Notice is one thing to tell. Lists of watches are shared and must not be changed.
type Notice struct {
	News
	// Trouble says that it tells of the server's trouble, or of its end: once all of a
	// step's are handled, say Heard. Until then newer trouble is not told.
	Trouble bool
	Ignored bool // of NoticeResponse and NoticeEnd: the response is of a type that was not requested
	// Replaces is of NoticeUpdated with a locator: All were told of a value before, which is not taken back.
	Replaces bool
	// Held is of NoticeUpdated to a watch that came late: the machine keeps bytes only, so Value is to be decoded from Raw.
	Held    bool
	Locator bool // of the same: Raw is an xds.core.v3.ResourceLocator
	// Whole is of the same, if the value has flaws: the last one without; nil if there is none.
	Whole *Whole

	TypeURL   string
	Authority string

	Owner any // the caller's own

	To  []*Watch // the watches of the name
	All []*Watch // the watches of collections that it is of

	Stream Ref // that it is about, or that the resource belongs to

	// Exchange is of NoticeEnd, and of requests, responses and answers to them;
	// nil otherwise.
	*Exchange
}

// Exchange is what was sent or received.
type Exchange struct {
	Nonce        string
	Message      string // of a NACK
	ControlPlane string // that a response says it is of
	Resources    int    // of a response
	Size         int    // in bytes

	// Of NoticeEnd: how many entries of the response were good, those that said nothing new
	// among them, and how many were invalid, once for each name that is watched; resource errors
	// are. Removals and entries that were not subscribed to are neither.
	Valid, Invalid int
}

// Reason says why there is no resource.
type Reason uint8

// Reasons of NoticeDoesNotExist.
const (
	ReasonTimeout  Reason = iota + 1 // the server did not answer in time
	ReasonRemoved                    // delta's removed_resources
	ReasonAbsent                     // left out of a full state
	ReasonNotFound                   // said by the server, by an error or an entry without a body
	ReasonTTL                        // its time to live ran out
)

func (r Reason) String() string {
	return [...]string{"", "timeout", "removed", "absent", "not-found", "ttl"}[r]
}

// FaultKind says what kind of thing went wrong.
type FaultKind uint8

// Kinds of faults.
const (
	FaultConnection FaultKind = iota + 1 // no stream could be had
	FaultStream                          // the stream ended before its first response, or ends when the type is requested
	FaultRejected                        // the resource was invalid
	FaultData                            // the server sent an error for the resource
	FaultTimeout                         // the server did not answer in time, and that is told as an error, not as an absence
	FaultConfig                          // what a resource names has no servers; said by the caller alone
)

func (k FaultKind) String() string {
	return [...]string{"", "connection", "stream", "rejected", "data", "timeout", "config"}[k]
}

// Fault is an error told to watches.
type Fault struct {
	Kind FaultKind
	Err  error
	// Of FaultRejected and FaultData: the version that was refused or had the error.
	Version string
	At      time.Time

	// Servers is the trouble of each server of a source, in order of priority, where none of them
	// can be reached: the last is this one. Nil where one alone was tried.
	Servers []ServerFault

	refused uint64 // hash of the payload that was refused; 0 if none
}

// ServerFault is the trouble of one server.
type ServerFault struct {
	Server int
	*Fault
}

// same says whether telling f again would say nothing new.
func (f *Fault) same(g *Fault) bool {
	return f != nil && g != nil && f.Kind == g.Kind && SameText(f.Err.Error(), g.Err.Error())
}

// Log is one line for the operator.
type Log struct {
	Warn    bool // else information
	Server  int
	TypeURL string
	Name    string
	Text    string // one of few: how often a text is logged is limited
	Attrs   []any  // names and values in turn, as package log/slog takes them; nil for none
}

// Proposal is what a response of a guarded type would do as a whole, or the silence of a
// server on what it was not told of. Whoever runs the machine judges it, and says so by
// [Guarded]; until then nothing of it is taken.
type Proposal struct {
	Server  int
	TypeURL string
	Version string // of the response; "" for silence
	Held    int    // resources of the type on the stream, before
	Left    int    // after
	Changed []Change
	Removed []string // of those held, in order
	Invalid int      // entries that will be refused in any case

	ref         Ref
	resp        *response       // nil for silence
	unconfirmed []*subscription // that would go because of it
}

// Change is a resource that is not held yet, or with another value, or is new though its bytes
// are not.
type Change struct {
	Name  string
	New   bool
	Value any
	Raw   []byte
}

// Instead is the newest response of a type on a stream: what came in place of what did not.
// It is not changed once it is told.
type Instead struct {
	At    time.Time
	Count int // of its resources
	// Names of its resources, the first of those that nobody subscribed to before the others; at
	// most three. Of those without a name there is none.
	Names   []string
	Refusal string // why it was NACKed; "" if it was not
}

// Keep is what the store is to keep of a type's resources at a source, or to forget.
type Keep struct {
	Source  int
	TypeURL string
	Changes []Kept // the newest of a name last; whoever gets them may change them

	// Settled is a collection whose server had time to tell all of it: what the store has under a name
	// that the collection Covers, and that is not Known, is gone. Changes are none then.
	Settled string
	Covers  func(name string) bool
	Known   []string // what a server says there is of it, and its own name
}

// Kept is a resource that the store has, or is to keep or to forget. A load has one for each resource, so it
// is small.
type Kept struct {
	Name       string // canonical; of a collection `*` or the URL of a glob
	Version    string
	Raw        []byte           // the accepted payload, not to be changed; nil if there is no such resource any more
	Attributes *wire.Attributes // not to be changed
	Updated    int64            // when it was accepted, in Unix nanoseconds
	Expires    int64            // the end of its time to live; 0 if it has none
	Server     int              // that said it; one of the source's
	Complete   bool             // this is a collection, whose first state came: its name is kept
	Locator    bool
}

// Load asks for what the store has of a type's resources.
type Load struct {
	Source  int
	TypeURL string
	Names   []string // that are looked for, those of collections too
	All     bool     // all that there is, since a collection is among them

	*share
	subs []*subscription

	complete  map[string]*Kept // of collections
	tasks     []*Task          // that are not done with, in order
	last      bool             // no more entries come
	overtaken bool             // a server has spoken of the type meanwhile, so that collections get no members
	refused   int              // how many entries were not usable
	why       error            // what was wrong with the first of them; nil for none
}
