package machine

// noticeTo begins a notice to watches of the name (to), and to watches of collections that have it (all). The watches of a
// collection itself are given as to, and become all. It notes that the newest notice to the watches is not one of trouble with
// the server; [Machine.tellFault] then notes that it is.
func (m *Machine) noticeTo(sub *subscription, kind NoticeKind, to, all []*Watch) *Notice {
	for _, w := range to {
		w.troubled = false
	}
	if sub.isCollection() {
		to, all = nil, to
	}
	if len(to) == 0 && len(all) == 0 {
		m.discarded = Notice{}
		return &m.discarded
	}
	m.fx.Notify = append(m.fx.Notify, Notice{
		News:    News{Kind: kind, Server: sub.server(), Name: sub.name, Version: sub.version, Stale: sub.stale()},
		TypeURL: sub.of.cache.typ.URL, Authority: sub.authority(), Stream: sub.stream().ref, To: to, All: all,
	})
	return &m.fx.Notify[len(m.fx.Notify)-1]
}

// tellOf begins a notice of what happened on a stream.
func (m *Machine) tellOf(stream Ref, kind NoticeKind, typeURL string) *Notice {
	m.fx.Notify = append(m.fx.Notify, Notice{News: News{Kind: kind, Server: m.streams[stream.Stream].server}, TypeURL: typeURL, Stream: stream})
	return &m.fx.Notify[len(m.fx.Notify)-1]
}

// informed are the watches of collections that were told that the resource exists: all of the audience, or none.
func (sub *subscription) informed() []*Watch {
	// P-11: collections hear of an absence only if they held it, or were told why they could not.
	if sub.exists() {
		return sub.audience()
	}
	return nil
}

// inTrouble returns the watches that were told of trouble with the server last.
func (sub *subscription) inTrouble() []*Watch {
	return except(sub.watches(), func(w *Watch) bool { return !w.troubled })
}

// outOfTrouble returns the watches that were told something else last, or nothing yet.
func (sub *subscription) outOfTrouble() []*Watch {
	return except(sub.watches(), func(w *Watch) bool { return w.troubled })
}

// metSilence says that the status is what the client concluded from the server's silence.
func (sub *subscription) metSilence() bool {
	return sub.status == StatusTimeout || sub.status == StatusDoesNotExist && sub.reason == ReasonTimeout
}

// report tells what is known of a subscription beside its value, but for trouble with the server: with something usable what
// is wrong with it, or that nothing is wrong any more; else why there is nothing.
func (m *Machine) report(sub *subscription, to, all []*Watch) {
	var n *Notice
	switch {
	// ERR-2: with something usable the error is ambient.
	case sub.usable():
		m.noticeTo(sub, NoticeAmbient, to, all).Fault = sub.fault()
		return
	case sub.status == StatusDoesNotExist:
		n = m.noticeTo(sub, NoticeDoesNotExist, to, all)
		n.Reason = sub.reason
	case sub.fault() != nil:
		n = m.noticeTo(sub, NoticeFailed, to, all)
		n.Fault = sub.fault()
	default:
		return // nothing is known
	}
	if sub.metSilence() {
		n.Instead = sub.link().instead
	}
}

// tellFault tells watches of trouble with the server: as an ambient error if something usable is held (gRFC A88), else as the
// error that there is nothing. Watches of a collection are told once, and not for each resource.
func (m *Machine) tellFault(sub *subscription, f *Fault, to []*Watch) {
	kind := NoticeFailed
	switch {
	case len(to) == 0:
		return
	// ERR-2: with something usable the error is ambient.
	case sub.usable():
		kind = NoticeAmbient
	case sub.loading():
		return // the store may have something usable
	}
	n := m.noticeTo(sub, kind, to, nil)
	// The trouble is with the active server, whichever server said what is held.
	n.Server, n.Fault = sub.stream().server, sub.of.source.withHigher(f)
	for _, w := range to {
		w.troubled = true
	}
	sub.stream().troubled = true // so that its end is told, also if only these watches were told of it
}

// tellTroubleOf tells watches of the trouble with the server, or with the type, that other watches were told of, if any.
func (m *Machine) tellTroubleOf(sub *subscription, to []*Watch) {
	if f := sub.link().toldTrouble(); f != nil {
		m.tellFault(sub, f, to)
	}
}

// tellLate tells a watch that begins what is known beside what is held: what is wrong with it, or why there is nothing.
func (m *Machine) tellLate(w *Watch) {
	sub, to := w.sub, w.list()
	usable := sub.usable()
	// The silence is newer than the trouble if the other watches were told of the silence last.
	newest := !usable && sub.metSilence() && len(sub.watches()) > 1 && len(sub.inTrouble()) == 0
	// WATCH-3: a late watch is told the status, then the trouble.
	if !usable || sub.fault() != nil {
		m.report(sub, to, nil)
	}
	if !newest {
		m.tellTroubleOf(sub, to)
	}
}

// How much a line of the log matters.
const (
	information = false
	warning     = true
)

func (m *Machine) log(sub *subscription, warn bool, text string) {
	m.fx.Log = append(m.fx.Log, Log{
		Warn: warn, Server: sub.stream().server, TypeURL: sub.of.cache.typ.URL, Name: sub.name, Text: text,
	})
}

// warnStar tells the operator why an explicit wildcard does not work.
func (m *Machine) warnStar(l *link) {
	// S-31: the log says it.
	m.logType(l, warning, "the server seems to take the wildcard's name * for that of a resource; ask for everything without naming it")
}

func (m *Machine) logType(l *link, warn bool, text string) {
	m.fx.Log = append(m.fx.Log, Log{Warn: warn, Server: l.stream.server, TypeURL: l.cache.typ.URL, Text: text})
}

func (m *Machine) logServer(s *stream, warn bool, text string, attrs ...any) {
	m.fx.Log = append(m.fx.Log, Log{Warn: warn, Server: s.server, TypeURL: s.typ.url(), Text: text, Attrs: attrs})
}
