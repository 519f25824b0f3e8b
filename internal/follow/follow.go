// Package follow finds what serves a name that is not served by its own resource alone: where
// redirects lead, alternatives, entries and members of list collections (xRFC TP1).
//
// There is one kind of [node]: a locator, and what is so there. What is told under a name is the
// difference between what its nodes say now and what was told before ([Name]); a [collection] has
// many names. All of one watch of the program stands in a [Tree] and, but for its end, belongs to
// the dispatcher of the watch's lane.
package follow

import (
	"bytes"
	"cmp"
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/xdswatch/xdswatch/internal/listing"
	"github.com/xdswatch/xdswatch/internal/machine"
	"github.com/xdswatch/xdswatch/xdstp"
)

// MaxHops is how many locators, redirects and alternatives, are followed from a name (xRFC TP1
// sets no bound).
const MaxHops = 8

// Errors of redirects.
var (
	ErrLoop    = errors.New("xds: the redirects go round in a ring")
	ErrTooMany = errors.New("xds: there are too many redirects, one after the other")
)

// Host is what a tree needs of the client.
type Host interface {
	// Lead makes the watch of what a locator names, a directory of a list collection or else a
	// resource. The resource at by says so; nil if the program does. With a fault there is no watch.
	Lead(by *xdstp.Locator, to xdstp.Locator, directory bool) (*machine.Watch, *machine.Fault)
	// Start begins watches that Lead made.
	Start(...*machine.Watch)
	// Stop ends a watch that Lead made, which may not have begun.
	Stop(*machine.Watch)
	// Strict says whether errors of a server's resources take their values away (gRFC A88).
	Strict(server int) bool
}

// Sink hears what is told under the names of a tree; see [engine.Sink].
type Sink interface {
	hearer
	Alive() bool
	Flush(last bool)
}

// hearer hears what is told under a name.
type hearer interface {
	Hear(*Told) (wantsFlush bool)
}

// Told is what is told under a name. TypeURL is that of its error.
type Told struct {
	machine.Notice
	Type    string // URL of the type that the program watches
	Locator string // the place that serves the name, if that is another
	At      string // the name that the error is of, if that is another
	Also    *News  // what the alternative said, which is of no use
}

// News is what was heard of a name. Name is that of the watch that heard it, "" if there is none. Value is nil once
// it was told.
type News machine.News

func newsOf(n *machine.Notice) *News {
	news := News(n.News)
	return &news
}

// failed makes news of a fault.
func (n News) failed(kind machine.FaultKind, err error) *News {
	return &News{
		Kind: machine.NoticeFailed, Stale: n.Stale, Server: n.Server, Name: n.Name,
		Fault: &machine.Fault{Kind: kind, Err: err, Version: n.Version},
	}
}

func (n *News) is(k machine.NoticeKind) bool { return n != nil && n.Kind == k }

// answered says that it is an answer of the server about the resource.
func (n *News) answered() bool {
	if !n.is(machine.NoticeFailed) {
		return n != nil
	}
	return n.Fault.Kind != machine.FaultTimeout && !n.unreachable()
}

// unreachable says that the server cannot be reached, and not that it has not answered in time.
func (n *News) unreachable() bool {
	return n.is(machine.NoticeFailed) && (n.Fault.Kind == machine.FaultConnection || n.Fault.Kind == machine.FaultStream)
}

// same says whether both tell of an absence, or of the same value, as of any version. Of a value without its bytes
// that is not known.
func (n *News) same(o *News) bool {
	return n.is(machine.NoticeDoesNotExist) && o.is(machine.NoticeDoesNotExist) ||
		n.is(machine.NoticeUpdated) && o.is(machine.NoticeUpdated) && n.Raw != nil && n.Stale == o.Stale && n.Server == o.Server &&
			bytes.Equal(n.Raw, o.Raw) && n.Attributes.Equal(o.Attributes)
}

// sameFault says whether both tell the same error; n tells one.
func (n *News) sameFault(o *News) bool {
	return o != nil && o.Fault != nil && n.Fault.Err.Error() == o.Fault.Err.Error()
}

