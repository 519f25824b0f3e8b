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

// looks is how often lanes with work are looked at, within the time after which a handler is
// reported. That is all that the watchdog costs.
const looks = 5

// put gives a lane something to do, and has it looked at while it is busy.
func (e *Engine) put(l *lane, it item) {
	l.put(it)
	if l.observed || e.config.HandlerTimeout <= 0 {
		return
	}
	now := time.Now()
	l.observed, l.seen = true, sight{since: now, looked: now}
	e.observed = append(e.observed, l)
	if e.lookAt.IsZero() {
		e.lookAt = now.Add(e.config.HandlerTimeout / looks)
	}
}

// look looks at the lanes that are busy, when it is time.
func (e *Engine) look(now time.Time) {
	if e.lookAt.IsZero() || now.Before(e.lookAt) {
		return
	}
	e.observed = slices.DeleteFunc(e.observed, func(l *lane) bool { return !e.observe(now, l) })
	if e.lookAt = (time.Time{}); len(e.observed) > 0 {
		e.lookAt = now.Add(e.config.HandlerTimeout / looks)
	}
}

// observe says whether the lane is still busy.
func (e *Engine) observe(now time.Time, l *lane) bool {
	at, begun, waiting, rests := l.position()
	s := &l.seen
	if rests || at != s.at || begun != s.begun {
		if s.told {
			e.reportEnd(*s)
		}
		*s = sight{at: at, begun: begun, since: s.looked}
	}
	s.looked, l.observed = now, !rests
	// U-3: a handler that blocks is reported.
	if long := now.Sub(s.since); !rests && at != nil && !s.told && long >= e.config.HandlerTimeout {
		s.told = true
		e.report(slog.LevelWarn, " does not return; what comes after it waits", at, "for", long.Round(time.Millisecond), "waiting", waiting)
	}
	return l.observed
}

func (e *Engine) reportEnd(s sight) {
	e.report(slog.LevelInfo, " that took long has returned", s.at, "after", s.looked.Sub(s.since).Round(time.Millisecond))
}

func (e *Engine) report(level slog.Level, text string, at *machine.Watch, attrs ...any) {
	if at == hooked {
		e.say(level, "a guard, or a function of Trace or Metrics,"+text, "", "", attrs...)
		return
	}
	e.say(level, "a handler"+text, "", at.Type.URL, append([]any{"name", brief(at.Name)}, attrs...)...)
}

// position is what a lane is at.
func (l *lane) position() (at *machine.Watch, begun uint64, waiting int, rests bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	begun = l.begun.Load()
	return l.telling.Load(), begun, int(l.queued - begun), l.rests && len(l.queue) == 0
}

// Blocked lists the handlers and hooks that have run for a look of the watchdog or longer.
func (e *Engine) Blocked() (bs []Blocked) {
	e.ask(func() { bs = e.blocked(time.Now()) })
	return bs
}

func (e *Engine) blocked(now time.Time) (bs []Blocked) {
	for _, l := range e.observed {
		at, begun, waiting, rests := l.position()
		if rests || at == nil || at != l.seen.at || begun != l.seen.begun {
			continue
		}
		bs = append(bs, Blocked{Type: at.Type.URL, Name: at.Name, For: now.Sub(l.seen.since), Waiting: waiting})
	}
	return bs
}
