package engine

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/xdswatch/xdswatch/internal/machine"
	"github.com/xdswatch/xdswatch/transport"
)

// A kind of line about one server and type may be logged a few times in a row, then only
// every so often: what an operator should know does not grow with what a server does. The
// next line says how many were left out.
const (
	logBurst  = 5
	logPeriod = 10 * time.Second
)

// logKey names lines that share a quota. Nothing of it is a server's choice.
type logKey struct{ text, server, typeURL string }

// quota is what may still be logged.
type quota struct {
	left    int
	since   time.Time // when left was last added to
	omitted int
}

// take says whether a line may be logged, and how many were not since the last.
func (q *quota) take(now time.Time) (omitted int, ok bool) {
	if n := int(now.Sub(q.since) / logPeriod); n > 0 {
		q.left = min(q.left+n, logBurst)
		q.since = now
	}
	// H-12: what is logged does not grow with what a server does.
	if q.left == 0 {
		q.omitted++
		return 0, false
	}
	q.left--
	omitted, q.omitted = q.omitted, 0
	return omitted, true
}

// lines are what is logged; owned by the loop.
type lines struct {
	logger    *slog.Logger
	program   *slog.Logger // the logger that the program has; nil if it has none
	quotas    map[logKey]*quota
	lastNack  map[nackKey]string
	lastFault map[string]string // by URI
}

func newLines(program *slog.Logger) *lines {
	return &lines{
		logger: cmp.Or(program, slog.New(slog.DiscardHandler)), program: program,
		quotas: map[logKey]*quota{}, lastNack: map[nackKey]string{}, lastFault: map[string]string{},
	}
}

// alarm is the logger for panics of the program's code. It may be called outside the loop.
func (x *lines) alarm() *slog.Logger {
	return cmp.Or(x.program, slog.Default()) // they leave a trace without a logger too
}

// say logs one line, if there is room for it.
func (x *lines) say(level slog.Level, text, server, typeURL string, attrs ...any) {
	x.sayTo(x.logger, level, text, server, typeURL, attrs...)
}

// complain is [Engine.Complain] on the loop.
func (x *lines) complain(text, server, typeURL string, attrs ...any) {
	x.sayTo(x.alarm(), slog.LevelError, text, server, typeURL, attrs...)
}

func (x *lines) sayTo(logger *slog.Logger, level slog.Level, text, server, typeURL string, attrs ...any) {
	ctx := context.Background()
	if !logger.Enabled(ctx, level) {
		return
	}
	key, now := logKey{text, server, typeURL}, time.Now()
	q := x.quotas[key]
	if q == nil {
		q = &quota{left: logBurst, since: now}
		x.quotas[key] = q
	}
	omitted, ok := q.take(now)
	if !ok {
		return
	}
	attrs = about(server, typeURL, attrs)
	if omitted > 0 {
		attrs = append(attrs, "omitted", omitted)
	}
	logger.Log(ctx, level, text, attrs...)
}

// about puts a server and a type, where there are such, before the attributes of a line.
func about(server, typeURL string, attrs []any) (all []any) {
	if server != "" {
		all = append(all, "server", server)
	}
	if typeURL != "" {
		all = append(all, "type", typeURL)
	}
	return append(all, attrs...)
}

// Say logs what happened elsewhere, within the bounds of other lines, until Close.
func (e *Engine) Say(level slog.Level, text, server string, attrs ...any) {
	e.post(func() { e.say(level, text, server, "", attrs...) })
}

// Complain logs what went wrong in a function of the program's, within the bounds of other
// lines until Close, and where the program has no logger with the default one. server, typeURL
// and cause are empty where it is of none.
func (e *Engine) Complain(text, server, typeURL, cause string, attrs ...any) {
	if cause != "" {
		attrs = append([]any{"error", brief(cause)}, attrs...)
	}
	if !e.post(func() { e.complain(text, server, typeURL, attrs...) }) {
		e.lines.alarm().Error(text, about(server, typeURL, attrs)...)
	}
}

// maxStack is how much of a stack is logged, in bytes.
const maxStack = 8 << 10

// Stack is a stack as it is logged.
func Stack(stack []byte) string { return string(stack[:min(len(stack), maxStack)]) }

// MaxLogged is how much of a text that is not the client's own is logged, in bytes.
const MaxLogged = 1024

// Cut is a text, or what there is room for of it.
func Cut(s string, most int) string {
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "..."
	}
	return s
}

func brief(s string) string { return Cut(s, MaxLogged) }

// log says what the machine has to say of a server.
func (x *lines) log(l machine.Log, uri string) {
	level := slog.LevelInfo
	if l.Warn {
		level = slog.LevelWarn
	}
	attrs := l.Attrs
	if l.Name != "" {
		attrs = append(attrs, "name", brief(l.Name))
	}
	x.say(level, l.Text, uri, l.TypeURL, attrs...)
}

// failure says what is wrong with a server, unless that is what was said last.
func (x *lines) failure(f *machine.Fault, uri string) {
	text := f.Err.Error()
	if machine.SameText(x.lastFault[uri], text) {
		return
	}
	x.lastFault[uri] = text
	what := "the server cannot be reached"
	switch {
	case errors.As(f.Err, new(*transport.PollError)):
		what = "a poll of the server failed"
	case f.Kind == machine.FaultStream:
		what = "the stream ends without a response that can be used"
	}
	x.say(slog.LevelWarn, what, uri, "", "error", brief(text))
}

// nackKey is a key of lines.lastNack.
type nackKey struct{ uri, typeURL string }

// stream says what happens on a stream of a server.
func (x *lines) stream(n *machine.Notice, uri string) {
	switch n.Kind {
	case machine.NoticeStreamUp:
		x.say(slog.LevelInfo, "stream is up", uri, n.TypeURL)
	case machine.NoticeStreamDown:
		if n.Fault != nil {
			x.say(slog.LevelInfo, "stream ended", uri, n.TypeURL, "error", brief(n.Fault.Err.Error()))
		} else {
			x.say(slog.LevelInfo, "stream closed by the client", uri, n.TypeURL)
		}
	case machine.NoticeNack:
		key := nackKey{uri, n.TypeURL}
		if x.lastNack[key] != n.Message {
			x.lastNack[key] = n.Message
			x.say(slog.LevelWarn, "response rejected", uri, n.TypeURL, "version", brief(n.Version), "error", brief(n.Message))
		}
	case machine.NoticeAck:
		delete(x.lastNack, nackKey{uri, n.TypeURL})
	case machine.NoticeResponse:
		delete(x.lastFault, uri) // it was reached; that a stream stands says nothing of polls
		if n.Ignored {           // the type is the server's choice
			x.say(slog.LevelDebug, "response of a type that was not asked for", uri, "", "type", brief(n.TypeURL))
		}
	}
}
