package client

import (
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"

	"github.com/xdswatch/xdswatch/internal/engine"
)

// ErrHandlerExited is the error of a watch whose handler ended its goroutine by
// [runtime.Goexit], as FailNow of package testing does.
var ErrHandlerExited = errors.New("xds: the handler ended its goroutine (runtime.Goexit, as by FailNow in a test)")

// PanicError is the error of a watch whose handler panicked.
type PanicError struct {
	Value any    // what the handler panicked with
	Stack []byte // of the goroutine, as of runtime/debug.Stack
}

// Error says what the handler panicked with, but not the content of a message or a struct,
// which may be a resource.
func (e *PanicError) Error() string { return "xds: the handler panicked: " + panicText(e.Value) }

// panicText says what code of the program's panicked with. Only texts and numbers are shown:
// anything else may hold a resource.
func panicText(p any) string {
	switch p := p.(type) {
	case error, string, bool, int, int8, int16, int32, int64, uint, uint8, uint16, uint32, uint64, float32, float64:
		return fmt.Sprint(p)
	}
	return fmt.Sprintf("a value of type %T", p)
}

// panicked logs a panic of the program's code, given what was recovered, with the stack. It
// is called by the function that recovers.
func (c *Client) panicked(what, server, typeURL string, p any, attrs ...any) (stack []byte) {
	stack = debug.Stack()
	c.engine.Complain(what, server, typeURL, panicText(p), append(attrs, "stack", engine.Stack(stack))...)
	return stack
}

// left logs that code of the program's, called by [engine.Apart], did not return.
func (c *Client) left(what, andSo string, p any) {
	if p == nil {
		c.engine.Complain(what+" ended its goroutine (runtime.Goexit)"+andSo, "", "", "")
		return
	}
	c.panicked(what+" panicked"+andSo, "", "", p)
}

// callState is whether the handler of a watch is called, and whether the watch is over.
type callState struct{ bits atomic.Uint32 }

const (
	callRuns     uint32 = 1 << iota // not set for a watch that is plain; see [core.plain]
	callOver                        // no call may begin
	callFinished                    // nor does any run
)

func (s *callState) over() bool     { return s.bits.Load()&callOver != 0 }
func (s *callState) finished() bool { return s.bits.Load()&callFinished != 0 }

// enter says whether the handler may be called.
func (s *callState) enter() bool { return s.bits.CompareAndSwap(0, callRuns) }

// leave follows enter; it says whether that was the last call.
func (s *callState) leave() (last bool) { return !s.bits.CompareAndSwap(callRuns, 0) }

// end keeps further calls from beginning; it says whether one runs.
func (s *callState) end() (runs bool) { return s.bits.Or(callOver)&callRuns != 0 }

// handle calls the handler of a watch, unless that is over.
func (w *core) handle(call func()) {
	plain := w.plain()
	// U-5, WATCH-2: no call begins after the end.
	if !plain && !w.state.enter() {
		return
	}
	returned := false
	defer func() {
		if !returned {
			w.fail(recover())
		}
		if plain {
			w.called()
		} else if w.state.leave() {
			w.finish()
		}
	}()
	if w.alive() {
		call()
	}
	returned = true
}

// called is after a call that is not noted in the state.
func (w *core) called() {
	if w.state.over() {
		w.finish()
	}
}

// fail ends a watch whose handler did not return, given what was recovered: nil if it ended
// its goroutine. It fails nothing else.
func (w *core) fail(p any) {
	var attrs []any
	typeURL := ""
	if t := w.watch.Type; t != nil {
		typeURL, attrs = t.URL, []any{"name", w.watch.Name}
	}
	if p == nil {
		w.client.engine.Complain("a handler ended its goroutine; its watch is over", "", typeURL, ErrHandlerExited.Error(), attrs...)
		w.end(ErrHandlerExited)
		return
	}
	// U-8: the trace is kept, and told without a logger.
	stack := w.client.panicked("a handler panicked; its watch is over", "", typeURL, p, attrs...)
	w.end(&PanicError{Value: p, Stack: stack})
}

// finish closes Done of a watch that is over. It is called when no call of the handler runs any more.
func (w *core) finish() {
	w.client.endings.Lock()
	defer w.client.endings.Unlock()
	if w.state.bits.Or(callFinished)&callFinished == 0 && w.ending.done != nil {
		close(w.ending.done)
	}
}

// finishPlain finishes a watch that is over whose calls are not noted in its state: now, or
// when the dispatcher is past any call of it.
func (w *core) finishPlain() {
	if _, told := w.client.engine.Telling(&w.watch); told {
		w.client.engine.After(&w.watch, w.finish)
		return
	}
	w.finish()
}

// await gives a call of a watch that is over a moment: from outside, one that is about to begin looks like one
// that runs.
func (w *core) await() {
	if w.state.finished() || engine.InHandler() {
		return
	}
	if !w.plain() {
		engine.Await(w.state.finished)
		return
	}
	if call, told := w.client.engine.Telling(&w.watch); !told || call.Await(w.state.finished) {
		w.finish()
	}
}
