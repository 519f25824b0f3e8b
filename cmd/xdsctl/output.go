package main

import (
	"fmt"
	"sync"

	"github.com/xdswatch/xdswatch/cmd/xdsctl/internal/report"
)

// output is where the records of a command go, until it ends. It is safe for concurrent use.
type output struct {
	printer report.Printer

	mu   sync.Mutex
	done chan struct{} // closed when there is nothing more to print
	err  error         // why
}

func newOutput(p report.Printer) *output { return &output{printer: p, done: make(chan struct{})} }

// print prints a record, unless the output has ended, and says whether it did. It blocks while the output does.
func (o *output) print(r report.Record) bool {
	if o.ended() {
		return false
	}
	err := o.printer.Print(r)
	if err != nil {
		o.end(fmt.Errorf("standard output: %w", err))
	}
	return err == nil
}

// end ends the output; the first error stays.
func (o *output) end(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.ended() {
		o.err = err
		close(o.done)
	}
}

func (o *output) ended() bool {
	select {
	case <-o.done:
		return true
	default:
		return false
	}
}

// fault is why the output ended: a [statusError], or nil.
func (o *output) fault() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err == nil {
		return nil
	}
	return &statusError{statusFailed, o.err}
}
