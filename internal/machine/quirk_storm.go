package machine

import "time"

// Some servers send a response again as soon as they have the reply to it: the refused version after a NACK, another empty or
// unchanged response after an ACK. That is thousands of round trips a second. Replies are slowed down until something else
// comes.
const (
	stormNacks  = 3  // S-1
	stormSame   = 10 // S-2
	stormWindow = time.Second
	stormPause  = time.Second / 4
)

// storms are those of a stream's types.
type storms struct {
	noQuirk
	of byType[storm]
}

// storm is a response that a server repeats.
type storm struct {
	last    signature
	count   int // of the same in a row; 0 for one that brought something
	since   time.Time
	heardAt time.Time
	sentAt  time.Time // of the last reply
}

// signature is the same for the repetitions of a response that brings nothing.
type signature struct {
	nacked  bool
	version string
	sum     uint64
}

// limit is how often it may come within the window.
func (g signature) limit() int {
	if g.nacked {
		return stormNacks
	}
	return stormSame
}

// raging says that replies are slowed down, and with them the server. Where no reply is owed (ACK-12), nothing is.
func (st *storm) raging() bool { return st.count >= st.last.limit() }

func (q *storms) forget() { clear(q.of) }

// replying looks for the beginning of a storm.
func (q *storms) replying(m *Machine, now time.Time, resp *response) {
	if !q.of.on(resp.link).heard(now, resp) {
		return
	}
	m.logType(resp.link, warning, "the server repeats one response without end; answers to it are slowed down")
	if !resp.nacked() && resp.takesStarForName() {
		m.warnStar(resp.link)
	}
}

// earliest holds replies back that have nothing else to say: a change of interest may bring
// something new.
func (q *storms) earliest(l *link, what debt) (at time.Time, doubts int) {
	if st := q.of[l]; st != nil && st.raging() && !what.interest {
		at = st.sentAt.Add(stormPause)
	}
	return at, 0
}

func (q *storms) requested(now time.Time, l *link, what debt, _ int) {
	if what.reply {
		q.of.on(l).sentAt = now
	}
}

// heard looks at a response and says whether a storm began with it.
func (st *storm) heard(now time.Time, resp *response) bool {
	if resp.changed && !resp.nacked() {
		*st = storm{sentAt: st.sentAt}
		return false
	}
	it := signature{resp.nacked(), resp.Version, resp.fingerprint()}
	if it != st.last || now.Sub(st.heardAt) > stormWindow || !st.raging() && now.Sub(st.since) > stormWindow {
		st.last, st.count, st.since = it, 0, now
	}
	st.heardAt = now
	st.count++
	return st.count == it.limit()
}

// fingerprint is the same for responses with the same resources in any order, since servers that keep them in a map send
// any. It differs for others: a large state that comes in parts is no storm.
func (resp *response) fingerprint() (sum uint64) {
	for i := range resp.Resources {
		r := &resp.Resources[i]
		sum += hashOf(r.Name) + 31*hashOf(r.Payload)
	}
	sum += resp.removedSum
	for _, name := range resp.Removed {
		sum += 7 * hashOf(name)
	}
	for i := range resp.RemovedNames { // those that are for others too
		sum += 11 * hashOf(resp.RemovedNames[i].Name)
	}
	for i := range resp.Errors {
		sum += 3 * hashOf(resp.Errors[i].Name)
	}
	return sum
}

// takesStarForName says whether a response to an explicit wildcard, that comes over and over, holds
// nothing but what was subscribed to by name.
func (resp *response) takesStarForName() bool {
	// P-3: only an explicit wildcard can be taken for a name.
	if resp.link.form != wildExplicit {
		return false
	}
	for sub := range resp.link.owned() {
		if sub.seen == resp.serial && !sub.wanted() {
			return false
		}
	}
	return true
}
