package machine

import (
	"time"

	"github.com/xdswatch/xdswatch/internal/wire"
)

// quirk is what some servers do that the protocol does not foresee, and what the client does about
// it, on one stream. Each has a file of its own, quirk_*.go, and a line in [newQuirks]; without both the
// quirk is gone, and the rest works as before. What a quirk itself waits for are alarms on the stream's clock; its hook
// earliest delays a type. No hook ends the stream, since its caller goes on with the stream: an alarm may ([Machine.restartPaced],
// which has pauses of its own).
type quirk interface {
	// forget: an incarnation of the stream is over, and what was known of it.
	forget()
	// received: a response came; l is nil if its type was not requested.
	received(m *Machine, now time.Time, l *link)
	// passed: the server has sent a value of a name that is not subscribed to. A response holds it as r; with nil it came
	// before, and the message being composed unsubscribes the name.
	passed(l *link, name []byte, r *wire.Resource)
	// takesBack says that a name has to be unsubscribed before it is subscribed to. It is asked once.
	takesBack(l *link, name string) bool
	// replying: a response was worked on, and the client owes its reply, if there can be one ([Machine.owe]).
	replying(m *Machine, now time.Time, resp *response)
	// earliest says when a type may say what it owes, zero for at once, and how much it is doubted. Of types that owe
	// interest alone those that are doubted least speak first.
	earliest(l *link, what debt) (at time.Time, doubts int)
	// requested: a request went to the writer.
	requested(now time.Time, l *link, what debt, size int)
	// written: it has left. The subscriptions are those that it names anew.
	written(m *Machine, now time.Time, l *link, first bool, fresh []*subscription)
	// ended: the stream ended.
	ended(m *Machine, now time.Time, end *ending)
}

// noQuirk does nothing about anything.
type noQuirk struct{}

func (noQuirk) forget()                                                   {}
func (noQuirk) received(*Machine, time.Time, *link)                       {}
func (noQuirk) passed(*link, []byte, *wire.Resource)                      {}
func (noQuirk) takesBack(*link, string) bool                              { return false }
func (noQuirk) replying(*Machine, time.Time, *response)                   {}
func (noQuirk) earliest(*link, debt) (at time.Time, doubts int)           { return at, 0 }
func (noQuirk) requested(time.Time, *link, debt, int)                     {}
func (noQuirk) written(*Machine, time.Time, *link, bool, []*subscription) {}
func (noQuirk) ended(*Machine, time.Time, *ending)                        {}

// byType is what a quirk knows of the types of a stream.
type byType[T any] map[*link]*T

// on finds or makes what is known of a type.
func (of byType[T]) on(l *link) *T {
	it := of[l]
	if it == nil {
		it = new(T)
		of[l] = it
	}
	return it
}

// nameHashes are names of types that a quirk remembers; of a type no more than maxHashes.
type nameHashes map[*link]map[uint64]bool

const maxHashes = 1 << 16

func (of nameHashes) add(l *link, name []byte) {
	names := of[l]
	if names == nil {
		names = map[uint64]bool{}
		of[l] = names
	}
	if len(names) < maxHashes {
		names[hashOf(name)] = true
	}
}

// take forgets a name, and says whether it was remembered.
func (of nameHashes) take(l *link, name string) bool {
	names := of[l]
	if len(names) == 0 {
		return false
	}
	hash := hashOf([]byte(name))
	had := names[hash]
	delete(names, hash)
	return had
}

// ending is the end of a stream: what the protocol makes of it, and what quirks change.
type ending struct {
	Down
	stream *stream // in the state in which it ended
	wait   Wait
}
