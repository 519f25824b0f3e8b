package machine

import (
	"slices"
	"time"

	"github.com/xdswatch/xdswatch/internal/wire"
)

// hush is how long a name that was added to those of a stream in state of the world may stay
// unknown, and the server be quiet, until it is requested on a new stream. Servers that were
// written for Envoy may look at the version of a request alone, and wait for the next one
// whatever else is requested: Cilium's does. Envoy, with a stream for each subscription, never
// notices. A first request says no version while anything is lacking, so it is answered.
const hush = 2 * time.Second

// hushes are the names of a stream's types that were added, and of which nothing is known yet.
type hushes struct {
	noQuirk
	of byType[unheard]
}

// unheard are those of one type.
type unheard struct {
	link  *link
	names []*subscription // some maybe known since
	timer                 // from when the first was added, or the server has spoken since
}

func (q *hushes) forget() {
	for _, u := range q.of {
		u.timer = 0
	}
	clear(q.of)
}

// written waits for news of names that were added, where the server might not hear of them.
func (q *hushes) written(m *Machine, now time.Time, l *link, first bool, fresh []*subscription) {
	if first || len(fresh) == 0 || !l.overhears() {
		return
	}
	u := q.of.on(l)
	u.link = l
	if u.names = append(u.names, fresh...); u.timer == 0 {
		u.wait(m, now)
	}
}

// judged: a server that spoke of the type is quiet from now on at the earliest.
func (q *hushes) judged(m *Machine, now time.Time, resp *response, _ *wire.Status) {
	if u := q.of[resp.link]; u != nil {
		u.wait(m, now)
	}
}

// hush is how long a name may stay unknown: not so long that the does-not-exist timer decides.
func (m *Machine) hush(s *stream) time.Duration {
	if timeout := m.timeout(s); timeout > 0 {
		return min(hush, (timeout+1)/2)
	}
	return hush
}

// overhears says whether the server might not hear of names that are added. A stream that carries
// more than one type is not given up for the sake of one, and the legacy wildcard says no
// names; polls ask anew by themselves, and files hold everything.
func (l *link) overhears() bool {
	s := l.stream
	return !s.Delta && !s.stateless() && s.url != "" && l.form != wildLegacy
}

// wait gives the server time from now on for what is still unknown. One that has not answered on the stream
// yet is waited for.
func (u *unheard) wait(m *Machine, now time.Time) {
	u.timer = 0
	u.names = slices.DeleteFunc(u.names, func(sub *subscription) bool { return !u.link.awaits(sub) })
	if u.link.answered != 0 && len(u.names) > 0 {
		m.setAlarm(now, u.link.stream, u, m.hush(u.link.stream))
	}
}

// ring asks on a new stream for what the server has not heard of. A name that nobody watches may come back
// before the server is told, and is waited for anew.
func (u *unheard) ring(m *Machine, now time.Time) {
	if u.wait(m, now); slices.ContainsFunc(u.names, (*subscription).wanted) {
		m.restart(now, u.link.stream) // S-30: the name is requested on a new stream.
	}
}

// awaits says that nothing is known of a subscription that is subscribed to until the server is told of
// what changed.
func (l *link) awaits(sub *subscription) bool {
	return l.has(sub) && sub.subscribed && sub.status == StatusRequested && !sub.isCollection()
}
