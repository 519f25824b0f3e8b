package engine

import (
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

// say logs one line, if there is room for it.
func (e *Engine) say(level slog.Level, text, server, typeURL string, attrs ...any) {
	e.sayTo(e.config.Logger, level, text, server, typeURL, attrs...)
}

func (e *Engine) sayTo(logger *slog.Logger, level slog.Level, text, server, typeURL string, attrs ...any) {
	if !logger.Enabled(e.ctx, level) {
		return
	}
	key, now := logKey{text, server, typeURL}, time.Now()
	q := e.quotas[key]
	if q == nil {
		q = &quota{left: logBurst, since: now}
		e.quotas[key] = q
	}
	omitted, ok := q.take(now)
	if !ok {
		return
	}
	attrs = about(server, typeURL, attrs)
	if omitted > 0 {
		attrs = append(attrs, "omitted", omitted)
	}
	logger.Log(e.ctx, level, text, attrs...)
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
		e.config.Alarm().Error(text, about(server, typeURL, attrs)...)
	}
}

// complain is Complain on the loop.
func (e *Engine) complain(text, server, typeURL string, attrs ...any) {
	e.sayTo(e.config.Alarm(), slog.LevelError, text, server, typeURL, attrs...)
}

// maxStack is how much of a stack is logged, in bytes.
const maxStack = 8 << 10

// Stack is a stack as it is logged.
func Stack(stack []byte) string { return string(stack[:min(len(stack), maxStack)]) }

// maxLogged is how much of a name or an error is logged, in bytes.
const maxLogged = 1024

func brief(s string) string {
	if len(s) > maxLogged {
		return strings.ToValidUTF8(s[:maxLogged], "") + "..."
	}
	return s
}

func (e *Engine) log(l machine.Log) {
	level := slog.LevelInfo
	if l.Warn {
		level = slog.LevelWarn
	}
	attrs := l.Attrs
	if l.Name != "" {
		attrs = append(attrs, "name", brief(l.Name))
	}
	e.say(level, l.Text, e.server(l.Server).URI, l.TypeURL, attrs...)
}

// logFailure says what is wrong with a server, unless that is what was said last.
func (e *Engine) logFailure(w machine.Wait) {
	uri, text := e.server(w.Server).URI, w.Fault.Err.Error()
	if machine.SameText(e.lastFault[uri], text) {
		return
	}
	e.lastFault[uri] = text
	what := "the server cannot be reached"
	switch {
	case errors.As(w.Fault.Err, new(*transport.PollError)):
		what = "a poll of the server failed"
	case w.Fault.Kind == machine.FaultStream:
		what = "the stream ends without a response that can be used"
	}
	e.say(slog.LevelWarn, what, uri, "", "error", brief(text))
}

// nackKey is a key of Engine.lastNack.
type nackKey struct{ uri, typeURL string }

func (e *Engine) logStream(n *machine.Notice) {
	uri := e.server(n.Server).URI
	switch n.Kind {
	case machine.NoticeStreamUp:
		e.say(slog.LevelInfo, "stream is up", uri, n.TypeURL)
	case machine.NoticeStreamDown:
		if n.Fault != nil {
			e.say(slog.LevelInfo, "stream ended", uri, n.TypeURL, "error", brief(n.Fault.Err.Error()))
		} else {
			e.say(slog.LevelInfo, "stream closed by the client", uri, n.TypeURL)
		}
	case machine.NoticeNack:
		key := nackKey{uri, n.TypeURL}
		if e.lastNack[key] != n.Message {
			e.lastNack[key] = n.Message
			e.say(slog.LevelWarn, "response rejected", uri, n.TypeURL, "version", brief(n.Version), "error", brief(n.Message))
		}
	case machine.NoticeAck:
		delete(e.lastNack, nackKey{uri, n.TypeURL})
	case machine.NoticeResponse:
		delete(e.lastFault, uri) // it was reached; that a stream stands says nothing of polls
		if n.Ignored {           // the type is the server's choice
			e.say(slog.LevelDebug, "response of a type that was not asked for", uri, "", "type", brief(n.TypeURL))
		}
	}
}
