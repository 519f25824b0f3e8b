package machine

import (
	"fmt"
	"slices"
	"time"
)

// Some servers end the whole aggregated stream when they are asked for a type that they do
// not know. A type that was never answered is doubted each time that a stream ends right
// after its first request, twice as much if the stream had worked until then; three in a row
// that brought nothing at all are enough. With enough doubt it is asked for last and by itself,
// so that the others live and the next end tells which type it was; that one is suspected and
// held back. An answer ends all doubt for good.
const (
	grace      = time.Second // how long the end of a stream may be due to a first request
	doubtFail  = 1           // by the end of a stream that may never have worked
	doubtWell  = 2           // by the end of one that did
	doubtMost  = 6           // enough: three streams that worked
	barrenMost = 3           // streams in a row that brought nothing, after which there is enough
	holdFirst  = 30 * time.Second
	holdMost   = 600 * time.Second
)

// suspicion is what is known of a type that may be ending streams.
type suspicion struct {
	cleared bool // the server has answered for the type once
	doubts  int  // by ends of streams right after the first request
	hold    time.Duration
	until   time.Time // when it may be asked for again
	fault   *Fault    // what its watches were told; nil unless it is suspected
}

// doubted says whether the type's first request waits for its turn.
func (ts *typeState) doubted() bool { return !ts.asked && ts.doubts >= doubtMost }

// turn is when a type may be asked for on a stream; zero for at once. One that is doubted
// waits until each first request before it was answered, or did no harm for a while.
func (ts *typeState) turn() (at time.Time) {
	if !ts.doubted() {
		return at
	}
	at = ts.until
	for _, other := range ts.stream.order {
		if harmless := other.firstAt.Add(grace); other.asked && !other.answered && harmless.After(at) {
			at = harmless
		}
	}
	return at
}

// byDoubt orders types that owe interest: those that are doubted come last, the least
// doubted first, so that each comes to be asked for behind the others.
func byDoubt(a, b *typeState) int { return a.weight() - b.weight() }

func (ts *typeState) weight() int {
	if ts.doubted() {
		return ts.doubts
	}
	return 0
}

// blame looks for the type that a stream's end is due to, and says whether there is one.
func (m *Machine) blame(now time.Time, s *stream, err error) bool {
	var last *typeState
	alone := true
	if s.barren++; s.responded || s.outlived(now) {
		s.barren = 0
	}
	for _, ts := range s.order {
		if !ts.asked || ts.cleared || now.Sub(ts.firstAt) >= grace {
			continue
		}
		alone = last == nil
		last = ts
		ts.doubts += doubtFail
		if s.wasWell(ts) {
			ts.doubts += doubtWell - doubtFail
		}
		if s.barren >= barrenMost {
			ts.doubts = max(ts.doubts, doubtMost)
		}
	}
	if last == nil || !alone || last.doubts < doubtMost || !s.wasWell(last) {
		return false
	}
	m.suspect(now, last, err)
	return true
}

// wasWell says whether a stream worked until a type was asked for: the server answered
// another one, or did no harm for a while after that was asked for. An end after the first
// request proves nothing: the server may not like the client at all.
func (s *stream) wasWell(ts *typeState) bool {
	return s.responded || slices.ContainsFunc(s.order, func(other *typeState) bool {
		return other.asked && ts.firstAt.Sub(other.firstAt) >= grace
	})
}

// outlived says whether a stream did no harm for a while after a first request.
func (s *stream) outlived(now time.Time) bool {
	return slices.ContainsFunc(s.order, func(ts *typeState) bool { return ts.asked && now.Sub(ts.firstAt) >= grace })
}

// suspect holds a type back. Its watches would hear of nothing else: the end of a stream
// that delivered a response is no error (gRPC A57).
func (m *Machine) suspect(now time.Time, ts *typeState, err error) {
	ts.hold = min(max(2*ts.hold, holdFirst), holdMost)
	ts.until = now.Add(ts.hold)
	f := &Fault{
		Kind: FaultStream, At: now,
		Err: fmt.Errorf("the server ends the stream when it is asked for %s: %w", ts.typ.URL, err),
	}
	if ts.suspicion.fault == nil {
		m.logType(ts, true, "the server ends the stream when it is asked for the type "+ts.typ.URL+
			"; the type is held back so that the others live")
	}
	if f.same(ts.suspicion.fault) {
		return
	}
	ts.suspicion.fault = f
	m.tellType(ts, f, nil)
}

// acquit ends all doubt of a type: the server answered.
func (m *Machine) acquit(ts *typeState) {
	held := ts.suspicion.fault != nil
	ts.suspicion = suspicion{cleared: true}
	if held {
		m.logType(ts, false, "the server answers for the type now")
		if ts.stream.fault == nil {
			m.tellTypeClear(ts, nil)
		}
	}
}

// trouble is why the type is not served; nil if nothing is known to be wrong.
func (ts *typeState) trouble() *Fault {
	if ts.suspicion.fault != nil {
		return ts.suspicion.fault
	}
	if ts.stream.unreachable() {
		return ts.stream.fault
	}
	return nil
}

func (m *Machine) logType(ts *typeState, warn bool, text string) {
	m.fx.Log = append(m.fx.Log, Log{Warn: warn, Server: ts.stream.server, TypeURL: ts.typ.URL, Text: text})
}
