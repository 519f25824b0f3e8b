package client

import (
	"slices"

	"github.com/xdswatch/xdswatch/internal/follow"
	"github.com/xdswatch/xdswatch/internal/machine"
)

// part is a name of a set, or the collection that a watch is of. What it is told comes in batches.
type part struct {
	*subscription
	to   *batcher // of its lane
	name string   // as the program wrote it
	next *part    // of a set: another spelling of the name
}

// Tell implements engine.Sink.
func (p *part) Tell(n *machine.Notice) bool {
	if !p.Alive() {
		return false
	}
	if taken, wantsFlush := p.tell(n, p.to.view, p); taken {
		return wantsFlush
	}
	return p.hear(p.to.client.event(n))
}

// Alive implements engine.Sink and [follow.Sink].
func (p *part) Alive() bool { return !p.answer.over() && p.to.alive() }

// Hear implements [follow.Sink].
func (p *part) Hear(t *follow.Told) bool { return p.hear(p.to.client.followed(t)) }

func (p *part) hear(ev Event[any]) bool {
	of := news{answer: &p.answer}
	if _, name := p.asked(); ev.Name == name {
		// U-11: as the program wrote it.
		ev.Asked, of.state = p.name, told(&ev)
	}
	return p.to.add(ev, of)
}

// Flush implements engine.Sink.
func (p *part) Flush(last bool) {
	b := p.to
	b.pending = b.pending && !last
	if len(b.events) > 0 || last && b.open {
		b.handOver(last)
	}
}

// maxBatch is how many events a batch holds at most.
const maxBatch = 512

// batcher collects the events of a lane for the handler of a watch or a set; owned by the lane's dispatcher.
type batcher struct {
	*core
	handler BatchHandler[any]
	form    form
	turn    chan struct{} // held by the dispatcher that calls the handler: those of a set are several

	events  []Event[any]
	news    []news // of each event
	pending bool   // a flush will come
	open    bool   // a batch that was not the last was handed over
}

func newBatcher(w *core, h BatchHandler[any], f form) batcher {
	return batcher{core: w, handler: h, form: f, turn: make(chan struct{}, 1)}
}

// news is whom an event is told to, and what that makes of the answer, as of [told].
type news struct {
	answer *answer
	state  uint32
}

// add says whether a flush is to be asked for.
func (b *batcher) add(ev Event[any], of news) (wantsFlush bool) {
	if n := len(b.events); n == cap(b.events) { // few copies: most events are in batches that are full
		room := min(max(1, 7*n), maxBatch-n)
		b.events, b.news = slices.Grow(b.events, room), slices.Grow(b.news, room)
	}
	b.events, b.news = append(b.events, ev), append(b.news, of)
	if len(b.events) == maxBatch {
		b.handOver(false)
	}
	wantsFlush, b.pending = !b.pending, true
	return wantsFlush
}

// handOver hands a batch to the handler. The answers that the events bring are taken once the handler has had them.
func (b *batcher) handOver(last bool) {
	batch, news := Batch[any]{Events: b.events, Last: last}, b.news
	b.events, b.news, b.open = nil, nil, !last
	b.turn <- struct{}{}
	defer func() { <-b.turn }()
	b.handle(func() { b.deliver(batch, news) })
	for _, n := range news {
		b.client.answers.become(n.answer, n.state)
	}
}

// deliver calls the handler with a batch, without what is of parts that left meanwhile: in a set one of the same name
// may have come since.
func (b *batcher) deliver(batch Batch[any], of []news) {
	n := 0
	for i := range batch.Events {
		if of[i].answer.over() {
			continue
		}
		if n < i {
			batch.Events[n] = batch.Events[i]
		}
		b.client.give(&batch.Events[n], b.form)
		n++
	}
	clear(batch.Events[n:])
	if batch.Events = batch.Events[:n]; n > 0 || batch.Last {
		b.handler(batch)
	}
}
