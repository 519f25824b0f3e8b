package machine

import (
	"slices"
	"time"
)

type streamState uint8

const (
	idle    streamState = iota // nobody wants it
	opening                    // requested from the engine
	up
	waiting // for a backoff
)

// stream is one stream for life; each time it is opened is an incarnation of its own.
type stream struct {
	*Server
	ref     Ref // of the present incarnation, or the last
	server  int
	typ     *Type // nil if aggregated
	state   streamState
	links   []*link   // of its types, in the order in which they are sent
	watches int       // that are not over
	sources []*source // that may use it, as they were first used

	agenda *agenda
	// Both belong to the agenda.
	touched bool
	due     time.Time // as it was last noted; zero if it has come

	incarnation

	clock    clock
	alarms   queue[alarm]
	throttle throttle

	restarts pauses  // between streams that are begun anew for a wildcard, or for names ([hushes])
	quirks   []quirk // of its server

	// undelivered: handlers still have the last response, maybe of an earlier incarnation. The next is read after it.
	undelivered bool

	trouble
	// lingerUntil is set while nobody watches anything on a stream that stands.
	lingerUntil time.Time
}

// trouble is that a server cannot be reached, and what watches were told of that.
type trouble struct {
	fault *Fault // why it cannot be reached; nil if it can, or if that is not known yet
	// notified are the newest few troubles that watches were told of since the server last responded. None of them is
	// told again, since attempts may fail in two ways by turns.
	notified []*Fault
	troubled bool // a watch may know of trouble, maybe that of another server that was active then: its end is to be told
	telling  bool // handlers still have a notice of trouble; of those that come meanwhile the newest is told after it
}

// incarnation is what is known of a stream since it was opened last, but for what its types know.
type incarnation struct {
	node      []byte
	owedNode  map[string]bool // types that have to say it again, by URL; nil until one has said it
	responded bool
	calm      bool              // its server's silence counts as a response; see [calmness]
	heldBack  time.Time         // set while too many replies are owed to read on: when a request last left, or handlers were last done
	writing   *link             // whose message is with the writer
	ignored   map[string]string // nonces of types that were not requested
	opened    time.Duration     // when it began, on the clock
}

func newIncarnation() incarnation { return incarnation{ignored: map[string]string{}} }

// unreachable says that the server is in trouble and has not spoken since: a response that
// is being worked on has not ended the trouble yet, but it will.
func (s *stream) unreachable() bool { return s.fault != nil && !s.responded }

// toldUp says that the program was told that the stream stands. Of a server that is polled only an answer shows that.
func (s *stream) toldUp() bool { return s.state == up && (!s.Polled || s.responded) }

// livedLong says that a stream stood long enough for the waits before the next one not to grow, though the server sent
// little or nothing on it, or ended it because too much was asked.
func (s *stream) livedLong(now time.Time) bool { return s.clock.at(now)-s.opened >= 15*time.Second }

// works says that the server has spoken on this incarnation, or has nothing to say, and nothing
// is wrong with it.
func (s *stream) works() bool {
	return (s.responded || s.calm) && s.fault == nil
}

// standsBy says that this is the stream of a server before the active one, for one of its sources.
func (s *stream) standsBy() bool {
	return slices.ContainsFunc(s.sources, func(src *source) bool { return src.standsBy(s) })
}

// heldBytes is how many bytes the payloads have that are held of the server: those of the sources that use it.
func (s *stream) heldBytes() (sum int64) {
	for _, src := range s.sources {
		if src.stream() == s {
			sum += src.heldBytes
		}
	}
	return sum
}

// mayHold says whether so many bytes may be held beside what is held of the server.
func (s *stream) mayHold(size int) bool {
	return s.config.MaxHeld <= 0 || s.heldBytes()+int64(size) <= s.config.MaxHeld
}

// stateless says that each request stands for itself, as a poll does, and is all the same to a file.
func (s *stream) stateless() bool { return s.Polled || s.AlwaysFull }

// takeTimeout is how long a server may take no request, from when the client stopped reading for that.
const takeTimeout = 30 * time.Second

// takeBy is until when the server has to take the request that is with the writer; zero for any time.
func (s *stream) takeBy() time.Time {
	if s.heldBack.IsZero() || s.writing == nil {
		return time.Time{}
	}
	return s.heldBack.Add(takeTimeout)
}
