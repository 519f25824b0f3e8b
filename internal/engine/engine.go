// Package engine runs the protocol: one loop owns the machine and its timer; readers,
// writers, decode workers and dispatchers do what it says, and tell it what happened. It
// decides nothing about the protocol. Of the program's code the loop runs the backoff and the
// logger, and nothing else.
package engine

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/xdswatch/xdswatch/internal/machine"
	"github.com/xdswatch/xdswatch/resource"
	"github.com/xdswatch/xdswatch/transport"
)

// Server is one management server.
type Server struct {
	machine.Server
	URI     string
	V2      bool                           // its streams are of version 2 of the transport
	Connect func() (transport.Conn, error) // without dialling
	Source  resource.Source
	Backoff func() backoff.BackOff
}

// Config is fixed for the life of an engine.
type Config struct {
	Machine        machine.Config
	Servers        []Server
	Sources        []machine.Source
	HandlerTimeout time.Duration // after which a handler is reported; 0 for never
	// Node makes the encoded Node of a new stream. It is called by the stream's writer.
	Node func() []byte
	// Logger is the program's; nil for none: then panics of the program's code go to what slog.Default is at that time.
	Logger *slog.Logger
	// Guard judges what the responses of guarded types would do, in the same lane as Trace.
	// It may be nil if no type is guarded.
	Guard func(*machine.Proposal) error
	// Trace, if not nil, hears of what happens on streams, in order with the events of the
	// lane of the server's first watch; of a NoticeEnd once all handlers have returned.
	Trace func(Traced)
	// Store, if not nil, keeps what was accepted. Its methods are called by the loop and must not
	// block; what Load asks for is answered by a [machine.Loaded].
	Store Store
	// Metrics, if not nil, hears of servers that become connected or not, and of each NoticeEnd, in the same lane.
	Metrics func(*machine.Notice)
}

// Traced is what happened on a stream.
type Traced struct {
	*machine.Notice
	At time.Time // when a response came, and of NoticeEnd when the last handler returned; zero of others
	// Omitted is of a request: how many to its server were not traced before it, since too many waited.
	Omitted int
}

// Store keeps what was accepted for the next start.
type Store interface {
	Keep([]machine.Keep)
	Load([]*machine.Load)
}

// Sink takes the notices of watches. Its methods are called by the dispatcher of its lane
// only, one at a time.
type Sink interface {
	// Tell takes one notice, whose Value is decoded. It says whether it wants a Flush because of the notice; one
	// that has not come yet need not be asked for again.
	Tell(*machine.Notice) bool
	// Alive says whether it wants to hear anything yet: what is held is not decoded for one that does not.
	Alive() bool
	// Flush ends a group of notices. With last a response ends with it, or else what a
	// step told; without there will be another Flush.
	Flush(last bool)
}

// Crowd is a Sink that tells others of its kind too, since many watches of one resource are told
// of each change of it.
type Crowd interface {
	Sink
	// TellAll tells the watches from next on, the first of which is the sink's. It adds one to
	// next before each, so that next says how far it came if a handler ends the goroutine, and
	// returns behind a watch that wants a flush, before one with another kind of sink, or at the end.
	TellAll(n *machine.Notice, to []*machine.Watch, next *int) (wantsFlush bool)
}

// Engine is a running protocol. Its methods are safe for concurrent use; they block for no
// longer than the loop takes to come round.
type Engine struct {
	config      Config
	machine     *machine.Machine
	inbox       chan any // a machine.Event, watches to start, a func() to run on the loop, or done
	stop        chan struct{}
	stopped     sync.Once
	over        chan struct{}   // closed when the loop has ended
	ctx         context.Context // of all streams
	cancel      context.CancelFunc
	work        sync.WaitGroup // loop, readers, writers, workers
	dispatching sync.WaitGroup

	servers  atomic.Pointer[[]*server] // replaced by the loop when there are more
	received sync.Pool                 // of *received

	lanes lanes

	// Owned by the loop.
	*lines
	watchdog
	streams    map[int]*stream // by machine stream
	unused     []*server       // the last stream of each on its connection ended in this step
	waits      waits
	decoders   decoders
	deliveries map[int]*delivery // responses that are being told, by machine stream: one at a time
	events     []machine.Event   // of a turn of the loop; empty between two
	again      []machine.Event   // for the next step of this turn
}

