package machine

import (
	"time"

	"github.com/xdswatch/xdswatch/internal/wire"
)

// want has requests name a subscription from now on, or not any more. The wildcard is not among the names.
func (l *link) want(sub *subscription, wanted bool) {
	if sub.isStar() {
		l.resume, l.unwantedSince = "", time.Time{}
		return
	}
	by := 1
	if !wanted {
		by = -1
	}
	if l.watched += by; structured(sub.name) {
		l.structured += by
	}
	l.names.Set(sub.onWire(), l.params(sub.of), wanted)
	// SOTW-2: the version was accepted before the name was wanted, or with other collections, so no new stream claims it. Beside
	// a legacy wildcard no request has such a name.
	if wanted && (l.form != wildLegacy || structured(sub.name)) || sub.isCollection() {
		l.resume = ""
	}
}

// flushNames applies the pending changes of the names and returns them. A name that nobody wants is forgotten
// here, since the request being composed unsubscribes it, with the parameters with which it was subscribed to.
func (l *link) flushNames() (added []*subscription, removed []wire.NameChange) {
	// SOTW-4: nothing is watched on the stream any more, which ends after the linger time.
	if l.stream.watches == 0 {
		return nil, nil
	}
	name := make([]byte, 0, 128) // on the stack
	for _, c := range l.names.Flush() {
		name = append(name[:0], c.Name...)
		sub, _, _ := l.cache.identify(name)
		switch {
		// DELTA-7: subscribed to again though it was before.
		case c.Add && sub != nil:
			added = append(added, sub)
		case c.Add:
		case sub != nil && l.owns(sub):
			if c.Had {
				removed = append(removed, c)
			}
			l.leave(sub, name)
			// DNE-4: nobody waits for it any more. The timer of a member that the server has to confirm goes on.
			if !sub.unconfirmed {
				sub.timer = 0
			}
			// SOTW-6: the client forgets it now that a request unsubscribes it.
			l.cache.dropIfUnwanted(sub)
			sub.subscribed = false // not before: giveToStar asks whether it was requested
		case c.Had:
			removed = append(removed, c)
		}
	}
	return added, removed
}

// leave tells quirks that a name is not subscribed to any more of which the server has sent a value.
func (l *link) leave(sub *subscription, name []byte) {
	if sub.exists() && !sub.foreign() && !sub.keptDeleted() {
		for _, q := range l.stream.quirks {
			q.passed(l, name, nil)
		}
	}
}

// subscribe marks subscriptions as named by the message being composed.
func (l *link) subscribe(subs []*subscription) {
	l.message.fresh, l.message.set = append(l.message.fresh, subs...), nil
	for _, sub := range subs {
		if l.owns(sub) {
			sub.subscribed = true
		}
	}
}

// allWanted lists the subscriptions that are wanted by name, in order.
func (l *link) allWanted() []*subscription {
	subs := make([]*subscription, 0, l.watched)
	for name := range l.names.All() {
		if sub, _, _ := l.cache.identify(name); sub != nil {
			subs = append(subs, sub)
		}
	}
	return subs
}

// want has the servers told that a name is wanted, or is not any more: the active one and those before it.
func (c *cache) want(sub *subscription, wanted bool) {
	for _, s := range sub.of.source.reached() {
		s.linkTo(c).want(sub, wanted)
	}
}
