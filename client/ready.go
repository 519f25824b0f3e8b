package client

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/xdswatch/xdswatch/internal/ctxerr"
	"github.com/xdswatch/xdswatch/internal/engine"
	"github.com/xdswatch/xdswatch/internal/machine"
)

// Ready blocks until every watch has had its first answer: a value, an absence or an error of
// the resource. Trouble with a server is no answer; the end of a watch's [InitialFetchTimeout]
// counts as one. Ready waits for a watch until its handler has returned, and not for a watch
// that has ended. [Client.ReadyWithValues] waits for values.
//
// Errors: a [*NotReadyError] that says what is missing when ctx ends, and wraps ctx's error;
// [ErrClosed]; [ErrNilContext]; and [ErrInHandler] inside a handler, since other events wait for
// the handler.
func (c *Client) Ready(ctx context.Context) error { return c.allReady(ctx, false) }

// ReadyWithValues blocks until every watch has a value, and every collection its first state. It
// also waits for a resource that does not exist or cannot be used, since it may come; so without
// an end of ctx it may block for ever. When ctx ends, the [*NotReadyError] says of each what is
// wrong with it. For the rest see [Client.Ready].
func (c *Client) ReadyWithValues(ctx context.Context) error { return c.allReady(ctx, true) }

// Ready blocks until the watch, or each resource that is in the set now, has had its first answer; see
// [Client.Ready]. If the watch or the set has ended it returns why.
func (w *core) Ready(ctx context.Context) error { return w.ready(ctx, false) }

// ReadyWithValues blocks until the watch, or each resource that is in the set now, has a value, or the
// collection its first state; see [Client.ReadyWithValues]. If the watch or the set has ended it returns why.
func (w *core) ReadyWithValues(ctx context.Context) error { return w.ready(ctx, true) }

// maxLacking is how many resources a [NotReadyError] names.
const maxLacking = 8

// NotReadyError says what a client, watch or set waited for in vain.
type NotReadyError struct {
	// Lacking are the first of the resources and collections that the call waited for, by type
	// and name: at most eight.
	Lacking []Lacking
	// Count is how many there are in all.
	Count int
	// Blocked are handlers that have not returned for a while, which may be why: at most
	// eight.
	Blocked []BlockedHandler
	// Err is the context's error, with its cause if that is another.
	Err error
	// NodeID is that of the client: servers choose by it what they send.
	NodeID string
}

// Lacking is a resource without an answer, or without a value if the call waited for values.
type Lacking struct {
	Type string // URL
	Name string // canonical
	// Locator is the canonical locator of what is lacking if the resource leads elsewhere, by a redirect
	// or as a list collection; "" if it is the resource itself. Server, Status and Err are of what is lacking.
	Locator string
	Server  string // URI, as in [Event]
	Status  Status // as of [State]
	// Err is what is wrong with the resource, or on the way to its server; an [ErrDoesNotExist] if it does
	// not exist; nil if nothing is known.
	Err error
}

// maxLackingText bounds what a NotReadyError says of one resource, in bytes.
const maxLackingText = 512

func (e *NotReadyError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "xds: not ready: %v; waiting for %d: ", e.Err, e.Count)
	for i, l := range e.Lacking {
		if i > 0 {
			b.WriteString("; ")
		}
		b.WriteString(l.text(e.NodeID))
	}
	if more := e.Count - len(e.Lacking); more > 0 {
		fmt.Fprintf(&b, "; and %d more", more)
	}
	for _, h := range e.Blocked {
		b.WriteString("; " + strings.TrimPrefix(h.Error(), "xds: "))
	}
	return b.String()
}

func (l Lacking) text(node string) string {
	s := textFor(textOf(l.Type, cmp.Or(l.Locator, l.Name)), l.Server, node)
	if l.Err != nil {
		s = strings.TrimPrefix(l.Err.Error(), "xds: ")
	}
	if s += fmt.Sprintf(" (%s)", l.Status); l.Locator != "" {
		s = fmt.Sprintf("%s, which leads to %s", textOf(l.Type, l.Name), s)
	}
	return engine.Cut(s, maxLackingText)
}

// Unwrap returns the context's error, and those of Lacking and Blocked.
func (e *NotReadyError) Unwrap() []error {
	errs := []error{e.Err}
	for _, l := range e.Lacking {
		if l.Err != nil {
			errs = append(errs, l.Err)
		}
	}
	for _, h := range e.Blocked {
		errs = append(errs, h)
	}
	return errs
}

