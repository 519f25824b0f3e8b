package testutil

import (
	"cmp"
	"maps"
	"slices"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"
)

// interest is what one stream subscribes to of one type, and what it is owed. It says what is
// owed, never what is queued: a client that is slow is told the newest state when it reads
// again.
type interest struct {
	typeURL    string
	shelf      *shelf
	delta      bool
	begun      bool                // delta: there was a request. State of the world: one had names
	subscribed map[string]label    // names, globs and "*", by their keys
	owed       map[string]bool     // keys to look at; true if to be sent though held
	answer     bool                // a response is owed even if there is nothing to put in
	open       map[string]struct{} // nonces of the responses that are not answered yet
	nonce      string              // of the newest response; empty before the first
	held       map[string]holding  // delta: what the client was sent or says that it has
}

// holding is a resource that a delta client has.
type holding struct {
	text    string // its name as the client knows it
	version string
	item    *item // nil if the client brought it from elsewhere
}

// is says whether the client needs nothing but what it holds.
func (h holding) is(it *item) bool {
	return h.item == it || h.item == nil && h.version == it.full.GetVersion()
}

func newInterest(typeURL string, h *shelf, delta bool) *interest {
	return &interest{
		typeURL: typeURL, shelf: h, delta: delta,
		subscribed: make(map[string]label), owed: make(map[string]bool),
		open: make(map[string]struct{}), held: make(map[string]holding),
	}
}

// covers says whether a name is subscribed to, by itself or by a collection.
func (i *interest) covers(l label) bool {
	_, named := i.subscribed[l.key]
	_, member := i.subscribed[l.glob]
	return named || member && l.glob != ""
}

// wants says whether an item is subscribed to, by any of its names.
func (i *interest) wants(it *item) bool {
	return i.covers(it.label) || slices.ContainsFunc(it.aliases, func(l label) bool {
		_, ok := i.subscribed[l.key]
		return ok
	})
}

// wanted are all items that are subscribed to, each once, in the order of their names.
func (i *interest) wanted() []*item {
	found := make(map[string]*item)
	for key, l := range i.subscribed {
		if l.many {
			maps.Copy(found, i.shelf.globs[key])
		} else if it := i.shelf.find(key); it != nil {
			found[it.key] = it
		}
	}
	return slices.SortedFunc(maps.Values(found), func(x, y *item) int { return cmp.Compare(x.key, y.key) })
}

func (i *interest) owe(key string, force bool) { i.owed[key] = i.owed[key] || force }

// touch notes a change of names that the client may want to know.
func (i *interest) touch(touched []label) {
	for _, l := range touched {
		if _, holds := i.held[l.key]; holds || i.covers(l) {
			i.owe(l.key, false)
		}
	}
}

// subscribe begins to owe a name, or a collection with its members.
func (i *interest) subscribe(l label, force bool) {
	i.subscribed[l.key] = l
	i.owe(l.key, force)
	if l.many {
		i.answer = true
		for key := range i.shelf.globs[l.key] {
			i.owe(key, force)
		}
	}
}

// unsettled says whether something is to be sent or answered. A client need not answer for a
// type that it has given up.
func (i *interest) unsettled() bool {
	return len(i.owed) > 0 || i.answer || len(i.subscribed) > 0 && len(i.open) > 0
}

func (i *interest) request(r *Request) {
	names := newLabels(r.Names())
	if i.delta {
		i.requestDelta(r, names)
	} else {
		i.requestSotW(r.Nonce(), names)
	}
}

// requestSotW takes the names as the whole of what is wanted, unless the request answers an
// older response than the newest: such a one is stale (xDS protocol, "ACK/NACK and
// versioning").
func (i *interest) requestSotW(nonce string, names []label) {
	if i.nonce != "" && nonce != "" {
		delete(i.open, nonce)
		if nonce != i.nonce {
			return
		}
		clear(i.open)
	}
	if i.begun = i.begun || len(names) > 0; !i.begun {
		names = []label{newLabel(wildcard)}
	}
	before := i.subscribed
	i.subscribed = make(map[string]label, len(names))
	for _, l := range names {
		if _, ok := before[l.key]; ok {
			i.subscribed[l.key] = l
		} else {
			i.subscribe(l, true)
		}
	}
}

