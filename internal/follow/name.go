package follow

import (
	"cmp"

	"github.com/xdswatch/xdswatch/internal/listing"
	"github.com/xdswatch/xdswatch/internal/machine"
	"github.com/xdswatch/xdswatch/xdstp"
)

// Name is one name that the program is told of. What is told is the difference between what its
// nodes say and what was told before.
type Name struct {
	tree      *Tree
	to        hearer
	asked     string
	authority string
	root      *node

	said    *News // the newest value, absence or failure; nil if none
	also    *News // the answer of an alternative that it speaks of
	by      *node // whose it was
	holds   bool  // it was a value, and nothing took it back
	trouble *News // with the value
}

// init makes the name of a watch; at is nil of a name without directives.
func (n *Name) init(t *Tree, asked string, at *xdstp.Locator, w *machine.Watch, to hearer) {
	if at == nil {
		at = &xdstp.Locator{}
		at.Name, _ = xdstp.ParseReceived(asked) // only such names are redirected
	}
	n.tree, n.to, n.asked, n.authority = t, to, asked, at.Name.Authority
	n.root = &node{name: n, at: at, watch: w}
}

// held notes that the program was told a value before, of a server.
func (n *Name) held(server int) {
	n.said, n.by, n.holds = &News{Kind: machine.NoticeUpdated, Server: server}, n.root, true
}

// isDirectory says whether it is that of a list collection.
func (n *Name) isDirectory() bool {
	_, ok := n.to.(*collection)
	return ok
}

// settle has each node lead to where it is to lead now, and tells what is new. If that takes the
// value away, alternatives are due that were not needed before.
func (n *Name) settle() (wantsFlush bool) {
	for {
		held := n.holds
		n.tend(n.root)
		n.tree.begin()
		wantsFlush = n.tell() || wantsFlush
		if !held || n.holds {
			return wantsFlush
		}
	}
}

// tend has a node lead to where its redirect leads now, and has its alternative used, or left.
func (n *Name) tend(h *node) {
	// REDIR-3: the old target is left, for another one or for a resource.
	if h.next != nil && (h.to == nil || !h.next.at.Equal(*h.to)) {
		drop(&h.next)
	}
	if h.to != nil && h.next == nil {
		h.next = h.lead(h.to, h.at)
	}
	if h.next != nil {
		n.tend(h.next)
	}
	alt := h.at.Alt()
	if alt == nil {
		return
	}
	switch o := h.primary(); {
	case o.news.answered():
		drop(&h.alt)
	// ALT-1: the first cannot be reached, and there is no value.
	case h.alt == nil && o.news.unreachable() && !n.holds:
		h.alt = h.lead(alt, h.by)
	}
	if h.alt != nil {
		n.tend(h.alt)
	}
}

// outcome is what is so at a node and where it leads.
type outcome struct {
	news    *News // value, absence or failure; nil if there is none yet
	by      *node // whose it is
	trouble *News // with the value
	also    *News // what an alternative said that is of no use
}

// primary is the outcome without the alternative.
func (h *node) primary() outcome {
	if h.next == nil {
		return outcome{news: h.now, by: h, trouble: cmp.Or(h.trouble, h.flaw)}
	}
	o := h.next.outcome()
	o.trouble = cmp.Or(o.trouble, h.trouble, h.flaw)
	return o
}

// outcome is that of the alternative only if that has a value: it is used because of trouble on
// the way to the primary, which is told otherwise, once the alternative has failed too.
func (h *node) outcome() outcome {
	o := h.primary()
	if h.alt == nil {
		return o
	}
	switch a := h.alt.outcome(); {
	case a.news.is(machine.NoticeUpdated):
		a.trouble = cmp.Or(a.trouble, o.news)
		return a
	case a.news == nil:
		o.trouble, o.news = cmp.Or(o.trouble, o.news), nil // there may be a value soon
	default:
		o.also = a.news
	}
	return o
}

// tell tells what is new. A value stays good until what takes its place has answered.
func (n *Name) tell() (wantsFlush bool) {
	o := n.root.outcome()
	// An alternative that has answered had given the value, and gives it no more.
	stays := n.holds && !o.news.answered() && !o.also.answered()
	if o.news != nil && !stays && (o.news != n.said || o.also != n.also) {
		// DNE-6, WATCH-4: the same is not told again.
		known := n.said.same(o.news) && n.by.text() == o.by.text()
		n.said, n.also, n.by = o.news, o.also, o.by
		n.holds = o.news.is(machine.NoticeUpdated)
		if !known {
			n.trouble = nil
			wantsFlush = n.to.Hear(n.told(o.news, o.news.Kind, o.also))
		}
		o.news.Value = nil
	}
	if !n.holds || !n.tree.sink.Alive() {
		return wantsFlush
	}
	trouble := o.trouble
	if stays && o.news != nil {
		trouble = o.news
	}
	if trouble == n.trouble {
		return wantsFlush
	}
	if n.trouble = trouble; trouble == nil { // it is over
		trouble = &News{Server: n.said.Server, Stale: n.said.Stale}
	}
	t := n.told(trouble, machine.NoticeAmbient, nil)
	t.Version = n.said.Version // the value's, and not that of what is wrong
	return n.to.Hear(t) || wantsFlush
}

// told makes what is told of what some node heard.
func (n *Name) told(news *News, kind machine.NoticeKind, also *News) *Told {
	// REDIR-2: under the name that was watched.
	t := n.tree.told(n.asked, n.authority, news, kind)
	t.Also = also
	if n.by != n.root {
		t.Locator = n.by.text()
	}
	if news.Name != n.asked && news.Name != "" && news.Name != listing.Plain(*n.root.at).String() {
		t.At = news.Name
	}
	return t
}

func (t *Tree) told(name, authority string, news *News, kind machine.NoticeKind) *Told {
	own := machine.News(*news)
	own.Kind, own.Name = kind, name
	return &Told{Type: t.Asked.TypeURL, Notice: machine.Notice{News: own, TypeURL: t.Asked.TypeURL, Authority: authority}}
}
