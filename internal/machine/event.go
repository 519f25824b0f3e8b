package machine

import (
	"time"

	"github.com/xdswatch/xdswatch/internal/wire"
)

// Event is something that happened.
type Event interface{ event() }

// Ref names one incarnation of a stream. Events of an earlier incarnation are ignored, but for [Delivered], which is of the
// stream.
type Ref struct{ Stream, Gen int }

// Watch is what a program wants to hear of: a resource, or a whole collection.
// The exported fields are set by its owner before [Start] and not changed afterwards.
type Watch struct {
	Owner    any     // the caller's own
	Lane     int32   // the caller's own: the source with whose notices those of the watch are ordered
	Source   int32   // index of the source that answers for the name
	Type     *Type   // of what is watched
	Name     string  // canonical; of a collection `*` or the URL of a glob
	Spelling *string // how the first watch of the name has it spelled in requests; nil for Name

	// FetchTimeout is how long the watch waits for its first answer until it is told that
	// there is none yet; 0 for no bound.
	FetchTimeout time.Duration

	sub   *subscription // of the name; nil before it is started and once it is stopped
	alone [1]*Watch     // the watch itself, once started

	timer // of the first answer

	Wildcard bool // the whole collection: the wildcard or a glob
	Explicit bool // `*` has to be spelled so
	Patient  bool // it is never told an absence because the server was silent; its FetchTimeout is 0 too
	troubled bool // the newest notice to it was of trouble with the server
}

// list is a list of the watch alone, that is not to be changed: most subscriptions have one watch.
func (w *Watch) list() []*Watch {
	w.alone[0] = w
	return w.alone[:]
}

// Start begins a watch. A watch is started once.
type Start struct{ *Watch }

// Stop ends a watch; one that was stopped before, or never started, is ignored.
type Stop struct{ *Watch }

// Up says that a stream for which [Effects].Open asked stands. Node is the encoded Node of
// its first request.
type Up struct {
	Ref
	Node []byte
}

// Down says that a stream ended or could not be had.
type Down struct {
	Ref
	Kind FaultKind // FaultStream if it ended; FaultConnection if it or a poll could not be had
	Err  error     // never nil
	Code int32     // of google.rpc.Status, where Err is one
}

// Written says that the last Send of the stream has left.
type Written struct{ Ref }

// Received is a response.
type Received struct {
	Ref
	Response *wire.Response
}

// Decoded is what became of a [Task].
type Decoded struct {
	Task    *Task
	Results []Result // one for each item
}

// Guarded is the judgement of a [Proposal]: with an error the response is refused.
type Guarded struct {
	Proposal *Proposal
	Err      error
}

// Result is what became of an [Item].
type Result struct {
	Value any
	Same  bool  // Value and attributes equal those of the item's Old, which has as many bytes as its Raw
	Err   error // the item is invalid: why
	// Flaws are what is wrong with parts of the value. The rest of it is used, and the
	// response is NACKed.
	Flaws []error
}

// Delivered says that all notices of the last response of the stream were handled.
type Delivered struct{ Ref }

// Heard says that all notices of a stream's trouble were handled. Stream is its index.
type Heard struct{ Stream int }

// ParamsChanged says that the program changed the dynamic parameters of a type in the node of
// all streams, also of those to come.
type ParamsChanged struct {
	TypeURL string
	Values  map[string]string // not changed afterwards
}

// Retry says that the wait for which [Effects].Wait asked is over.
type Retry struct{ Ref }

// Loaded is a part of the answer to a [Load].
type Loaded struct {
	*Load
	Entries []Kept
	Last    bool // nothing more comes
}

// Tick says that time passed.
type Tick struct {
	// Late is how long after a deadline that is, since the program itself did not run, as after SIGSTOP or the pause
	// of a virtual machine: the server's silence meanwhile means nothing. 0 mostly.
	Late time.Duration
}

func (Start) event()         {}
func (Stop) event()          {}
func (Up) event()            {}
func (Down) event()          {}
func (Written) event()       {}
func (Received) event()      {}
func (Decoded) event()       {}
func (Guarded) event()       {}
func (Delivered) event()     {}
func (Heard) event()         {}
func (ParamsChanged) event() {}
func (Retry) event()         {}
func (Loaded) event()        {}
func (Tick) event()          {}
