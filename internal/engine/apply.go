package engine

import (
	"errors"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/xdswatch/xdswatch/internal/machine"
)

// apply does what the machine says, in the order of the fields.
func (e *Engine) apply(fx machine.Effects) {
	e.notify(fx.Notify)
	for _, r := range fx.Release {
		if s := e.stream(r); s != nil && s.current != nil {
			s.current.frame = s.current.frame.Discarded()
		}
	}
	for _, r := range fx.Read {
		if s := e.stream(r); s != nil {
			s.allow()
		}
	}
	if len(fx.Decode) > 0 {
		e.decoders.tasks.add(fx.Decode...)
		e.decodeMore()
	}
	for _, p := range fx.Guard {
		e.hook(p.Server, func() { e.judge(p) })
	}
	for _, r := range fx.Close {
		e.closeStream(r)
	}
	for _, o := range fx.Open {
		e.open(o)
	}
	for _, w := range fx.Wait {
		e.wait(w)
	}
	e.hangUp()
	for _, s := range fx.Send {
		if st := e.stream(s.Ref); st != nil {
			st.outbox <- s.Message // there is room: the last one was written
		}
	}
	for _, l := range fx.Log {
		e.lines.log(l, e.server(l.Server).URI)
	}
	if len(fx.Keep) > 0 {
		e.config.Store.Keep(fx.Keep)
	}
	if len(fx.Load) > 0 {
		e.config.Store.Load(fx.Load)
	}
}

// delivery is a response while it is being told. Its chunks come in steps of their own; the
// batches of its watches end with the last of them.
type delivery struct {
	typeURL string
	lanes   []*lane
}

// notify puts notices into the lanes of their watches. What a step told ends with a flush.
func (e *Engine) notify(notices []machine.Notice) {
	var told step
	for len(notices) > 0 {
		n, run := &notices[0], 1
		switch n.Kind {
		case machine.NoticeResponse:
			e.trace(n)
			e.deliveries[n.Stream.Stream] = &delivery{n.TypeURL, e.hookLanes(n.Server)}
		case machine.NoticeEnd:
			e.count(n)
			e.deliver(n)
			if s := e.stream(n.Stream); s != nil {
				s.consumed(&e.received)
			}
		case machine.NoticeStreamUp, machine.NoticeStreamDown, machine.NoticeRequest, machine.NoticeAck, machine.NoticeNack:
			e.trace(n)
		case machine.NoticeConnected, machine.NoticeDisconnected:
			e.count(n)
		default:
			run = e.lanes.run(notices)
			e.tell(notices[:run:run], &told)
		}
		notices = notices[run:]
	}
	for _, l := range told.touched {
		e.put(l, item{flush: true})
	}
	if told.troubled == nil { // as mostly
		return
	}
	for _, i := range slices.Sorted(maps.Keys(told.troubled)) {
		e.mark(told.troubled[i], nil, func() { e.post(machine.Heard{Stream: i}) })
	}
}

// step is where the notices of a step of the machine went.
type step struct {
	touched  []*lane
	troubled map[int][]*lane // those that were told of trouble, by machine stream; nil if none was
}

// load counts what a server's resources take that go into a lane, until they are told.
func (e *Engine) load(server int, notices []machine.Notice) (told *marker) {
	size := 0
	for i := range notices {
		if size += untoldSize; !notices[i].Held { // what is held is not decoded yet
			size += len(notices[i].Raw)
		}
	}
	e.decoders.tasks.owes(server, size)
	return newMarker(1, func() {
		e.post(func() {
			e.decoders.tasks.told(server, size)
			e.decodeMore()
		})
	})
}

// tell puts notices for the same watches into the lanes of these. A lane does with what it has
// as it likes, so each has its own.
func (e *Engine) tell(notices []machine.Notice, to *step) {
	n := &notices[0]
	d := e.deliveries[n.Stream.Stream]
	if d != nil && d.typeURL != n.TypeURL {
		d = nil
	}
	server, stream, trouble := n.Server, n.Stream.Stream, n.Trouble // not to be read any more once a lane has them
	for i, l := range slices.Backward(e.lanes.told(n)) {
		own := notices
		if i > 0 {
			own = slices.Clone(notices) // while no lane has them
		}
		it := item{notices: own, of: d}
		if e.decoders.tasks.waits(server) {
			it.marker = e.load(server, own)
		}
		e.put(l, it)
		to.touched = with(to.touched, l)
		if trouble {
			if to.troubled == nil {
				to.troubled = map[int][]*lane{}
			}
			to.troubled[stream] = with(to.troubled[stream], l)
		}
		if d != nil {
			d.lanes = with(d.lanes, l)
		}
	}
}

