package machine

import (
	"slices"
	"time"
)

// join has the held value decoded for the newest watch, unless it is for the one before already.
func (m *Machine) join(sub *subscription) {
	if n := len(sub.watches); n == 1 || !sub.watches[n-2].CatchingUp() {
		m.redecode(&replay{}, []*subscription{sub})
	}
}

// replayAll tells a collection's watch of everything that is held, then of the rest.
func (m *Machine) replayAll(w *Watch) {
	var held []*subscription
	for _, sub := range w.sub.of.inOrder() {
		if sub.held() {
			held = append(held, sub)
		}
	}
	for r := (&replay{to: w}); len(held) > 0; w.toDecode++ {
		n := sameServer(held[:min(chunk, len(held))])
		m.redecode(r, held[:n])
		held = held[n:]
	}
	m.replayedPart(w)
}

// sameServer counts how many subscriptions at the front are of one server, which a decoder is told.
func sameServer(subs []*subscription) int {
	if i := slices.IndexFunc(subs, func(sub *subscription) bool { return sub.server() != subs[0].server() }); i >= 0 {
		return i
	}
	return len(subs)
}

func (m *Machine) redecode(r *replay, subs []*subscription) {
	t := &Task{Server: subs[0].server(), Type: subs[0].of.cache.typ, owner: r, Items: make([]Item, len(subs))}
	for i, sub := range subs {
		t.Items[i] = Item{Raw: sub.raw, Held: true, Locator: sub.locator, sub: sub, gen: sub.gen}
	}
	r.tasks = append(r.tasks, t)
	m.fx.Decode = append(m.fx.Decode, t)
}

// decoded hands over what was decoded again, as soon as what comes before it was.
func (r *replay) decoded(m *Machine, _ time.Time) {
	for t := nextDecoded(&r.tasks); t != nil; t = nextDecoded(&r.tasks) {
		m.retell(r, t)
	}
}

// retell tells a part of what is held. A value that changed meanwhile was told already.
func (m *Machine) retell(r *replay, t *Task) {
	for i := range t.Items {
		it, res := &t.Items[i], t.results[i]
		sub := it.sub
		if sub.gen != it.gen || sub.gone {
			continue
		}
		if r.to == nil {
			joining := sub.joining()
			sub.arrived()
			m.tellHeld(sub, res, joining, nil)
		} else if r.to.alive {
			m.tellHeld(sub, res, nil, []*Watch{r.to})
		}
	}
	if r.to == nil {
		return
	}
	m.replayedPart(r.to)
}

// replayedPart notes that a collection's watch waits for less, and tells it the rest if that was all.
func (m *Machine) replayedPart(w *Watch) {
	if w.toDecode--; w.toDecode == 0 && w.alive {
		m.replayEnd(w)
	}
}

// tellHeld tells a held value, and what is wrong with it.
func (m *Machine) tellHeld(sub *subscription, res Result, to, all []*Watch) {
	if res.Err != nil {
		// It was accepted once; the decoder has changed its mind since.
		m.noticeTo(sub, NoticeFailed, to, all).Fault = &Fault{Kind: FaultRejected, Err: res.Err}
		return
	}
	n := m.noticeTo(sub, NoticeUpdated, to, all)
	n.Value, n.Raw, n.Attributes = res.Value, sub.raw, sub.attributes()
	// WATCH-3: what is wrong with the value is told first.
	if sub.fault() != nil {
		m.report(sub, to, all)
	}
	if f := sub.link().trouble(); f != nil && len(to) > 0 {
		m.tellFaultTo(sub, f, to)
	}
}

// replayEnd tells a collection's watch what else is known, that this is all, and what is wrong.
func (m *Machine) replayEnd(w *Watch) {
	c, to := w.sub.of, []*Watch{w}
	for _, sub := range c.inOrder() {
		if !sub.held() && sub.exists() {
			m.report(sub, nil, to)
		}
	}
	if !c.self.complete && !c.self.stale() {
		m.tellLate(c.self, to)
		return
	}
	m.noticeTo(c.self, NoticeSynced, to, nil)
	if c.self.fault() != nil {
		m.report(c.self, to, nil)
	}
	if f := c.self.link().trouble(); f != nil { // last: what comes before would sound as if all were well
		m.tellFaultTo(c.self, f, to)
	}
}
