package machine

import "slices"

// replay is values being decoded again for watches that came after them: the machine keeps
// bytes only.
type replay struct {
	ts *typeState
	to *Watch // of the wildcard; nil for those that join an entry
}

// join lets a watch wait for the held value of its resource.
func (m *Machine) join(e *entry, w *Watch) {
	first := !e.joins
	e.setJoining(append(e.joining(), w))
	if !first {
		return // they wait already
	}
	m.redecode(&replay{ts: e.ts}, []*entry{e})
}

// replayAll tells a wildcard's watch of everything that is held, then of the rest.
func (m *Machine) replayAll(ts *typeState, w *Watch) {
	var held []*entry
	for _, e := range ts.inOrder() {
		if e.held() {
			held = append(held, e)
		}
	}
	for es := range slices.Chunk(held, chunk) {
		w.owed++
		m.redecode(&replay{ts: ts, to: w}, es)
	}
	if w.owed == 0 {
		m.replayEnd(ts, w)
	}
}

func (m *Machine) redecode(r *replay, es []*entry) {
	t := &Task{Server: r.ts.stream.server, Type: r.ts.typ, replay: r, Items: make([]Item, len(es))}
	for i, e := range es {
		t.Items[i] = Item{Raw: e.raw, Held: true, Locator: e.locator, entry: e, gen: e.gen}
	}
	m.fx.Decode = append(m.fx.Decode, t)
}

// replayed hands over what was decoded again. A value that changed meanwhile was told
// already.
func (m *Machine) replayed(ev Decoded) {
	r := ev.Task.replay
	for i := range ev.Task.Items {
		it, res := &ev.Task.Items[i], ev.Results[i]
		e := it.entry
		if e.gen != it.gen || r.ts.entries[e.name] != e {
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
		m.replayEnd(r.ts, r.to)
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
	n.Value, n.Raw = res.Value, e.raw
	f := e.fault
	if sf := e.ts.trouble(); sf != nil && len(to) > 0 {
		f, e.ambient = sf, ambientServer
	}
	if f != nil {
		m.noticeTo(e, NoticeAmbient, to, all).Fault = f
	}
}

// replayEnd tells a wildcard's watch what else is known, and that this is all.
func (m *Machine) replayEnd(ts *typeState, w *Watch) {
	to := []*Watch{w}
	for _, e := range ts.inOrder() {
		if !e.held() && e.known() {
			m.noticeTo(e, NoticeFailed, nil, to).Fault = e.fault
		}
	}
	if f := ts.trouble(); f != nil {
		ts.wildAmbient = ts.synced
		m.tellWildTo(ts, ts.wildFault(f), to)
	}
	switch {
	case ts.synced:
		m.tellWildTo(ts, Notice{Kind: NoticeSynced}, to)
	case ts.absence != nil:
		m.tellWildTo(ts, *ts.absence, to)
	}
}
