package machine

import (
	"errors"
	"slices"
)

// maxToldOf is how many troubles of a server are remembered as told.
const maxToldOf = 4

// tellTrouble notifies of new trouble with the server, or of its end. It waits while handlers still have the last
// such notice, so that a slow handler meets no growing queue.
func (m *Machine) tellTrouble(s *stream) {
	if s.telling || s.fault == nil && len(s.told) == 0 || slices.ContainsFunc(s.told, s.fault.same) {
		return
	}
	from := len(m.fx.Notify)
	if s.fault == nil {
		s.told = nil
	} else {
		s.told = append(s.told[max(0, len(s.told)+1-maxToldOf):], s.fault)
	}
	for _, l := range s.order {
		m.tellEveryone(l, s.fault, nil)
	}
	for i := range m.fx.Notify[from:] {
		m.fx.Notify[from+i].Trouble = true
	}
	s.telling = len(m.fx.Notify) > from
}

// recovered: a response clears what was told of trouble before it. What comes after it is news, though the
// watches were not told of the end of that yet.
func (m *Machine) recovered(s *stream) {
	if s.fault = nil; len(s.told) > 0 {
		s.told = []*Fault{pastFault}
	}
	m.tellTrouble(s)
}

// remindOfTrouble tells watches that were just told something good of the server's trouble once more, if that is not
// over.
func (m *Machine) remindOfTrouble(sub *subscription) {
	s := sub.stream()
	if n := len(s.told); n > 0 && s.told[n-1] != pastFault && s.unreachable() {
		m.tellFault(sub, s.told[n-1])
	}
}

// tellEveryone tells everyone on a type, or those of one source, of trouble with the server, or with nil
// that it is well.
func (m *Machine) tellEveryone(l *link, f *Fault, only *source) {
	for _, sub := range l.everyone(only) {
		switch {
		case f != nil:
			m.tellFault(sub, f)
		// ERR-10: the server is well again. A resource whose TTL ran out: the first request listed its version, so the
		// server may never send it again.
		case sub.usable() || sub.status == StatusDoesNotExist && sub.reason == ReasonTTL:
			m.report(sub, sub.inTrouble(), nil)
		}
	}
}

// everyone lists the resources that the link owns by name, of one source or for nil of all, then the
// collections.
func (l *link) everyone(only *source) []*subscription {
	subs := slices.DeleteFunc(l.inOrder(only), (*subscription).isCollection)
	for _, c := range l.collections(only) {
		if c.wanted() {
			subs = append(subs, c.self)
		}
	}
	return subs
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

// joined is trouble with the active server, with that of the servers of higher priority: the
// program hears of all (U-7). It is made once, though many hear of it.
func (src *source) joined(f *Fault) *Fault {
	if f == nil || src == nil || src.active == 0 || f != src.stream().fault && !slices.Contains(src.stream().told, f) {
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
	if src.all == nil || !slices.Equal(src.all.All, all) {
		own := *f
		own.All, src.all = all, &own
	}
	return src.all
}

// pastFault is never told: it stands for trouble that watches were told of and that is over, or of another
// server that was active then. When this one speaks they are told that all is well.
var pastFault = &Fault{Kind: FaultConnection, Err: errors.New("a server was in trouble")}
