package view

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/xdswatch/xdswatch/internal/ctxerr"
)

// MaxWaiting is how many resources a [NotReadyError] lists.
const MaxWaiting = 8

// NotReadyError says what a view waited for in vain.
type NotReadyError struct {
	Root Root
	// Waiting is the first of what is waited for: at most [MaxWaiting]. Count is how much it is in
	// all. For [View.Cluster] and [View.VirtualHost] it is what that cluster or host waits for.
	Waiting []Waiting
	Count   int
	Err     error // of the context
	Fault   error // of the root; nil if there is none
	// NodeID is that of the client: servers choose by it what they send.
	NodeID string
}

func (e *NotReadyError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "xds: the view of %q for node %q is not ready: %v", e.Root.Name, e.NodeID, e.Err)
	told := func(w Waiting) bool { return strings.Contains(w.Reason, e.Fault.Error()) }
	if e.Fault != nil && !slices.ContainsFunc(e.Waiting, told) {
		fmt.Fprintf(&b, "; %v", e.Fault)
	}
	if e.Count > 0 {
		fmt.Fprintf(&b, "; waiting for %d: ", e.Count)
	}
	for i, w := range e.Waiting {
		if i > 0 {
			b.WriteString("; ")
		}
		fmt.Fprintf(&b, "%s %q (%s)", w.Type[strings.LastIndexByte(w.Type, '.')+1:], w.Name, w.Reason)
	}
	if e.Count > len(e.Waiting) {
		b.WriteString("; …")
	}
	return b.String()
}

// Unwrap returns the context's error, and the root's if there is one.
func (e *NotReadyError) Unwrap() []error {
	if e.Fault == nil {
		return []error{e.Err}
	}
	return []error{e.Err, e.Fault}
}

func (v *View) notReady(ctx context.Context, waiting []Waiting) error {
	e := &NotReadyError{Root: v.root, Err: ctxerr.Of(ctx), Waiting: waiting, NodeID: v.core.config.node()}
	e.Count = len(e.Waiting)
	e.Waiting = e.Waiting[:min(e.Count, MaxWaiting)]
	if s := v.Snapshot(); s != nil {
		e.Fault = s.Err
	}
	return e
}

// Ready blocks until there is a snapshot without a root error, and Config.OnSnapshot has returned
// from it. When ctx ends it returns a [*NotReadyError] with what is waited for; after the end of
// the view the view's error.
func (v *View) Ready(ctx context.Context) error {
	for {
		changed := v.Changed()
		if s := v.Snapshot(); s != nil && s.Err == nil {
			return v.handled(ctx)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return v.notReady(ctx, v.Waiting())
		case <-v.ctx.Done():
			return v.Err()
		}
	}
}

// handled blocks until OnSnapshot has returned from what [View.Snapshot] returned before.
func (v *View) handled(ctx context.Context) error {
	if v.config.OnSnapshot == nil {
		return v.Err()
	}
	select {
	case v.turn <- struct{}{}: // who had it has called OnSnapshot
		<-v.turn
	case <-ctx.Done():
		return v.notReady(ctx, v.Waiting())
	case <-v.ctx.Done():
	}
	if v.owed() { // since who needed the turn meanwhile has left that to its holder
		v.apart(v.settle)
	}
	return v.Err()
}