func (c *Client) allReady(ctx context.Context, values bool) error {
	for {
		ws := slices.DeleteFunc(c.books.living(), func(w *core) bool { return w.is == isGet })
		waited, err := c.awaitAnswers(ctx, values, ws...)
		switch {
		case err != nil:
			return err
		case c.closed.Load():
			return ErrClosed
		case !waited: // else there may be other watches by now
			return nil
		}
	}
}

// ready waits for a watch, or for the members of a set.
func (w *core) ready(ctx context.Context, values bool) error {
	_, err := w.client.awaitAnswers(ctx, values, w)
	return cmp.Or(err, w.Err())
}

// awaitAnswers waits for what watches and sets lack, and says whether there was anything.
func (c *Client) awaitAnswers(ctx context.Context, values bool, ws ...*core) (waited bool, err error) {
	if ctx == nil {
		return false, ErrNilContext
	}
	for _, w := range ws {
		for x := range w.subscriptions {
			for changed := c.answers.changed(&x.answer, values); changed != nil; changed = c.answers.changed(&x.answer, values) {
				if waited = true; engine.InHandler() {
					return waited, ErrInHandler
				}
				select {
				case <-changed:
				case <-ctx.Done():
					// U-4: it says what is lacking.
					if err := c.notReady(ctx, values, ws...); err != nil {
						return waited, err
					}
				}
			}
		}
	}
	return waited, nil
}

// subscriptions yields the subscription of a watch, or those that are in a set.
func (w *core) subscriptions(yield func(*subscription) bool) {
	set := w.set()
	if set == nil {
		yield(&w.subscription)
		return
	}
	for _, m := range set.all() {
		if !yield(m.subscription) {
			return
		}
	}
}

// notReady is the error of who waited for watches until the end of a context; nil if nothing
// is lacking by now.
func (c *Client) notReady(ctx context.Context, values bool, ws ...*core) error {
	e := &NotReadyError{Err: ctxerr.Of(ctx), NodeID: c.NodeID()}
	var first []*subscription // in order
	for _, w := range ws {
		for x := range w.subscriptions {
			if !x.answer.open(values) {
				continue
			}
			e.Count++
			i, _ := slices.BinarySearchFunc(first, x, (*subscription).compare)
			if first = slices.Insert(first, i, x); len(first) > maxLacking {
				first = first[:maxLacking]
			}
		}
	}
	if e.Count == 0 {
		return nil
	}
	_, blocked := c.engine.Health()
	e.Blocked = blockedHandlers(blocked, 0)
	e.Blocked = e.Blocked[:min(len(e.Blocked), maxLacking)]
	for _, x := range first {
		e.Lacking = append(e.Lacking, c.lacking(x))
	}
	return e
}

func (x *subscription) compare(y *subscription) int {
	xType, xName := x.asked()
	yType, yName := y.asked()
	return cmp.Or(cmp.Compare(xType, yType), cmp.Compare(xName, yName))
}

// lacking says what is known of what is waited for: of the first that it leads to and that has no answer, if it
// leads elsewhere.
func (c *Client) lacking(x *subscription) Lacking {
	first := c.sources.Source(int(x.watch.Source)).Servers[0]
	l := Lacking{Status: Status(machine.StatusRequested.String()), Server: c.uri(first)}
	l.Type, l.Name = x.asked()
	known := c.engine.Known(&x.watch)
	if len(known) == 0 {
		return l
	}
	r := known[0]
	if tree := x.tree.Load(); tree != nil && r.Raw != nil {
		if to, ok := c.missing(tree.Watches()); ok {
			r, l.Locator = to, to.Name
		}
	}
	s := c.state(r, c.sources.Scopes())
	if l.Status, l.Server, l.Err = s.Status, s.Server, s.Err; s.Reason != 0 && l.Err == nil {
		l.Err = c.absence(s.Type, s.Name, s.Server, s.Reason)
	}
	return l
}

// missing is the first without an answer, or else the first without a value.
func (c *Client) missing(ws []*machine.Watch) (first machine.Resource, found bool) {
	for some := range slices.Chunk(ws, maxBatch) { // so that the loop does other things between
		for _, r := range c.engine.Known(some...) {
			switch {
			case r.Raw != nil:
			case r.Status == machine.StatusRequested:
				return r, true
			case !found:
				first, found = r, true
			}
		}
	}
	return first, found
}