// server is a server in use. The loop owns what changes, but for what waits of requests.
type server struct {
	Server
	number   int
	home     *lane    // of its first watch: its hooks are called there; nil before
	conn     *conn    // nil while nothing uses one
	requests requests // that are traced
}

// inboxSize is how many messages may wait for the loop before their senders do.
const inboxSize = 1024

// New starts an engine.
func New(c Config) *Engine {
	e := &Engine{
		config: c, machine: machine.New(c.Machine),
		inbox: make(chan any, inboxSize), stop: make(chan struct{}), over: make(chan struct{}),
		streams: map[int]*stream{},
		waits:   waits{of: map[int]*retry{}}, decoders: decoders{tasks: newTurns()}, deliveries: map[int]*delivery{},
		lines: newLines(c.Logger),
	}
	e.lanes.dispatch, e.lanes.decode = e.dispatchApart, e.decodeHeld
	e.watchdog = watchdog{lines: e.lines, timeout: c.HandlerTimeout}
	e.servers.Store(&[]*server{})
	e.extend(c.Servers, c.Sources)
	e.received.New = func() any { return &received{} }
	e.ctx, e.cancel = context.WithCancel(context.Background())
	e.work.Go(e.run)
	return e
}

// Start begins watches at one moment. The Owner of each is a [Sink], and that of its Type the
// [resource.AnyType]. It says whether the engine still runs.
func (e *Engine) Start(ws ...*machine.Watch) bool {
	if len(ws) == 1 { // as mostly: the list is not kept
		return e.post(ws[0])
	}
	return e.post(slices.Clone(ws))
}

// Extend adds servers and sources. Their indices follow those of the last ones. It says whether the engine
// still runs.
func (e *Engine) Extend(servers []Server, sources []machine.Source) bool {
	return e.post(func() { e.extend(servers, sources) })
}

func (e *Engine) extend(servers []Server, sources []machine.Source) {
	all := *e.servers.Load() // who reads it looks no further than where it ended
	for _, s := range servers {
		e.machine.AddServer(s.Server)
		all = append(all, &server{Server: s, number: len(all)})
	}
	e.servers.Store(&all)
	for _, s := range sources {
		e.machine.AddSource(s)
	}
}

func (e *Engine) server(i int) *server { return (*e.servers.Load())[i] }

// Post hands an event to the machine: the end of a watch, changed parameters of the node, or what the store has. It says
// whether the engine still runs.
func (e *Engine) Post(ev machine.Event) bool { return e.post(ev) }

// Known tells what is known of what watches ask for, of those that live. The loop waits for it.
func (e *Engine) Known(ws ...*machine.Watch) []machine.Resource {
	var rs []machine.Resource
	e.ask(func() {
		for _, w := range ws {
			if r, ok := e.machine.Known(w); ok {
				rs = append(rs, r)
			}
		}
	})
	return rs
}

// Ask has f look at the machine. The loop waits for f, and the caller for the loop. After Close f does not run.
func (e *Engine) Ask(f func(*machine.Machine)) { e.ask(func() { f(e.machine) }) }

// ResetBackoff ends all waits between attempts now and starts their growth over.
func (e *Engine) ResetBackoff() {
	e.post(func() {
		e.logger.Debug("backoff is reset")
		e.again = append(e.again, e.waits.reset()...)
	})
}

// Close ends everything and waits for loop, readers, writers and workers, but not for a
// handler that runs. Closing twice is nothing.
func (e *Engine) Close() {
	e.stopped.Do(func() { close(e.stop) })
	e.work.Wait()
}

// Wait blocks until, after Close, no handler runs any more.
func (e *Engine) Wait() {
	e.work.Wait()
	e.dispatching.Wait()
}