// Redirects says whether a notice brings a redirect.
func Redirects(n *machine.Notice) bool {
	_, ok := n.Value.(*listing.Redirect)
	return ok
}

// Tree is all that serves one watch of the program besides its first subscription. The
// subscriptions that it makes end with it.
type Tree struct {
	Asked    Asked
	host     Host
	sink     Sink        // of the program
	first    *Name       // that the tree was made for; of a list collection that of its directory, nil for a wildcard and a glob
	all      *collection // nil for one name
	starting []*machine.Watch

	mu   sync.Mutex
	over bool
	live map[*machine.Watch]bool // that the host made and that are not stopped
}

// Asked is what the program asked for: one resource, a wildcard or a glob, or a list collection.
type Asked struct {
	TypeURL string         // of the resources
	Name    string         // canonical, with its directives
	At      *xdstp.Locator // nil of a name without directives that is no list collection's URL
	List    bool           // it is a list collection
}

// New makes the tree of what the program watches with w: of a list collection, whose directory w watches, with what that
// lists (xRFC TP1, "List collections"); of a wildcard or a glob for the members that are redirected.
func New(h Host, a Asked, w *machine.Watch, s Sink) *Tree {
	t := &Tree{Asked: a, host: h, sink: s}
	to := hearer(s)
	if a.List || w.Wildcard {
		t.all = &collection{Tree: t, watch: w, members: map[string]*member{}, url: a.Name, waits: a.List}
		to = t.all
	}
	if a.List && a.At != nil {
		t.all.url = listing.Plain(*a.At).String()
	}
	if !w.Wildcard {
		t.first = new(Name)
		t.first.init(t, a.Name, a.At, w, to)
	}
	return t
}

// Holds is for a tree that is made after the program was told a value, of a server: that stays good, as one that the
// tree tells.
func (t *Tree) Holds(server int) {
	t.first.held(server)
}

// Take takes a notice of the watch that the tree was made for, unless it is of a wildcard or a glob and does
// not concern a member that is elsewhere.
func (t *Tree) Take(n *machine.Notice) (taken, wantsFlush bool) {
	if t.first == nil {
		return t.all.take(n)
	}
	return true, t.first.root.Tell(n)
}

// open makes the watch of a node, which is to be started.
func (t *Tree) open(n *node) *machine.Fault {
	// H-4: what a resource asks of another authority is bounded, by the host.
	w, fault := t.host.Lead(n.by, *n.at, n.name.isDirectory())
	if fault != nil {
		return fault
	}
	w.Owner, n.watch = n, w
	if n.name.said.answered() { // what is waited for is no first answer
		w.FetchTimeout = 0
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over {
		t.host.Stop(w)
		return nil
	}
	if t.live == nil {
		t.live = map[*machine.Watch]bool{}
	}
	t.live[w] = true
	return nil
}

// begin starts watches at one moment, unless all is over. The host is told under the lock, so that
// it hears of no start after the stop.
func (t *Tree) begin() {
	if len(t.starting) == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.over {
		t.host.Start(t.starting...)
	}
	t.starting = nil
}

// stop ends a watch of a node, if it is the tree's.
func (t *Tree) stop(w *machine.Watch) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.live[w] {
		delete(t.live, w)
		t.host.Stop(w)
	}
}

// End stops all watches that the tree made, for good. It may be called at any time.
func (t *Tree) End() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.over = true
	for w := range t.live {
		t.host.Stop(w)
	}
	t.live = nil
}

// Watches are those that the tree has made and that have not ended, by name. It may be called at any time.
func (t *Tree) Watches() []*machine.Watch {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.SortedFunc(maps.Keys(t.live), func(a, b *machine.Watch) int { return cmp.Compare(a.Name, b.Name) })
}

// SinkOf returns the program's sink of the tree that hears a watch; ok is false if none does.
func SinkOf(w *machine.Watch) (s Sink, ok bool) {
	n, ok := w.Owner.(*node)
	if !ok {
		return nil, false
	}
	return n.name.tree.sink, true
}
