package engine

import (
	"reflect"
	"runtime"
)

// dispatchName is the name of the function in which every dispatcher spends its life, and insideName of that below which
// a goroutine does what a dispatcher waits for.
var dispatchName, insideName = nameOf((*Engine).dispatch), nameOf(inHandler)

func nameOf(f any) string { return runtime.FuncForPC(reflect.ValueOf(f).Pointer()).Name() }

// InHandler says whether the caller runs on a dispatcher, of any client, and so inside a handler
// or a hook of the program. It looks for the dispatcher among the caller's callers.
func InHandler() bool {
	var pcs [64]uintptr
	for skip := 2; ; skip += len(pcs) {
		n := runtime.Callers(skip, pcs[:])
		if n == 0 {
			return false
		}
		frames := runtime.CallersFrames(pcs[:n])
		for more := true; more; {
			var f runtime.Frame
			if f, more = frames.Next(); f.Function == dispatchName || f.Function == insideName {
				return true
			}
		}
	}
}
