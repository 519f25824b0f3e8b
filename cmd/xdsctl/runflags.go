package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// runFlags say when a command that goes on ends, and whether it takes commands.
type runFlags struct {
	once, stdin bool
	stopAfter   time.Duration
}

func (f *runFlags) register(set *pflag.FlagSet, once string) {
	set.BoolVar(&f.once, "once", false, once)
	set.DurationVar(&f.stopAfter, "for", 0, "stop after this time; 0 is to run until interrupted")
	set.BoolVar(&f.stdin, "stdin", false, "read commands from standard input")
}

// ending is why a command ended.
type ending uint8

const (
	endAsked  ending = iota // interrupted, or told to quit
	endDone                 // there is nothing more to do
	endTimeUp               // of --for
)

// commander obeys standard input.
type commander interface {
	command(line string) (quit bool)
	inputEnded() // no line follows
}

// wait obeys the lines of standard input until a command ends: by what they say, by done, by the
// time, or by an interrupt. Without --stdin c may be nil.
func (f *runFlags) wait(cmd *cobra.Command, done <-chan struct{}, c commander) ending {
	ctx, cancel := context.WithCancel(cmd.Context())
	defer cancel()
	var lines <-chan string
	if f.stdin {
		lines = readLines(ctx, cmd.InOrStdin(), cmd.ErrOrStderr())
	}
	var timeUp <-chan time.Time
	if f.stopAfter > 0 {
		timeUp = time.After(f.stopAfter)
	}
	for {
		select {
		case <-ctx.Done():
			return endAsked
		case <-done:
			return endDone
		case <-timeUp:
			return endTimeUp
		case line, ok := <-lines:
			switch {
			case !ok:
				lines = nil
				c.inputEnded()
			case c.command(line):
				return endAsked
			}
		}
	}
}
