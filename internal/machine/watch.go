package machine

import (
	"slices"
	"time"
)

// watch begins a watch: it joins its subscription and is told what is known. The next request subscribes to its name.
func (m *Machine) watch(now time.Time, w *Watch) {
	src := m.sourceOf(int(w.Source), w.Type)
	c := m.cacheOf(w.Type, src.Scope)
	if src.watches++; src.watches == 1 {
		m.chooseServer(now, src)
	}
	src.shareOf(c)
	m.agenda.touch(src.streams...)
	c.collectionOf(src, w).attach(w)
	if sub := w.sub; sub.timer == 0 && sub.unanswered() {
		m.await(now, sub) // a request has already subscribed to it
	}
	for _, s := range src.reached() {
		m.watchesChanged(now, s, +1)
		if s.link(w.Type.URL).answeredUnwanted(w.sub) {
			m.renewStream(now, s)
		}
	}
	m.loadSoon(now, w.sub)
	m.tellHeld(w)
	// FALLBACK-6: a watch that begins while the active server is in trouble, and that no server has answered for, makes the
	// source fall back at once. For what other watches lack [Machine.down] has decided that already.
	told := src.stream().unreachable() && w.sub.unanswered() && m.fallBackSource(now, src)
	if !told {
		m.tellLate(w)
	}
	if w.FetchTimeout > 0 { // DNE-10
		m.setAlarm(now, w.sub.stream(), (*fetch)(w), w.FetchTimeout)
	}
}

// answeredUnwanted says that requests to a server name a glob whose members it may have sent while nobody watched the glob:
// the client forgot the glob when another server was active, and did not unsubscribe it here. For names [hushes] does the
// same.
func (l *link) answeredUnwanted(sub *subscription) bool {
	// FALLBACK-5, GLOB-2: the server would not send the members again.
	return l != nil && l.firstResponse != 0 && sub.isCollection() && !sub.subscribed && l.named(sub)
}

// attach lets a watch join its subscription.
func (c *collection) attach(w *Watch) {
	sub := &c.subscription
	if !w.Wildcard {
		sub = c.cache.subscriptionOf(c, w.Name)
	}
	w.sub = sub
	sub.spell(w.Spelling)
	first := !sub.wanted()
	// WILD-2, WILD-4: the first watch chooses the form.
	if w.Wildcard && first {
		c.explicit = w.Explicit
	}
	if !w.Wildcard && first && sub.subscribed && sub.stream().Delta {
		sub.askAnew()
	}
	// WATCH-1: the first watch subscribes.
	if first {
		sub.joined = w.list()
		c.cache.want(sub, true)
	} else {
		sub.joined = append(sub.joined, w)
	}
}

// tellHeld tells a watch that begins what is held. A watch of a collection is told each member, and then that the collection
// has its first state.
func (m *Machine) tellHeld(w *Watch) {
	sub := w.sub
	if !w.Wildcard {
		// WATCH-3, WILD-8: what is held is told first, also what only the wildcard held until now.
		if sub.held() {
			m.tellValue(sub, w.list(), nil)
		}
		return
	}
	members := sub.of.inOrder()
	m.fx.Notify = slices.Grow(m.fx.Notify, len(members)+1)
	for _, member := range members {
		if member.held() {
			m.tellValue(member, nil, w.list())
		}
		if member.exists() && member.fault() != nil {
			m.report(member, nil, w.list())
		}
	}
	if sub.usable() {
		m.noticeTo(sub, NoticeSynced, w.list(), nil)
	}
}

// tellValue tells a held value. The caller of the machine decodes its bytes again.
func (m *Machine) tellValue(sub *subscription, to, all []*Watch) {
	n := m.noticeTo(sub, NoticeUpdated, to, all)
	n.Held, n.Raw, n.Locator, n.Attributes = true, sub.raw, sub.locator, sub.attributes()
	n.Whole = sub.rare().whole // WATCH-3: the other watches keep parts of it
}

// askAnew forgets what the server said of a name that has no value: a request is about to subscribe to the name again, and
// the server has to answer. What watches of collections were told stays.
func (sub *subscription) askAnew() {
	// DELTA-7: each subscription is answered.
	if !sub.held() && len(sub.informed()) == 0 {
		sub.become(StatusRequested, nil)
		sub.reason, sub.timer = 0, 0
	}
}

// unwatch ends a watch. A subscription that the server was told of is kept until the request is composed that unsubscribes
// it ([link.flushNames]), so that a watch that begins before that joins it.
func (m *Machine) unwatch(now time.Time, w *Watch) {
	// WATCH-2: the watch has ended already.
	if w.sub == nil {
		return
	}
	sub := w.sub
	w.sub, w.timer = nil, 0
	src := sub.of.source
	m.agenda.touch(src.streams...)
	src.watches--
	// WATCH-1: the last watch unsubscribes.
	if sub.endWatch(); !sub.wanted() {
		sub.of.cache.want(sub, false)
		// ERR-5: nobody watches it any more.
		if sub.keptDeleted() {
			m.log(sub, information, "a resource that the server had deleted is not watched any more")
		}
	}
	for _, s := range src.reached() {
		m.watchesChanged(now, s, -1)
	}
	// SOTW-6: a subscription that the server was told of is kept.
	if !sub.lives() {
		sub.of.cache.dropIfUnwanted(sub)
	}
}
