package follow

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/xdswatch/xdswatch/internal/listing"
	"github.com/xdswatch/xdswatch/internal/machine"
	"github.com/xdswatch/xdswatch/xdstp"
)

// node is a locator, and what is so there. A redirect has one child, a node whose alternative is
// used has that too. The entry of a list collection that is watched as a whole is a node without a
// subscription.
type node struct {
	name  *Name
	from  *node          // nil of a root
	at    *xdstp.Locator // of an inline member, that of the list
	by    *xdstp.Locator // of the resource that names it; nil if the program does
	watch *machine.Watch // nil of an inline member, and of what cannot be followed
	gone  bool

	now     *News           // the newest value, redirect, absence or failure; nil if none came
	trouble *News           // with the watch, beside the value or redirect
	flaw    *News           // of the entry, beside the value or redirect
	to      *xdstp.Locator  // of a redirect
	layout  *listing.Layout // of the directory, kept for the next one

	next *node // where the redirect leads
	alt  *node // the alternative, while it is used
}

// text is the node's locator without its alternative.
func (h *node) text() string {
	if h.watch == nil && h.from == nil {
		return h.name.asked
	}
	return listing.WithoutAlt(*h.at).String()
}

// Tell implements engine.Sink.
func (h *node) Tell(n *machine.Notice) bool {
	if !h.Alive() {
		return false
	}
	switch n.Kind {
	case machine.NoticeUpdated:
		h.updated(newsOf(n))
	case machine.NoticeDoesNotExist, machine.NoticeFailed:
		h.lost(newsOf(n))
	case machine.NoticeAmbient:
		if h.trouble = nil; n.Fault != nil {
			h.trouble = newsOf(n)
		}
	}
	return h.name.settle()
}

// Alive implements engine.Sink.
func (h *node) Alive() bool { return !h.gone && h.name.tree.sink.Alive() }

// Flush implements engine.Sink.
func (h *node) Flush(last bool) { h.name.tree.sink.Flush(last) }

// lost takes an absence or a failure.
func (h *node) lost(n *News) {
	h.now, h.trouble, h.to, h.layout = n, nil, nil, nil
	if h.name.by == h {
		h.name.holds = false
	}
}

// updated takes what a watch heard, which may be a redirect, or a directory of which an entry is
// meant.
func (h *node) updated(n *News) {
	name, entry := h.at.Entry()
	d, directory := n.Value.(listing.Directory)
	h.trouble = nil
	switch {
	// ENTRY-1: an entry of the collection is meant.
	case directory && entry:
		i, err := d.Named(name)
		h.entry(d, name, i, err, n)
		h.layout = d.Layout
		return
	case entry: // the directory is elsewhere, and what was wrong with an entry here is over
		h.flaw = nil
		if r, ok := n.Value.(*listing.Redirect); ok {
			// ENTRY-1: the directive goes with the redirect.
			n.Value = &listing.Redirect{To: withEntry(r.To, name)}
		}
	}
	h.good(n)
	h.layout = d.Layout
}

// withEntry adds the directive of an entry to the locator to which a list collection is redirected, and to the
// alternatives of that.
func withEntry(to xdstp.Locator, name string) xdstp.Locator {
	to.Directives = append(slices.Clone(to.Directives), xdstp.Directive{Entry: name})
	for i := range to.Directives {
		if d := &to.Directives[i]; d.Alt != nil {
			alt := withEntry(*d.Alt, name)
			d.Alt = &alt
		}
	}
	return to
}

// good takes a value or a redirect.
func (h *node) good(n *News) {
	h.now, h.to = n, nil
	// REDIR-1: a locator is a redirect.
	if r, ok := n.Value.(*listing.Redirect); ok {
		h.to = &r.To
	}
}

// sound says whether the newest that came was a value or a redirect.
func (h *node) sound() bool { return h.now.is(machine.NoticeUpdated) }

// entry takes the inline entry of a name of a directory, given news of that; i is less than 0 if there is
// none. An entry whose bytes are as before is no news.
func (h *node) entry(d listing.Directory, name string, i int, err error, n *News) {
	n.Value, n.Raw, n.Attributes = nil, nil, nil // those of the directory
	flaw := h.flaw
	if h.flaw = nil; err == nil && i < 0 {
		n.Kind, n.Reason, n.Version = machine.NoticeDoesNotExist, machine.ReasonNotFound, ""
		h.lost(n)
		return
	}
	if err == nil {
		e := &d.Entries[i]
		if e.Err == nil && h.sound() && h.now.Stale == n.Stale && e.Redirects == (h.to != nil) && bytes.Equal(h.now.Raw, e.Raw) {
			h.now.Raw = e.Raw // so that the old directory is not kept
			return
		}
		n.Version, n.Raw = cmp.Or(e.Version, n.Version), e.Raw
		n.Value, err = d.Value(i)
	}
	if err == nil {
		h.good(n)
		return
	}
	h.flaw = flaw
	h.spoil(d, name, err, n)
}

// spoil notes that the entry of a name in a directory cannot be used. It takes no good one away, unless the server asks for
// that (gRFC A88), and is told once.
func (h *node) spoil(d listing.Directory, name string, err error, n *News) {
	// WATCH-3: who was there before keeps it too.
	if value, raw, version := d.Before(name); h.now == nil && raw != nil {
		was := *n
		was.Value, was.Raw, was.Version = value, raw, version
		h.good(&was)
	}
	bad := n.failed(machine.FaultRejected, err)
	switch {
	// ERR-3: the value stays without fail_on_data_errors.
	case h.sound() && !h.name.tree.host.Strict(n.Server):
		if !bad.sameFault(h.flaw) {
			h.flaw = bad
		}
	case !bad.sameFault(h.now):
		h.lost(bad)
	}
}

// lead makes a child, given who names it. Where that cannot be followed it is one that failed.
func (h *node) lead(to, by *xdstp.Locator) *node {
	child := &node{name: h.name, from: h, at: to, by: by}
	trail := []string{child.text()}
	for a := h; a != nil; a = a.from {
		trail = append(trail, a.text())
	}
	var fault *machine.Fault
	switch {
	// REDIR-3: no loops.
	case slices.Contains(trail[1:], trail[0]):
		fault = &machine.Fault{Kind: machine.FaultData, Err: fmt.Errorf("%w: %s", ErrLoop, way(trail))}
	// REDIR-3: no more than so many.
	case len(trail)-1 > MaxHops:
		fault = &machine.Fault{Kind: machine.FaultData, Err: fmt.Errorf("%w: %s", ErrTooMany, way(trail))}
	default:
		if fault = h.name.tree.open(child); fault != nil {
			fault.Err = fmt.Errorf("the locator %q cannot be followed: %w", trail[0], fault.Err)
			break
		}
		h.name.tree.starting = append(h.name.tree.starting, child.watch)
	}
	if fault != nil {
		child.now = &News{Kind: machine.NoticeFailed, Server: h.now.Server, Fault: fault}
	}
	return child
}

// way writes the way to a node, given the locators from it to the root.
func way(trail []string) string {
	var b strings.Builder
	for i, text := range slices.Backward(trail) {
		if b.WriteString(strconv.Quote(text)); i > 0 {
			b.WriteString(" to ")
		}
	}
	return b.String()
}

// drop leaves a node and all that it leads to.
func drop(at **node) {
	h := *at
	if h == nil {
		return
	}
	*at, h.gone = nil, true
	h.name.tree.stop(h.watch)
	drop(&h.next)
	drop(&h.alt)
}
