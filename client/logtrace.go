package client

import (
	"context"
	"log/slog"

	"github.com/xdswatch/xdswatch/internal/engine"
)

// LogTrace returns a [Trace] that writes a line at DEBUG for each of its calls: streams, requests,
// responses, ACKs and NACKs, in their order, for Config.Trace. It writes no resource's content.
// Where the logger is not enabled for DEBUG a call costs a few nanoseconds. The logger must not be nil.
func LogTrace(l *slog.Logger) *Trace {
	line := func(what string, s StreamInfo, attrs ...any) {
		l.Debug("xds: "+what, append([]any{"server", s.Server, "stream", s.ID}, attrs...)...)
	}
	return &Trace{
		StreamUp: whenDebug(l, func(s StreamInfo) { line("stream up", s) }),
		StreamDown: func(s StreamInfo, err error) {
			switch {
			case !l.Enabled(context.Background(), slog.LevelDebug):
			case err == nil:
				line("stream closed", s)
			default:
				line("stream down", s, "error", cut(err.Error()))
			}
		},
		Request: whenDebug(l, func(r RequestInfo) {
			attrs := []any{"type", r.Type, "bytes", r.Size}
			if r.Omitted > 0 {
				attrs = append(attrs, "omitted", r.Omitted)
			}
			line("request", r.Stream, attrs...)
		}),
		Response: whenDebug(l, func(r ResponseInfo) {
			line("response", r.Stream, "type", cut(r.Type), "version", cut(r.Version), "nonce", cut(r.Nonce),
				"resources", r.Resources, "bytes", r.Size, "ignored", r.Ignored, "control_plane", cut(r.ControlPlane))
		}),
		ACK: whenDebug(l, func(a AnswerInfo) {
			line("ACK", a.Stream, "type", a.Type, "version", cut(a.Version), "nonce", cut(a.Nonce))
		}),
		NACK: whenDebug(l, func(a AnswerInfo) {
			line("NACK", a.Stream, "type", a.Type, "version", cut(a.Version), "nonce", cut(a.Nonce), "error", cut(a.Err.Error()))
		}),
	}
}

// whenDebug calls f only if its line is wanted.
func whenDebug[T any](l *slog.Logger, f func(T)) func(T) {
	return func(v T) {
		if l.Enabled(context.Background(), slog.LevelDebug) {
			f(v)
		}
	}
}

// cut is what is logged of a text that a server sent.
func cut(s string) string { return engine.Cut(s, engine.MaxLogged) }
