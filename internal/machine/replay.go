package machine

import "slices"

// replay is values being decoded again for watches that came after them: the machine keeps
// bytes only.
type replay struct {
	to *Watch // of a collection; nil for those that join an entry

	// What is held is told in order, whichever part of it is decoded first.
	waits   bool // for the part before it
	then    *replay
	decoded *Decoded
}

// join has the held value decoded for a watch, unless it is for others already.
func (m *Machine) join(e *entry) {
	if len(e.joining()) == 1 {
		m.redecode(&replay{}, []*entry{e})
	}
}

// replayAll tells a collection's watch of everything that is held, then of the rest.
func (m *Machine) replayAll(w *Watch) {
	var held []*entry
	for _, e := range w.entry.of.inOrder() {
		if e.held() {
			held = append(held, e)
		}
	}
	last := &replay{}
	for len(held) > 0 {
		n := sameServer(held[:min(chunk, len(held))])
		last.then = &replay{to: w, waits: w.owed > 0}
		last = last.then
		w.owed++
		m.redecode(last, held[:n])
		held = held[n:]
	}
	if w.owed == 0 {
		m.replayEnd(w)
	}
}

// sameServer counts how many entries at the front are of one server, which a decoder is told.
func sameServer(es []*entry) int {
	if i := slices.IndexFunc(es, func(e *entry) bool { return e.server() != es[0].server() }); i >= 0 {
		return i
	}
	return len(es)
}

func (m *Machine) redecode(r *replay, es []*entry) {
	t := &Task{Server: es[0].server(), Type: es[0].of.ts.typ, replay: r, Items: make([]Item, len(es))}
	for i, e := range es {
		t.Items[i] = Item{Raw: e.raw, Held: true, Locator: e.locator, entry: e, gen: e.gen}
	}
	m.fx.Decode = append(m.fx.Decode, t)
}

// replayed hands over what was decoded again, as soon as what comes before it was.
func (m *Machine) replayed(ev Decoded) {
	r := ev.Task.replay
	for r.decoded = &ev; r != nil && r.decoded != nil && !r.waits; r = r.then {
		m.retell(r, *r.decoded)
		if r.then != nil {
			r.then.waits = false
		}
	}
}

// retell tells a part of what is held. A value that changed meanwhile was told already.
func (m *Machine) retell(r *replay, ev Decoded) {
	for i := range ev.Task.Items {
		it, res := &ev.Task.Items[i], ev.Results[i]
		e := it.entry
		if e.gen != it.gen || !e.live() {
			continue
		}
		if r.to == nil {
			joining := e.joining()
			e.arrived()
			m.tellHeld(e, res, joining, nil)
		} else if r.to.alive {
			m.tellHeld(e, res, nil, []*Watch{r.to})
		}
	}
	if r.to == nil {
		return
	}
	r.to.owed--
	if r.to.owed == 0 && r.to.alive {
		m.replayEnd(r.to)
	}
}

// tellHeld tells a held value, and what is wrong with it.
func (m *Machine) tellHeld(e *entry, res Result, to, all []*Watch) {
	if res.Err != nil {
		// It was accepted once; the decoder has changed its mind since.
		m.noticeTo(e, NoticeFailed, to, all).Fault = &Fault{Kind: FaultRejected, Err: res.Err}
		return
	}
	n := m.noticeTo(e, NoticeUpdated, to, all)
	n.Value, n.Raw, n.Attributes = res.Value, e.raw, e.attributes()
	f := e.fault
	if sf := e.of.ts.trouble(); sf != nil && len(to) > 0 {
		f, e.ambient = sf, ambientServer
	}
	if f != nil {
		m.noticeTo(e, NoticeAmbient, to, all).blame(e, f)
	}
}

// replayEnd tells a collection's watch what else is known, that this is all, and what is wrong.
func (m *Machine) replayEnd(w *Watch) {
	c, to := w.entry.of, []*Watch{w}
	for _, e := range c.inOrder() {
		if !e.held() && e.known() {
			m.noticeTo(e, NoticeFailed, nil, to).Fault = e.fault
		}
	}
	switch {
	case c.synced:
		m.tellCollectionTo(c, Notice{Kind: NoticeSynced}, to)
	case c.absence != nil:
		m.tellCollectionTo(c, *c.absence, to)
	}
	if f := c.trouble(); f != nil { // last: what comes before would sound as if all were well
		c.ambient = c.ambient || c.synced && c.ts.trouble() != nil
		c.orphan = c.orphan || !c.synced
		m.tellCollectionTo(c, c.faultNotice(f), to)
	}
}
