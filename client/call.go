package client

import (
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/xdswatch/xdswatch/internal/engine"
	"github.com/xdswatch/xdswatch/internal/follow"
	"github.com/xdswatch/xdswatch/internal/machine"
)

// ErrHandlerExited is the error of a watch whose handler ended its goroutine by
// [runtime.Goexit], as FailNow of package testing does, and of a view of which a function did.
var ErrHandlerExited = errors.New("xds: the handler ended its goroutine (runtime.Goexit, as by FailNow in a test)")

// PanicError is the error of a watch whose handler panicked, and of a view of which a function did.
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

// handle calls the handler of a watch, unless that is over.
func (w *core) handle(call func()) {
	returned := false
	defer func() {
		if !returned {
			w.fail(recover())
		}
		w.called()
	}()
	// U-5, WATCH-2: no call begins after the end.
	if w.alive() {
		call()
	}
	returned = true
}

// called is after a call. There is one at a time. That one runs is not noted with the watch, which would cost many
// watches of one resource more than their handlers do: the engine knows at which watch each dispatcher is.
func (w *core) called() {
	if w.answer.over() {
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
	if w.answer.state.Swap(answerFinished) != answerFinished && w.ending.done != nil {
		close(w.ending.done)
	}
}

// calledAt says whether a dispatcher that is at a watch may call the handler: it is told of that watch, or together
// with others of a resource.
func (w *core) calledAt(at *machine.Watch) bool {
	owner := at.Owner
	if s, ok := follow.SinkOf(at); ok {
		owner = s
	}
	switch o := owner.(type) {
	case *single:
		own := &w.watch
		return &o.core == w || at.Name == own.Name && at.Type == own.Type && at.Source == own.Source
	case *part:
		return o.to.core == w
	}
	return false // it is at a hook
}
