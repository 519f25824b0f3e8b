package machine

import (
	"fmt"
	"slices"
	"time"
)

// Some servers end the whole aggregated stream when a client requests a type that they do
// not know. A type that was never answered is doubted each time that a stream ends right
// after its first request, twice as much if the stream had worked until then; three in a row
// that brought nothing at all are enough. With enough doubt it is requested last and by itself,
// so that the others live and the next end tells which type it was; that one is suspected and
// held back. An answer ends all doubt for good.
const (
	suspectFor   = time.Second // how long the end of a stream may be due to a first request
	doubtFail    = 1           // by the end of a stream that may never have worked
	doubtWell    = 2           // by the end of one that did
	doubtEnough  = 6           // S-3: enough, that is three streams that worked
	barrenEnough = 3           // streams in a row that brought nothing, after which there is enough
	holdFirst    = 30 * time.Second
	holdMost     = 600 * time.Second
)

// suspects are the types of a stream that may be ending it.
type suspects struct {
	noQuirk
	stream *stream
	of     byType[suspicion]
	barren int // incarnations in a row that ended at once and brought nothing
}

// suspicion is what is known of a type that may be ending streams.
type suspicion struct {
	cleared bool      // the server has answered for the type once
	firstAt time.Time // when its first request on this incarnation left; until then, when it was made
	doubts  int       // by ends of streams right after the first request
	hold    pauses    // in which it is not requested
}

// earliest has a type that is doubted speak behind the others, the least doubted first. It waits until each first
// request that was sent earlier was answered, or did no harm for a while.
func (q *suspects) earliest(l *link, _ debt) (at time.Time, doubts int) {
	it := q.of[l]
	if l.requested || it == nil || it.doubts < doubtEnough {
		return at, 0
	}
	at = it.hold.until
	for _, other := range q.stream.links {
		// S-3: types that are doubted are requested one by one.
		if other.requested && other.firstResponse == 0 {
			at = later(at, q.of.on(other).firstAt.Add(suspectFor))
		}
	}
	return at, it.doubts
}

func (q *suspects) requested(now time.Time, l *link, _ debt, _ int) {
	if it := q.of.on(l); !l.requested {
		it.firstAt = now
	}
}

func (q *suspects) written(_ *Machine, now time.Time, l *link, first bool, _ []*subscription) {
	if first {
		q.of.on(l).firstAt = now
	}
}

// received ends all doubt of a type.
func (q *suspects) received(m *Machine, _ time.Time, l *link) {
	if q.barren = 0; l == nil {
		return
	}
	it := q.of.on(l)
	it.cleared, it.doubts, it.hold = true, 0, pauses{}
	if l.fault != nil {
		l.fault = nil
		m.logType(l, information, "the server answers for the type now")
		if l.stream.fault == nil {
			m.tellEveryone(l.owned(), nil, nil)
		}
	}
}

// ended looks for the type that the stream's end is due to.
func (q *suspects) ended(m *Machine, now time.Time, end *ending) {
	if q.stream.state != up || end.Code == codeResourceExhausted { // that says itself what it is due to
		return
	}
	var last *link
	alone := true
	// S-3: a stream that stood was not ended by a type.
	if q.barren++; q.worked(now) {
		q.barren = 0
	}
	for _, l := range q.stream.links {
		it := q.of.on(l)
		// S-32: a type that was answered is not held back for one name that ends the stream.
		switch {
		case !l.requested || it.cleared:
			continue
		case now.Sub(it.firstAt) >= suspectFor:
			if it.hold == (pauses{}) {
				it.doubts = 0 // the stream outlived its request: a connection that is cut now and then condemns no type
			}
			continue
		}
		alone = last == nil
		last = l
		it.doubts += doubtFail
		if q.worked(it.firstAt) {
			it.doubts += doubtWell - doubtFail
		}
		if q.barren >= barrenEnough {
			it.doubts = max(it.doubts, doubtEnough)
		}
	}
	if last != nil && alone && q.of.on(last).doubts >= doubtEnough && q.worked(q.of.on(last).firstAt) {
		end.wait.Served, end.wait.Short, end.wait.Failed = true, true, false
		q.suspect(m, now, last, end.Err)
	}
}

// worked says whether the stream worked until some time, as that of a type's first request: the server answered a
// type, or did no harm for a while after one was requested. An end after the first request proves nothing: the
// server may not like the client at all.
func (q *suspects) worked(until time.Time) bool {
	// S-3: the first request of a stream proves nothing.
	return q.stream.responded || slices.ContainsFunc(q.stream.links, func(l *link) bool {
		return l.requested && until.Sub(q.of.on(l).firstAt) >= suspectFor
	})
}

// suspect holds a type back. Its watches would hear of nothing else: the end of a stream
// that delivered a response is no error (gRFC A57).
func (q *suspects) suspect(m *Machine, now time.Time, l *link, err error) {
	q.of.on(l).hold.begin(now, holdFirst, holdMost)
	m.connected(q.stream)
	f := &Fault{
		Kind: FaultStream, At: now,
		Err: fmt.Errorf("the server ends the stream when it is asked for %s: %w", l.cache.typ.URL, err),
	}
	if l.fault == nil {
		m.logType(l, warning, "the server ends the stream when it is asked for the type "+l.cache.typ.URL+
			"; the type is held back so that the others live")
	}
	if !f.same(l.fault) {
		l.fault = f
		m.tellEveryone(l.owned(), f, (*subscription).watches)
	}
}
