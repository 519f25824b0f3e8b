package engine

import (
	"log/slog"

	"github.com/xdswatch/xdswatch/internal/machine"
)

// before notes what the engine itself has to know of an event.
func (e *Engine) before(ev machine.Event) {
	switch ev := ev.(type) {
	case machine.Down:
		e.ended(ev)
	case machine.Delivered:
		if s := e.stream(ev.Ref); s != nil {
			s.allow()
		}
	case machine.Decoded:
		e.busy--
		e.decodeMore()
	}
}

// apply does what the machine says, lane by lane.
func (e *Engine) apply(fx machine.Effects) {
	e.notify(fx.Notify, fx.Consumed)
	if len(fx.Decode) > 0 {
		e.tasks = append(e.tasks, fx.Decode...)
		e.decodeMore()
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
	for _, s := range fx.Send {
		if st := e.stream(s.Ref); st != nil {
			st.outbox <- s.Message // there is room: the last one was written
		}
	}
	for _, l := range fx.Log {
		e.log(l)
	}
}

// notify puts notices into the lanes of their watches, and behind the last one of a
// response a marker that lets the next response be read.
func (e *Engine) notify(notices []machine.Notice, consumed []machine.Ref) {
	var touched laneSet
	for i := range notices {
		n := &notices[i]
		s := e.streams[n.Stream.Stream]
		switch n.Kind {
		case machine.NoticeEnd:
			continue
		case machine.NoticeResponse:
			if s != nil && !n.Ignored {
				s.inResponse, s.lanes = true, laneSet{}
			}
			e.trace(n)
		case machine.NoticeStreamUp, machine.NoticeStreamDown, machine.NoticeRequest, machine.NoticeAck, machine.NoticeNack:
			e.trace(n)
		default:
			for _, l := range e.lanesOf(n) {
				l.put(item{notice: n, lane: l})
				touched.add(l, s != nil && s.inResponse)
				if s != nil {
					s.lanes.add(l, false)
				}
			}
		}
	}
	for _, ref := range consumed {
		e.consumed(ref, &touched)
	}
	for _, t := range touched.list {
		t.lane.put(item{flush: true, last: !t.open})
	}
}

// lanesOf lists the lanes of a notice's watches: one, or two if the watches of the name
// and those of the type belong to different authorities.
func (e *Engine) lanesOf(n *machine.Notice) []*lane {
	var ls []*lane
	if len(n.To) > 0 {
		ls = append(ls, e.laneOf(n.To[0].Lane))
	}
	if len(n.All) > 0 && (len(n.To) == 0 || n.All[0].Lane != n.To[0].Lane) {
		ls = append(ls, e.laneOf(n.All[0].Lane))
	}
	return ls
}

// consumed ends the delivery of a response: the lanes that it touched flush their batches,
// and when all have, the stream may be read on.
func (e *Engine) consumed(ref machine.Ref, touched *laneSet) {
	s := e.stream(ref)
	if s == nil {
		return
	}
	s.inResponse = false
	if len(s.lanes.list) == 0 {
		e.again = append(e.again, machine.Delivered{Ref: ref})
		return
	}
	m := &marker{left: len(s.lanes.list), done: func() { e.post(machine.Delivered{Ref: ref}) }}
	for _, t := range s.lanes.list {
		touched.remove(t.lane)
		t.lane.put(item{flush: true, last: true, marker: m})
	}
	s.lanes = laneSet{}
}

// laneSet is a few lanes.
type laneSet struct{ list []touch }

type touch struct {
	lane *lane
	open bool // a response that it is of is not over
}

func (ls *laneSet) add(l *lane, open bool) {
	for i := range ls.list {
		if ls.list[i].lane == l {
			ls.list[i].open = ls.list[i].open || open
			return
		}
	}
	ls.list = append(ls.list, touch{l, open})
}

func (ls *laneSet) remove(l *lane) {
	for i := range ls.list {
		if ls.list[i].lane == l {
			ls.list = append(ls.list[:i], ls.list[i+1:]...)
			return
		}
	}
}

// trace logs what happens on a stream and tells the program's trace.
func (e *Engine) trace(n *machine.Notice) {
	e.logStream(n)
	l := e.home[n.Server]
	if e.config.Trace == nil || l == nil {
		return
	}
	l.put(item{trace: n})
}

func (e *Engine) log(l machine.Log) {
	level := slog.LevelInfo
	if l.Warn {
		level = slog.LevelWarn
	}
	attrs := []any{"server", e.config.Servers[l.Server].URI, "type", l.TypeURL}
	if l.Name != "" {
		attrs = append(attrs, "name", l.Name)
	}
	e.config.Logger.Log(e.ctx, level, l.Text, attrs...)
}

func (e *Engine) logStream(n *machine.Notice) {
	log, uri := e.config.Logger, e.config.Servers[n.Server].URI
	switch n.Kind {
	case machine.NoticeStreamUp:
		log.Info("stream is up", "server", uri)
	case machine.NoticeStreamDown:
		if n.Fault != nil {
			log.Info("stream ended", "server", uri, "error", n.Fault.Err)
		} else {
			log.Info("stream closed, nothing is watched on it", "server", uri)
		}
	case machine.NoticeNack:
		key := uri + " " + n.TypeURL
		if e.lastNack[key] != n.Message {
			e.lastNack[key] = n.Message
			log.Warn("response rejected", "server", uri, "type", n.TypeURL, "version", n.Version, "error", n.Message)
		}
	case machine.NoticeAck:
		delete(e.lastNack, uri+" "+n.TypeURL)
	case machine.NoticeResponse:
		if n.Ignored {
			log.Debug("response of a type that was not asked for", "server", uri, "type", n.TypeURL)
		}
	}
}
