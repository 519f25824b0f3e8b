package engine

import (
	"bytes"
	"runtime"
)

// InHandler says whether the caller runs on a dispatcher, so in a handler. Go does not
// tell a function who called it: one that must not wait for a handler from within has to
// look at the name of its goroutine.
func (e *Engine) InHandler() bool {
	_, ok := e.dispatchers.Load(goroutineID())
	return ok
}

// goroutineID reads the number in the first line of a stack, "goroutine 7 [running]:".
func goroutineID() string {
	buf := make([]byte, 64)
	buf = buf[:runtime.Stack(buf, false)]
	fields := bytes.Fields(buf)
	if len(fields) < 2 {
		return ""
	}
	return string(fields[1])
}
