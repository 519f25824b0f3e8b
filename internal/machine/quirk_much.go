package machine

import "time"

// Some servers end the stream with RESOURCE_EXHAUSTED since too much is asked of them. The waits
// grow then although the stream had worked, or the client would ask for the same at once, for ever.
type tooMuch struct{ noQuirk }

// muchLife is how long such a stream has to live to count as served.
const muchLife = 15 * time.Second

func (*tooMuch) ended(m *Machine, now time.Time, end *ending) {
	s, w := end.stream, &end.wait
	if end.Code != codeResourceExhausted {
		return
	}
	if s.responded {
		m.logServer(s, warning, "the server ends the stream since too much is asked of it; the waits before the next grow", "error", end.Err.Error())
	}
	w.Served = s.responded && (!w.Short || s.clock.at(now)-s.opened >= muchLife)
	if w.Short = false; w.Health == HealthGood {
		w.Health = HealthSame
	}
}
