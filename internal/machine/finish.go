package machine

import "time"

// finish applies what a response says beside values; then the answer is owed.
func (m *Machine) finish(now time.Time, resp *response) {
	l, s := resp.link, resp.link.stream
	stands := m.current(resp.ref) == s && s.state == up && s.types[l.cache.typ.URL] == l
	told := len(m.fx.Notify)
	// DELTA-8: removals come after resources.
	for _, it := range resp.statements {
		m.applyStatement(now, resp, it, stands)
	}
	resp.changed = resp.changed || len(m.fx.Notify) > told
	m.endFaults(resp)
	if resp.brokenFile() {
		resp.invalid++
	} else if len(resp.lines) == 0 {
		l.accepted = now
	}
	// ACK-7: a refused version is not taken.
	if len(resp.lines) == 0 && !s.Delta && (stands || s.ResumeVersion && !resp.missed) {
		l.version, l.versionForm, l.versionOf = resp.Version, resp.form, resp.serial
		l.lapsed = l.lapsed && !resp.tellsAll()
	}
	m.finishCollections(now, resp, stands)
	m.endResponse(now, resp)
}

// finishCollections does what a response means for collections and, if that stands still, for the stream that it
// came on.
func (m *Machine) finishCollections(now time.Time, resp *response, stands bool) {
	s := resp.link.stream
	if stands {
		m.recovered(s)
	}
	for _, c := range resp.completes {
		switch f := c.self.fault(); {
		case !resp.link.has(c.self), c.self.complete: // nobody watches it any more, or another server was faster
		case f == nil, f.Kind == FaultTimeout, f.Kind == FaultRejected && c.self.seen != resp.serial:
			m.markComplete(now, c.self, resp.Version)
		}
	}
	if stands {
		m.resumed(resp)
		if l := resp.link; resp.tellsAll() && !resp.nameless {
			l.stated, l.sawAll = resp.serial, l.sawAll || l.form == wildLegacy
		}
		m.answerUntimed(now, resp.link)
		if resp.confirms || resp.serial == resp.link.firstResponse {
			resp.link.sweepTimer = 0 // the server goes on, and has a full period again
		}
		// ACK-1: each response is answered once.
		m.owe(now, resp)
	}
}

// endFaults ends the errors of the wildcard, and of the collections that the response speaks of, unless it speaks of them
// by their own names.
func (m *Machine) endFaults(resp *response) {
	end := func(c *collection) {
		if c.self != nil && c.self.seen != resp.serial && resp.link.has(c.self) {
			m.endCollectionFault(c.self)
		}
	}
	for _, c := range resp.collections {
		end(c)
	}
	end(resp.link.cache.star)
}

// endCollectionFault ends what was wrong with a collection, but for the silence of a server that has not told its first
// state.
func (m *Machine) endCollectionFault(sub *subscription) {
	switch {
	case sub.fault() == nil:
	case sub.complete:
		m.endFault(sub)
	case sub.fault().Kind != FaultTimeout:
		sub.become(StatusRequested, nil)
	}
}

// endResponse ends the work on a response, whatever became of it.
func (m *Machine) endResponse(now time.Time, resp *response) {
	l, s := resp.link, resp.link.stream
	l.busy = nil
	resp.noteRefusal()
	m.fx.Notify = append(m.fx.Notify, Notice{
		Kind: NoticeEnd, Server: s.server, TypeURL: l.cache.typ.URL, Version: resp.Version, Stream: resp.ref,
		Exchange: &Exchange{Valid: resp.valid, Invalid: resp.invalid},
	})
	m.fx.Consumed = append(m.fx.Consumed, resp.ref)
}

// resumed: the first delta response of a stream confirms what it leaves out of the versions that the request listed,
// so refusals and errors of earlier streams are over, whoever stated them.
func (m *Machine) resumed(resp *response) {
	l := resp.link
	// P-4: only a resume confirms what it leaves out.
	if resp.serial != l.firstResponse || !l.stream.Delta {
		return
	}
	var subs []*subscription
	for sub := range l.owned() {
		if sub.fault() != nil && sub.listed() && !sub.unconfirmed && sub.seen != resp.serial {
			subs = append(subs, sub)
		}
	}
	sortSubs(subs)
	for _, sub := range subs {
		m.endFault(sub)
	}
}
