package machine

import (
	"cmp"
	"iter"
	"slices"
	"time"
)

// outcome is what an entry of a response means for a subscription, before anything of the response is applied. If it is
// neither refused nor changed, the value is held already.
type outcome struct {
	sub     *subscription
	index   int
	refused bool
	changed bool // value and raw replace what is held, unless refused
	value   any
	raw     []byte
}

// outcomes yields those of a response all of which is decoded.
func (resp *response) outcomes() iter.Seq[outcome] {
	return func(yield func(outcome) bool) {
		for _, t := range resp.tasks {
			for j, r := range t.results {
				it := &t.Items[j]
				for _, sub := range it.subs() {
					if !yield(outcome{sub, it.index, r.Err != nil, !r.sameFor(it, sub), r.Value, it.Raw}) {
						return
					}
				}
			}
		}
		for _, it := range resp.ready {
			if !yield(outcome{sub: it.sub, index: it.index, refused: it.fault != nil}) {
				return
			}
		}
	}
}

// propose asks the guard whether a response may be taken, once all of it is decoded.
func (m *Machine) propose(resp *response) {
	l := resp.link
	p := Proposal{Version: resp.Version, Invalid: resp.invalid, ref: resp.ref, resp: resp}
	will := map[*subscription]bool{}
	for _, it := range resp.statements {
		if it.takesAway(l) {
			will[it.sub] = false
		}
	}
	for o := range resp.outcomes() {
		switch {
		case o.refused:
			p.Invalid++
			will[o.sub] = o.sub.held() && !l.dropsRefused(o.sub)
		case !l.has(o.sub):
		case o.changed:
			p.Changed = append(p.Changed, Change{o.sub.name, !o.sub.held(), o.value, o.raw})
			fallthrough
		default:
			will[o.sub] = true
		}
	}
	m.askGuard(l, p, will)
}

// askGuard has the guard judge a proposal. For each subscription that the proposal changes, will says whether a value is held
// afterwards.
func (m *Machine) askGuard(l *link, p Proposal, will map[*subscription]bool) {
	p.Server, p.TypeURL = l.stream.server, l.cache.typ.URL
	left := func(sub *subscription) bool {
		if holds, said := will[sub]; said {
			return holds
		}
		return sub.stays()
	}
	for sub := range l.owned() {
		if sub.stays() && !left(sub) {
			p.Removed = append(p.Removed, sub.name)
		}
	}
	slices.Sort(p.Removed)
	p.Held = l.countResources((*subscription).stays, (*subscription).heldResourceName)
	p.Left = l.countResources(left, (*subscription).resourceName)
	m.fx.Guard = append(m.fx.Guard, &p)
}

// countResources counts the resources of the subscriptions that which chooses; of is the name of a subscription's resource.
func (l *link) countResources(which func(*subscription) bool, of func(*subscription) string) (n int) {
	var others map[string]bool // resources that are not counted by their own names
	for sub := range l.owned() {
		if !which(sub) {
			continue
		}
		name := of(sub)
		// ALIAS-2: a resource counts once, by however many names it is watched.
		if name != sub.name {
			if own := l.cache.subs.get(name); others[name] || own != nil && l.owns(own) && which(own) {
				continue
			}
			if others == nil {
				others = map[string]bool{}
			}
			others[name] = true
		}
		n++
	}
	return n
}

// guarded does what the guard has judged. A response of a stream that is over is not taken: the next stream brings it again.
func (m *Machine) guarded(now time.Time, ev Guarded) {
	s := m.touch(ev.Proposal.ref)
	switch resp := ev.Proposal.resp; {
	case resp == nil && s != nil && s.state == up:
		m.sweepGuarded(now, s.link(ev.Proposal.TypeURL), ev)
	case resp == nil:
	case !resp.stands():
		resp.dropUntold()
		m.endResponse(resp)
	// CFG-5: the whole response is refused.
	case ev.Err != nil:
		m.refuseAll(now, resp, ev.Proposal.Removed, ev.Err)
	default:
		m.apply(now, resp)
	}
}

// nothingToJudge says that the client has nothing any more of what a response speaks of, and that the response ends nothing
// by leaving it out.
func (resp *response) nothingToJudge() bool {
	whole := resp.tellsAll()
	if resp.mentioned == 0 || slices.ContainsFunc(resp.completes, (*collection).wanted) {
		return false
	}
	for sub := range resp.link.owned() {
		if sub.seen == resp.serial || sub.held() && whole {
			return false
		}
	}
	return true
}

// dropUntold forgets the members that were made for a response of which nothing is taken, and what it says of aliases.
func (resp *response) dropUntold() {
	for _, it := range slices.Backward(resp.aliasesBefore) {
		if resp.link.cache.aliases.remove(it.sub); it.of != nil && !it.sub.gone {
			_ = resp.link.cache.aliases.add(it.sub, []byte(it.of.name)) // there was room for it
		}
	}
	for sub := range resp.link.owned() {
		if !sub.isCollection() && !sub.lives() && !sub.exists() {
			resp.link.cache.drop(sub)
		}
	}
}

// refuseAll NACKs a response of which nothing is taken. Watches of what it would have changed, removed or completed are told
// that the guard refused it; held values stay.
func (m *Machine) refuseAll(now time.Time, resp *response, removed []string, err error) {
	l := resp.link
	resp.text = []byte(cmp.Or(err.Error(), "the response is refused"))
	resp.invalid = len(resp.Resources)
	resp.dropUntold()
	f := &Fault{Kind: FaultRejected, Err: err, At: now, Version: resp.Version}
	spoil := func(sub *subscription) {
		if l.has(sub) && !sub.isCollection() {
			m.noteFault(sub, f, StatusNacked, false)
		}
	}
	for o := range resp.outcomes() {
		if o.refused || o.changed {
			spoil(o.sub)
		}
		if resp.Renewed[o.index] && l.has(o.sub) {
			o.sub.setRenewed(true)
		}
	}
	for _, name := range removed { // U-2: the value is held although the server removed it
		if sub := l.cache.subs.get(name); sub != nil && sub.held() {
			spoil(sub)
		}
	}
	for _, it := range resp.statements {
		// CFG-5: a full state that is refused does not answer for what it leaves out.
		answered := it.sub.wanted() && it.sub.unanswered() && it.kind < statesAbsent
		if answered || it.kind == statesTwice {
			spoil(it.sub)
		}
	}
	for _, c := range resp.completes {
		if l.has(&c.subscription) { // another server may be active by now
			m.noteFault(&c.subscription, f, StatusNacked, false)
		}
	}
	m.finishOnStream(now, resp)
	m.endResponse(resp)
}
