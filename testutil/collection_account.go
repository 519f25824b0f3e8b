package testutil

import (
	"cmp"
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/xdswatch/xdswatch/xdstp"
)

// account is what one stream asks for of one type, and what it is owed. It says what is
// owed, never what is queued: a client that is slow is told the newest state when it reads
// again. The server's mu guards it.
type account struct {
	typeURL string
	variant variant
	shelf   *shelf
	names   map[string]string   // what is asked for by name: the spelling by key
	globs   map[string]string   // likewise
	all     bool                // "*" is asked for
	owed    map[string]bool     // keys to look at; true if to be sent though held
	batch   []debt              // taken from owed, and sent bit by bit
	answer  bool                // a response is owed even if there is nothing to put in
	open    map[string]struct{} // nonces of the responses that are not answered yet
}

// variant is what tells state of the world and delta apart.
type variant interface {
	// request acts on a request.
	request(a *account, q *inquiry)
	// respond makes the next response, within limit bytes; nil if nothing is due.
	respond(a *account, limit int, nonce string) proto.Message
	// holds says whether the client is known to have something under a key.
	holds(key string) bool
}

// debt is a key that is owed.
type debt struct {
	key   string
	force bool
}

// inquiry is a request with its names read.
type inquiry struct {
	*Request
	names, dropped []label
	initial        []label
}

func newInquiry(r *Request) *inquiry {
	q := &inquiry{Request: r, names: newLabels(r.Names()), dropped: newLabels(r.Unsubscribed())}
	for name := range r.Delta.GetInitialResourceVersions() {
		q.initial = append(q.initial, newLabel(name))
	}
	return q
}

func newAccount(typeURL string, h *shelf, delta bool) *account {
	a := &account{
		typeURL: typeURL,
		shelf:   h,
		names:   make(map[string]string),
		globs:   make(map[string]string),
		owed:    make(map[string]bool),
		open:    make(map[string]struct{}),
	}
	if delta {
		a.variant = &deltaVariant{held: make(map[string]holding)}
	} else {
		a.variant = &sotwVariant{}
	}
	return a
}

func (a *account) request(q *inquiry) { a.variant.request(a, q) }

// respond makes the next response, and notes that an answer to it is due; nil if nothing is
// owed.
func (a *account) respond(limit int, nonce string) proto.Message {
	m := a.variant.respond(a, limit, nonce)
	if m != nil {
		a.open[nonce] = struct{}{}
	}
	return m
}

// covers says whether a name is asked for, as the name of a resource or of an alias.
func (a *account) covers(l label) bool {
	if _, ok := a.names[l.key]; ok {
		return true
	}
	if _, ok := a.globs[l.glob]; ok {
		return true
	}
	return a.all && !xdstp.IsXDSTP(l.key)
}

// wants says whether an item is asked for, by any of its names.
func (a *account) wants(it *item) bool {
	return a.covers(it.label) || slices.ContainsFunc(it.aliases, func(l label) bool {
		_, ok := a.names[l.key]
		return ok
	})
}

// touch notes a change of names that the client may want to know.
func (a *account) touch(touched []label) {
	for _, l := range touched {
		if _, glob := a.globs[l.key]; glob || a.covers(l) || a.variant.holds(l.key) {
			a.owe(l.key, false)
		}
	}
}

func (a *account) owe(key string, force bool) { a.owed[key] = a.owed[key] || force }

// ask notes that a name, a glob or "*" is asked for anew.
func (a *account) ask(l label, force bool) {
	switch {
	case l.key == wildcard:
		a.all, a.answer = true, true
		for key := range a.shelf.items {
			if !xdstp.IsXDSTP(key) {
				a.owe(key, force)
			}
		}
	case l.many:
		a.globs[l.key], a.answer = l.text, true
		a.owe(l.key, force)
		for key := range a.shelf.globs[l.key] {
			a.owe(key, force)
		}
	default:
		a.names[l.key] = l.text
		a.owe(l.key, force)
	}
}

// asked says whether the name, glob or "*" is asked for as such.
func (a *account) asked(l label) bool {
	if l.key == wildcard {
		return a.all
	}
	_, name := a.names[l.key]
	_, glob := a.globs[l.key]
	return name || glob
}

// addTo adds what is asked for to a set.
func (a *account) addTo(set map[string]struct{}) {
	for key := range a.names {
		set[key] = struct{}{}
	}
	for key := range a.globs {
		set[key] = struct{}{}
	}
	if a.all {
		set[wildcard] = struct{}{}
	}
}

// take moves what is owed into the batch once that is empty, and says whether there is any.
func (a *account) take() bool {
	if len(a.batch) == 0 && len(a.owed) > 0 {
		a.batch = make([]debt, 0, len(a.owed))
		for key, force := range a.owed {
			a.batch = append(a.batch, debt{key, force})
		}
		slices.SortFunc(a.batch, func(x, y debt) int { return cmp.Compare(x.key, y.key) })
		a.owed = make(map[string]bool)
	}
	return len(a.batch) > 0
}

// settled says whether nothing is to be sent or answered. A client need not answer for a
// type that it has let go.
func (a *account) settled() bool {
	idle := len(a.names) == 0 && len(a.globs) == 0 && !a.all
	return len(a.owed) == 0 && len(a.batch) == 0 && !a.answer && (idle || len(a.open) == 0)
}

// wanted are all items that are asked for, each once, in the order of their names.
func (a *account) wanted() []*item {
	found := make(map[string]*item)
	for key := range a.names {
		if it := a.shelf.find(key); it != nil {
			found[it.key] = it
		}
	}
	for key := range a.globs {
		maps.Copy(found, a.shelf.globs[key])
	}
	if a.all {
		for key, it := range a.shelf.items {
			if !xdstp.IsXDSTP(key) {
				found[key] = it
			}
		}
	}
	return slices.SortedFunc(maps.Values(found), func(x, y *item) int { return cmp.Compare(x.key, y.key) })
}
