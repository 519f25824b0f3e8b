package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/xdswatch/xdswatch/client"
)

// note is what a handler heard, in words.
type note struct {
	api    string // "cds"
	name   string
	kind   client.EventKind
	text   string // what the value says
	reason client.Reason
	err    error
}

// lost says that what was held is gone.
func (n note) lost() bool {
	return n.kind == client.EventDoesNotExist || n.kind == client.EventFailed
}

func (n note) String() string {
	text := n.text
	switch {
	case n.err != nil:
		text = brief(n.err)
	case n.kind == client.EventDoesNotExist:
		text = n.reason.String()
	}
	return fmt.Sprintf("%s  %-15s  %-14s  %s", n.api, n.name, n.kind, text)
}

// brief leaves out what stands beside an error anyway: the resource and its server.
func brief(err error) string {
	if re, ok := errors.AsType[*client.ResourceError](err); ok {
		return fmt.Sprintf("%s: %v", re.Kind, re.Err)
	}
	return err.Error()
}

// notes carry what the handlers hear to the one goroutine that prints and judges it.
type notes struct {
	ctx context.Context // of the reader
	ch  chan note
}

func newNotes(ctx context.Context) *notes { return &notes{ctx: ctx, ch: make(chan note, 64)} }

func (n *notes) put(what note) {
	select {
	case n.ch <- what:
	case <-n.ctx.Done():
	}
}
