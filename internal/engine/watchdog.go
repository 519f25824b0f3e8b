package engine

import (
	"log/slog"
	"slices"
	"time"

	"github.com/xdswatch/xdswatch/internal/machine"
)

// Blocked is a handler, or a hook of the program, that others wait for.
type Blocked struct {
	Type, Name string // what the handler was told of; empty of a hook
	For        time.Duration
	Waiting    int // notices behind it, in its lane
}

// hooked stands in lane.telling while a hook is called, which is of no watch.
var hooked = &machine.Watch{Type: &machine.Type{}}

// sight is where a lane was when it was looked at.
type sight struct {
	at     *machine.Watch
	begun  uint64
	since  time.Time // when it was elsewhere the last time
	looked time.Time
	told   bool // the operator was
}

// looks is how often lanes with dispatchers are looked at, at the least, within the time after which a handler is
// reported. That is all that the watchdog costs.
const looks = 5

// watchdog looks at the lanes that have dispatchers: it reports a handler that does not return, and ends a dispatcher that
// has nothing to do. It is owned by the loop.
type watchdog struct {
	*lines
	timeout  time.Duration // after which a handler is reported; 0 for never
	observed []*lane       // that have dispatchers
	at       time.Time     // when they are looked at next; zero if there are none
}

// put gives a lane something to do, and has it looked at while it has a dispatcher.
func (d *watchdog) put(l *lane, it item) {
	if !l.put(it) {
		return
	}
	now := time.Now()
	if l.seen.told {
		d.reportEnd(l.seen)
	}
	l.seen = sight{begun: l.seen.begun, since: now, looked: now}
	if l.observed {
		return
	}
	l.observed = true
	d.observed = append(d.observed, l)
	if d.at.IsZero() {
		d.at = now.Add(d.every())
	}
}

// every is how long lanes are not looked at.
func (d *watchdog) every() time.Duration {
	if d.timeout <= 0 {
		return idleTime
	}
	return min(d.timeout/looks, idleTime)
}

// look looks at the lanes that have dispatchers, when it is time.
func (d *watchdog) look(now time.Time) {
	if d.at.IsZero() || now.Before(d.at) {
		return
	}
	d.observed = slices.DeleteFunc(d.observed, func(l *lane) bool { return !d.observe(now, l) })
	if d.at = (time.Time{}); len(d.observed) > 0 {
		d.at = now.Add(d.every())
	}
}

// observe says whether the dispatcher of a lane stays: it does not if it rests and had nothing to tell since the lane was
// looked at before.
func (d *watchdog) observe(now time.Time, l *lane) bool {
	at, begun, waiting, rests := l.position()
	s := &l.seen
	idle := rests && begun == s.begun
	if rests || at != s.at || begun != s.begun {
		if s.told {
			d.reportEnd(*s)
		}
		*s = sight{at: at, begun: begun, since: s.looked}
	}
	s.looked, l.observed = now, !idle
	// U-3: a handler that blocks is reported.
	if long := now.Sub(s.since); !rests && at != nil && !s.told && d.timeout > 0 && long >= d.timeout {
		s.told = true
		d.report(slog.LevelWarn, " does not return; what comes after it waits", at, "for", long.Round(time.Millisecond), "waiting", waiting)
	}
	if idle {
		l.leave()
	}
	return l.observed
}

func (d *watchdog) reportEnd(s sight) {
	d.report(slog.LevelInfo, " that took long has returned", s.at, "after", s.looked.Sub(s.since).Round(time.Millisecond))
}

func (d *watchdog) report(level slog.Level, text string, at *machine.Watch, attrs ...any) {
	if at == hooked {
		d.say(level, "a guard, or a function of Trace or Metrics,"+text, "", "", attrs...)
		return
	}
	d.say(level, "a handler"+text, "", at.Type.URL, append([]any{"name", brief(at.Name)}, attrs...)...)
}

// position is what a lane is at.
func (l *lane) position() (at *machine.Watch, begun uint64, waiting int, rests bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	begun = l.begun.Load()
	return l.telling.Load(), begun, int(l.queued - begun), l.rests && len(l.queue) == 0
}

// blocked lists the handlers and hooks that have run for a look of the watchdog or longer.
func (d *watchdog) blocked(now time.Time) (bs []Blocked) {
	if d.timeout <= 0 {
		return nil // nobody wants to hear of them
	}
	for _, l := range d.observed {
		at, begun, waiting, rests := l.position()
		if rests || at == nil || at != l.seen.at || begun != l.seen.begun {
			continue
		}
		bs = append(bs, Blocked{Type: at.Type.URL, Name: at.Name, For: now.Sub(l.seen.since), Waiting: waiting})
	}
	return bs
}
