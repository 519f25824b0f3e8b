package machine

import "time"

// replayOne has the held value decoded for the newest watch, unless it is for the one before already.
func (m *Machine) replayOne(sub *subscription) {
	if n := len(sub.watches); n == 1 || !sub.watches[n-2].CatchingUp() {
		r := &replay{}
		r.add(sub)
		m.fx.Decode = append(m.fx.Decode, r.tasks...)
	}
}

// replayAll tells a collection's watch of everything that is held, then of the rest.
func (m *Machine) replayAll(w *Watch) {
	r := &replay{to: w}
	for _, sub := range w.sub.of.inOrder() {
		if sub.held() {
			r.add(sub)
		}
	}
	w.toDecode += int32(len(r.tasks))
	m.fx.Decode = append(m.fx.Decode, r.tasks...)
	m.replayedPart(w)
}

// add has a held value decoded again. What a task has is of one server, which a decoder is told.
func (r *replay) add(sub *subscription) {
	if n := len(r.tasks); n == 0 || len(r.tasks[n-1].Items) == chunk || r.tasks[n-1].Server != sub.server() {
		r.tasks = append(r.tasks, &Task{Server: sub.server(), Type: sub.of.cache.typ, owner: r})
	}
	t := r.tasks[len(r.tasks)-1]
	t.Items = append(t.Items, Item{Raw: sub.raw, Held: true, Locator: sub.locator, sub: sub, gen: sub.gen})
}

// decoded hands over what was decoded again, as soon as what comes before it was. A value that changed meanwhile was
// told already.
func (r *replay) decoded(m *Machine, _ time.Time) {
	for t := nextDecoded(&r.tasks); t != nil; t = nextDecoded(&r.tasks) {
		for i := range t.Items {
			if it := &t.Items[i]; it.sub.gen == it.gen && !it.sub.gone {
				m.retell(r, it.sub, t.results[i])
			}
		}
		if r.to != nil {
			m.replayedPart(r.to)
		}
	}
}

// retell tells a held value to a collection's watch, or to those that joined.
func (m *Machine) retell(r *replay, sub *subscription, res Result) {
	if r.to == nil {
		joining := sub.joining()
		sub.arrived()
		m.tellHeld(sub, res, joining, nil)
	} else if r.to.alive {
		m.tellHeld(sub, res, nil, []*Watch{r.to})
	}
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
	m.tellLate(sub, to, all)
}

// replayEnd tells a collection's watch what else is known, that this is all, and what is wrong.
func (m *Machine) replayEnd(w *Watch) {
	c, to := w.sub.of, []*Watch{w}
	for _, sub := range c.inOrder() {
		if !sub.held() && sub.exists() {
			m.report(sub, nil, to)
		}
	}
	if c.usable() {
		m.noticeTo(&c.subscription, NoticeSynced, to, nil)
	}
	m.tellLate(&c.subscription, to, nil) // last: what comes before would sound as if all were well
}