// deliver ends the delivery of a response: the lanes that it touched end their batches, and when all have come
// there, the stream may be read on. The notice of its end is traced then, unless it is ignored.
func (e *Engine) deliver(end *machine.Notice) {
	d, delivered := e.deliveries[end.Stream.Stream], machine.Delivered{Ref: end.Stream}
	delete(e.deliveries, end.Stream.Stream)
	switch {
	case len(d.lanes) == 0:
		e.again = append(e.again, delivered)
	case end.Ignored || e.config.Trace == nil:
		e.mark(d.lanes, d, func() { e.post(delivered) })
	default:
		e.mark(d.lanes, d, func() {
			at := time.Now()
			e.post(func() {
				e.hook(end.Server, func() { e.config.Trace(Traced{Notice: end, At: at}) })
				e.again = append(e.again, delivered)
			})
		})
	}
}

// mark puts a marker behind what is in lanes.
func (e *Engine) mark(lanes []*lane, of *delivery, done func()) {
	m := newMarker(len(lanes), done)
	for _, l := range lanes {
		e.put(l, item{of: of, marker: m})
	}
}

func with(ls []*lane, l *lane) []*lane {
	if slices.Contains(ls, l) {
		return ls
	}
	return append(ls, l)
}

// hookLanes is the lane in which a server's hooks are called, if there are any, so that slow ones hold
// back what they hear of.
func (e *Engine) hookLanes(server int) []*lane {
	if l := e.server(server).home; l != nil && (e.config.Trace != nil || e.config.Metrics != nil) {
		return []*lane{l}
	}
	return nil
}

// trace logs what happens on a stream and tells the program's trace.
func (e *Engine) trace(n *machine.Notice) {
	e.lines.stream(n, e.server(n.Server).URI)
	switch {
	case e.config.Trace == nil:
	case n.Kind == machine.NoticeRequest:
		e.traceRequest(n)
	default:
		at := e.cameAt(n)
		e.hook(n.Server, func() { e.config.Trace(Traced{Notice: n, At: at}) })
	}
}

// requests are the traced requests to a server.
type requests struct {
	waiting atomic.Int32 // in the lane of the server's hooks
	omitted int          // since the last that was traced; owned by the loop
}

// mostRequests is how many of them may wait. The machine does not bound them: a program that watches and
// stops while a handler blocks has as many requests sent as it likes.
const mostRequests = 1024

func (e *Engine) traceRequest(n *machine.Notice) {
	r := &e.server(n.Server).requests
	if r.waiting.Load() >= mostRequests {
		r.omitted++
		return
	}
	omitted := r.omitted
	r.omitted = 0
	r.waiting.Add(1)
	e.hook(n.Server, func() {
		r.waiting.Add(-1)
		e.config.Trace(Traced{Notice: n, Omitted: omitted})
	})
}

// cameAt is when a response came that is traced; zero of other notices.
func (e *Engine) cameAt(n *machine.Notice) time.Time {
	if n.Kind != machine.NoticeResponse {
		return time.Time{}
	}
	if s := e.stream(n.Stream); s != nil && s.current != nil {
		return s.current.at
	}
	return time.Now() // its stream has ended
}

// errGuardExited is the verdict of a guard that gave none.
var errGuardExited = errors.New("the guard ended its goroutine (runtime.Goexit)")

// judge asks the program's guards. Whatever they do there is a verdict.
func (e *Engine) judge(p *machine.Proposal) {
	err := errGuardExited
	defer func() { e.post(machine.Guarded{Proposal: p, Err: err}) }()
	err = WithText(e.config.Guard(p))
}

// hook has a hook of the program called, in order with the events of the lane of a
// server's first watch.
func (e *Engine) hook(server int, f func()) {
	l := e.server(server).home
	if l == nil {
		return
	}
	e.put(l, item{hook: func() {
		returned := false
		defer func() {
			if !returned { // panics do not get here
				e.Complain("a guard, or a function of Trace or Metrics, ended its goroutine (runtime.Goexit)", e.server(server).URI, "", "")
			}
		}()
		f()
		returned = true
	}})
}
