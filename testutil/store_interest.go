package testutil

import (
	"cmp"
	"maps"
	"slices"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"
)

// interest is what one stream subscribes to of one type, and what its client knows. What the client is owed
// is the difference to what there is, whenever that is looked at: one that is slow is told the newest
// state when it reads again.
type interest struct {
	typeURL    string
	shelf      *shelf
	delta      bool
	begun      bool                // delta: there was a request. State of the world: one had names
	subscribed map[string]label    // names, globs and "*", by their keys
	known      map[string]holding  // what there is as the client knows it, and what it is to be told anew
	changed    bool                // there may be a difference
	answer     bool                // a response is owed even if there is nothing to put in
	open       map[string]struct{} // nonces of the responses that are not answered yet
	nonce      string              // of the newest response; empty before the first
}

// holding is a name that there is to the client's knowledge.
type holding struct {
	label
	item *item // that the client has; nil if it is to be told anew
}

func newInterest(typeURL string, h *shelf, delta bool) *interest {
	return &interest{
		typeURL: typeURL, shelf: h, delta: delta,
		subscribed: make(map[string]label), known: make(map[string]holding), open: make(map[string]struct{}),
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

// wanted are all items that are subscribed to, in the order of their names.
func (i *interest) wanted() (items []*item) {
	for _, it := range i.shelf.items {
		if i.wants(it) {
			items = append(items, it)
		}
	}
	slices.SortFunc(items, func(x, y *item) int { return cmp.Compare(x.key, y.key) })
	return items
}

// tell has a name told anew: what there is, or that there is nothing.
func (i *interest) tell(l label) {
	i.known[l.key] = holding{label: l}
	i.changed = true
}

// subscribe begins an interest in a name or a collection. What there is of it is told anew, if the client
// cannot have said what it holds.
func (i *interest) subscribe(l label, anew bool) {
	i.subscribed[l.key] = l
	i.changed = true
	if i.answer = i.answer || l.many; l.key != wildcard {
		i.tell(l)
	}
	if !anew {
		return
	}
	if it := i.shelf.find(l.key); it != nil {
		i.tell(it.label)
	}
	if l.many {
		for _, it := range i.shelf.items {
			if it.glob == l.key {
				i.tell(it.label)
			}
		}
	}
}

// unsettled says whether something is to be sent or answered. A client need not answer for a
// type that it has given up.
func (i *interest) unsettled() bool {
	return i.changed || i.answer || len(i.subscribed) > 0 && len(i.open) > 0
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
	i.forget()
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
	if len(dropped) > 0 {
		i.forget()
	}
	if !first {
		return
	}
	for name, version := range r.Delta.GetInitialResourceVersions() {
		l := newLabel(name)
		it := i.shelf.find(l.key)
		if !i.covers(l) && (it == nil || !i.wants(it)) {
			continue
		}
		if it != nil && it.full.GetVersion() != version {
			it = nil
		}
		i.known[l.key] = holding{l, it}
	}
}

// unsubscribe ends the interest in a name, a glob or "*". A name that a collection still covers is told
// anew, or is told to be gone, because the client cannot know which (xDS protocol, "Unsubscribing from
// Resources").
func (i *interest) unsubscribe(l label) {
	if _, ok := i.subscribed[l.key]; !ok {
		return
	}
	delete(i.subscribed, l.key)
	if it := i.shelf.find(l.key); it != nil && i.wants(it) {
		i.tell(it.label)
	} else if i.covers(l) {
		i.tell(l)
	}
}

// forget drops what nothing covers any more.
func (i *interest) forget() {
	maps.DeleteFunc(i.known, func(_ string, h holding) bool {
		return !i.covers(h.label) && (h.item == nil || !i.wants(h.item))
	})
}

// difference is what the client does not know: the items that it has not, and the names that are gone. It
// is told of them now.
func (i *interest) difference() (due []*item, gone []string) {
	there := make(map[string]bool)
	for _, it := range i.wanted() {
		for _, l := range it.keys() {
			there[l.key] = true
		}
		there[it.glob] = true
		if has := i.known[it.key].item; has == nil || !has.sameAs(it) {
			due = append(due, it)
			i.known[it.key] = holding{it.label, it}
		}
	}
	for key, h := range i.known {
		l, subscribed := i.subscribed[key]
		switch {
		case there[key]:
			continue
		case subscribed:
			gone = append(gone, l.text)
		case i.shelf.items[key] == nil: // else it was subscribed to by an alias that it has no more
			gone = append(gone, h.text)
		}
		delete(i.known, key)
	}
	slices.Sort(gone)
	for key, l := range i.subscribed {
		if _, ok := i.known[key]; !ok && there[key] && key != wildcard {
			i.known[key] = holding{label: l} // an alias or a glob, which may go again
		}
	}
	return due, gone
}

// respond makes the next response, and notes that an answer to it is due; nil if nothing is owed. In state
// of the world it restates everything, or of partial types gives what is owed: what is gone cannot be said
// there.
func (i *interest) respond(nonce string) proto.Message {
	if !i.changed && !i.answer {
		return nil
	}
	due, gone := i.difference()
	if !i.delta && !i.shelf.fullState() {
		gone = nil
	}
	owed := i.answer || len(due)+len(gone) > 0
	if i.changed, i.answer = false, false; !owed {
		return nil
	}
	i.open[nonce] = struct{}{}
	i.nonce = nonce
	if i.delta {
		resp := &discoveryv3.DeltaDiscoveryResponse{TypeUrl: i.typeURL, Nonce: nonce, RemovedResources: gone}
		for _, it := range due {
			resp.Resources = append(resp.Resources, it.full)
		}
		return resp
	}
	if i.shelf.fullState() {
		due = i.wanted()
	}
	resp := &discoveryv3.DiscoveryResponse{TypeUrl: i.typeURL, VersionInfo: i.shelf.version(), Nonce: nonce}
	for _, it := range due {
		resp.Resources = append(resp.Resources, it.bare)
	}
	return resp
}