// requestDelta acts on a request whatever the nonce, as the protocol demands of incremental
// streams. Only the first request may bring versions, and mean "*" by naming nothing. What it
// brings and does not subscribe to is forgotten.
func (i *interest) requestDelta(r *Request, names []label) {
	delete(i.open, r.Nonce())
	dropped := newLabels(r.Unsubscribed())
	first := !i.begun
	if i.begun = true; first && len(names) == 0 && len(dropped) == 0 {
		names = []label{newLabel(wildcard)}
	}
	for _, l := range names {
		i.subscribe(l, !first)
	}
	for _, l := range dropped {
		i.unsubscribe(l)
	}
	if !first {
		return
	}
	for name, version := range r.Delta.GetInitialResourceVersions() {
		l := newLabel(name)
		if it := i.shelf.find(l.key); i.covers(l) || it != nil && i.wants(it) {
			i.held[l.key] = holding{text: l.text, version: version}
			i.owe(l.key, false)
		}
	}
}

// unsubscribe ends the interest in a name, a glob or "*". What nothing else covers is forgotten. A
// name that a collection still covers is told anew, or is told to be gone, because the client
// cannot know which (xDS protocol, "Unsubscribing from Resources").
func (i *interest) unsubscribe(l label) {
	if _, ok := i.subscribed[l.key]; !ok {
		return
	}
	delete(i.subscribed, l.key)
	delete(i.owed, l.key)
	for _, it := range i.shelf.globs[l.key] {
		i.release(it)
	}
	if it := i.shelf.find(l.key); i.covers(l) || it != nil && i.wants(it) {
		i.owe(l.key, true)
	} else {
		delete(i.held, l.key)
		i.release(it)
	}
}

// release forgets an item that is no longer subscribed to; it may be nil.
func (i *interest) release(it *item) {
	if it != nil && !i.wants(it) {
		delete(i.held, it.key)
	}
}

// respond makes the next response, and notes that an answer to it is due; nil if nothing is owed.
func (i *interest) respond(nonce string) (m proto.Message) {
	if len(i.owed) == 0 && !i.answer {
		return nil
	}
	if i.delta {
		m = i.respondDelta(nonce)
	} else {
		m = i.respondSotW(nonce)
	}
	i.owed, i.answer = make(map[string]bool), false
	if m != nil {
		i.open[nonce] = struct{}{}
		i.nonce = nonce
	}
	return m
}

// respondSotW restates everything, or of partial types gives what is owed. What is gone cannot be
// said there.
func (i *interest) respondSotW(nonce string) proto.Message {
	resp := &discoveryv3.DiscoveryResponse{TypeUrl: i.typeURL, VersionInfo: i.shelf.version(), Nonce: nonce}
	items := i.wanted()
	if !i.shelf.fullState() {
		due := make(map[*item]bool, len(i.owed))
		for key := range i.owed {
			due[i.shelf.find(key)] = true
		}
		items = slices.DeleteFunc(items, func(it *item) bool { return !due[it] })
		if len(items) == 0 && !i.answer {
			return nil
		}
	}
	for _, it := range items {
		resp.Resources = append(resp.Resources, it.bare)
	}
	return resp
}

func (i *interest) respondDelta(nonce string) proto.Message {
	resp := &discoveryv3.DeltaDiscoveryResponse{TypeUrl: i.typeURL, Nonce: nonce}
	sent := make(map[*item]bool)
	for _, key := range slices.Sorted(maps.Keys(i.owed)) {
		it, gone := i.due(key, i.owed[key])
		switch {
		case it != nil && !sent[it]:
			sent[it] = true
			resp.Resources = append(resp.Resources, it.full)
			i.held[it.key] = holding{text: it.text, version: it.full.GetVersion(), item: it}
		case gone != "":
			resp.RemovedResources = append(resp.RemovedResources, gone)
			delete(i.held, key)
		}
	}
	if len(resp.Resources)+len(resp.RemovedResources) == 0 && !i.answer {
		return nil
	}
	return resp
}

// due says what an owed key comes to: an item to send, a name that is gone, or nothing.
func (i *interest) due(key string, force bool) (send *item, gone string) {
	l, subscribed := i.subscribed[key]
	held, holds := i.held[key]
	it := i.shelf.find(key)
	switch {
	case subscribed && l.many:
		if key != wildcard && len(i.shelf.globs[key]) == 0 {
			return nil, l.text
		}
	case it != nil:
		if has, ok := i.held[it.key]; i.wants(it) && (force || !ok || !has.is(it)) {
			return it, ""
		}
		i.release(it)
	case subscribed:
		return nil, l.text
	case holds:
		return nil, held.text
	case force && i.covers(newLabel(key)):
		return nil, key
	}
	return nil, ""
}