// post hands a message to the loop.
func (e *Engine) post(msg any) bool {
	select {
	case <-e.stop:
		return false
	default:
	}
	select {
	case e.inbox <- msg:
		return true
	case <-e.stop:
		return false
	}
}

// ask runs f on the loop and waits for it. After Close it does not run.
func (e *Engine) ask(f func()) {
	done := make(chan struct{})
	if !e.post(func() { f(); close(done) }) {
		return
	}
	select {
	case <-done:
	case <-e.over:
	}
}

// run is the loop.
func (e *Engine) run() {
	defer close(e.over)
	defer e.shutdown()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		due := e.arm(timer)
		events := e.events[:0]
		select {
		case <-e.stop:
			return
		case <-timer.C:
			now := time.Now()
			e.decoders.dismiss(now.Add(-idleTime))
			e.look(now)
			events = e.waits.due(now)
			events = append(events, machine.Tick{Late: late(due)})
		case msg := <-e.inbox:
			if late := late(due); late > 0 {
				events = append(events, machine.Tick{Late: late})
			}
			events = e.take(events, msg)
		}
		for n := len(e.inbox); n > 0; n-- {
			events = e.take(events, <-e.inbox)
		}
		e.step(events)
		clear(events)
		e.events = events
	}
}

// take turns a message into an event, or runs it once all that came before it was done. What
// it ran may have events of its own.
func (e *Engine) take(events []machine.Event, msg any) []machine.Event {
	switch msg := msg.(type) {
	case func():
		e.step(events)
		msg()
		events, e.again = e.again, nil
	case done:
		e.decoders.tasks.decoded(msg.decoded.Task)
		e.decoders.rest(msg.worker)
		e.decodeMore()
		events = append(events, msg.decoded)
	case *machine.Watch:
		events = append(events, e.start(msg))
	case []*machine.Watch:
		for _, w := range msg {
			events = append(events, e.start(w))
		}
	case arrived:
		if e.arrive(msg) {
			events = append(events, machine.Received{Ref: msg.stream.ref, Response: &msg.received.response})
		}
	case machine.Event:
		events = append(events, msg)
	}
	return events
}

// step runs the machine until nothing follows from what it did.
func (e *Engine) step(events []machine.Event) {
	for len(events) > 0 {
		e.apply(e.machine.Step(time.Now(), events...))
		events, e.again = e.again, nil
	}
}

// arm sets the timer to the next thing that time brings, and says when it rings; zero for
// never.
func (e *Engine) arm(timer *time.Timer) (due time.Time) {
	deadline, _ := e.machine.Deadline()
	for _, at := range [...]time.Time{deadline, e.waits.next, e.watchdog.at, e.decoders.dismissal()} {
		if !at.IsZero() && (due.IsZero() || at.Before(due)) {
			due = at
		}
	}
	if due.IsZero() {
		timer.Stop()
		return due
	}
	now := time.Now()
	if due.Before(now) {
		due = now // the loop itself was at work meanwhile
	}
	timer.Reset(due.Sub(now))
	return due
}

// lateLimit is how late the loop may come round on a machine that is merely busy.
const lateLimit = 200 * time.Millisecond

// late is how much later the loop came round than it was to, since the process was stopped, or paused with its
// machine; 0 if it did not.
func late(due time.Time) time.Duration {
	if by := time.Since(due); !due.IsZero() && by > lateLimit {
		return by
	}
	return 0
}

func (e *Engine) shutdown() {
	e.cancel()
	for _, s := range e.streams {
		s.abandon()
	}
	for _, s := range *e.servers.Load() {
		if s.conn != nil {
			e.disconnect(s)
		}
	}
	e.lanes.close()
}

// start notes what the engine itself has to know of a watch that begins.
func (e *Engine) start(w *machine.Watch) machine.Start {
	l := e.lanes.begin(w)
	for _, i := range e.machine.Servers(int(w.Source)) {
		if s := e.server(i); s.home == nil {
			s.home = l
		}
	}
	return machine.Start{Watch: w}
}
