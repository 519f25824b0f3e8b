package redact

import (
	"fmt"
	"runtime"
	"strings"
)

// Panic says what a function of the program's panicked with, as far as that cannot be
// content that it was given: the text of an error of the runtime, or the type of the value, and
// the name of the function.
// It is to be called by the deferred function that recovered it.
// H-3: the value is not shown.
func Panic(value any) string {
	what := fmt.Sprintf("a value of type %T", value)
	if e, ok := value.(runtime.Error); ok && strings.HasPrefix(fmt.Sprintf("%T", value), "runtime.") {
		what = e.Error()
	}
	if at := panicSite(); at != "" {
		what += " at " + at
	}
	return what
}

// panicSite is the function that panicked, without its arguments.
func panicSite() string {
	var pcs [64]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	panicking := false
	for {
		f, more := frames.Next()
		inRuntime := strings.HasPrefix(f.Function, "runtime.")
		if panicking && !inRuntime {
			return f.Function[strings.LastIndexByte(f.Function, '/')+1:]
		}
		panicking = panicking || f.Function == "runtime.gopanic"
		if !more {
			return ""
		}
	}
}
