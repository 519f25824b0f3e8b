package machine

import (
	"iter"
	"slices"
)

// maxNotified is how many troubles of a server are remembered as told.
const maxNotified = 4

// tellTrouble notifies of new trouble with the server, or of its end. When the stream has ended again with trouble that was
// told before, only watches that were told something else since are told again. While handlers still have the last such
// notice nothing is told, so that no queue grows before a slow handler.
func (m *Machine) tellTrouble(s *stream) {
	// WATCH-4: watches that were told of this trouble last are not told again.
	again := slices.ContainsFunc(s.notified, s.fault.same)
	if s.telling || s.fault == nil && !s.troubled || again && s.state == up {
		return
	}
	from := len(m.fx.Notify)
	if s.troubled = s.fault != nil; s.troubled && !again {
		s.notified = append(s.notified[max(0, len(s.notified)+1-maxNotified):], s.fault)
	}
	to := (*subscription).watches
	if again {
		to = (*subscription).outOfTrouble
	}
	for _, l := range s.links {
		// S-3: the end of the server's trouble does not end the fault of a type that is held back.
		if s.fault != nil || l.fault == nil {
			m.tellEveryone(l.owned(), s.fault, to)
		}
	}
	for i := range m.fx.Notify[from:] {
		m.fx.Notify[from+i].Trouble = true
	}
	s.telling = len(m.fx.Notify) > from
}

// recovered ends the trouble of a server that has responded. Trouble after that is new, also where watches were not yet told
// of the end of the old one.
func (m *Machine) recovered(s *stream) {
	s.fault, s.notified = nil, nil
	m.tellTrouble(s)
}

// remindOfTrouble tells watches that were just told of a value or a first state once more of the newest trouble that was
// told, if it is not over. Trouble that no watch was told of yet is told to all together.
func (m *Machine) remindOfTrouble(sub *subscription) {
	s := sub.stream()
	if n := len(s.notified); n > 0 && s.unreachable() {
		m.tellFault(sub, s.notified[n-1], sub.watches())
	}
}

// tellEveryone tells watches of some subscriptions of trouble with the server. With nil it tells those that were told of
// trouble last that the trouble is over. Resources come first, then collections, each sorted by name.
func (m *Machine) tellEveryone(of iter.Seq[*subscription], f *Fault, to func(*subscription) []*Watch) {
	if f == nil {
		to = (*subscription).inTrouble
	}
	var names, collections []*subscription
	for sub := range of {
		switch {
		case len(to(sub)) == 0: // members that nobody watches by name among others
		case sub.isCollection():
			collections = append(collections, sub)
		default:
			names = append(names, sub)
		}
	}
	for _, subs := range [][]*subscription{names, collections} {
		slices.SortFunc(subs, byName)
		for _, sub := range subs {
			if f != nil {
				m.tellFault(sub, f, to(sub))
			} else if sub.usable() || sub.staysAbsent() { // ERR-10: the server is well again
				m.report(sub, to(sub), nil)
			}
		}
	}
}

// staysAbsent says that the server has stated an absence and may not state it again, so that its watches have to be told
// once more when trouble ends.
func (sub *subscription) staysAbsent() bool {
	switch {
	case sub.status != StatusDoesNotExist || sub.reason == ReasonTimeout:
		return false
	// The server believes that the client holds the resource still, and may never send it again.
	case sub.reason == ReasonTTL:
		return true
	default: // a watch that waits for ever is told nothing by silence, though a timer may run for others
		return !sub.stream().hasTimers() || slices.ContainsFunc(sub.watches(), func(w *Watch) bool { return w.Patient })
	}
}

// trouble is why the type is not served; nil if nothing is known to be wrong.
func (l *link) trouble() *Fault {
	if l.fault != nil {
		return l.fault
	}
	if l.stream.unreachable() {
		return l.stream.fault
	}
	return nil
}

// toldTrouble is the trouble that a watch is told of when it begins: the newest; but while the newest waits for handlers, and
// is told to all watches together later, it is the one that the others were told of last.
func (l *link) toldTrouble() *Fault {
	f, s := l.trouble(), l.stream
	// WATCH-4: nobody is told the same twice.
	if n := len(s.notified); n > 0 && f == s.fault && !slices.ContainsFunc(s.notified, f.same) {
		return s.notified[n-1]
	}
	return f
}

// withHigher is trouble with the active server, with that of the servers of higher priority: the
// program hears of all (U-7). It is made once, though many hear of it.
func (src *source) withHigher(f *Fault) *Fault {
	if f == nil || f != src.stream().fault && !slices.Contains(src.stream().notified, f) {
		return f
	}
	var all []ServerFault
	for _, s := range src.streams[:src.active] {
		if s.fault != nil {
			all = append(all, ServerFault{s.server, s.fault})
		}
	}
	if len(all) == 0 {
		return f
	}
	all = append(all, ServerFault{src.stream().server, f})
	if src.all == nil || !slices.Equal(src.all.Servers, all) {
		own := *f
		own.Servers, src.all = all, &own
	}
	return src.all
}
