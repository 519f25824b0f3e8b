package testutil

import (
	"cmp"
	"slices"
	"strconv"

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
	known      map[string]*item    // what there is to the client's knowledge; only a label if it does not have the resource
	anew       map[string]struct{} // names and collections of which everything is told, also what the client has
	seen       int                 // the revision of the shelf when the difference was looked at; -1 to look anew
	answer     bool                // a response is owed even if there is nothing to put in
	nonce      string              // of the newest response; empty before the first
	open       bool                // that one is not answered yet
}

// hasAny says whether a map has any of the keys.
func hasAny[V any](m map[string]V, keys []string) bool {
	return slices.ContainsFunc(keys, func(key string) bool {
		_, ok := m[key]
		return ok
	})
}

// wanted are all items that are subscribed to, in the order of their names.
func (i *interest) wanted() (items []*item) {
	for _, it := range i.shelf.items {
		if hasAny(i.subscribed, it.keys) {
			items = append(items, it)
		}
	}
	slices.SortFunc(items, func(x, y *item) int { return cmp.Compare(x.key, y.key) })
	return items
}

// tell has a name or a collection told anew: what there is, or that there is nothing.
func (i *interest) tell(l label) {
	i.known[l.key] = &item{label: l}
	i.anew[l.key] = struct{}{}
	i.seen = -1
}

func (i *interest) subscribe(l label) {
	i.subscribed[l.key] = l
	i.answer = i.answer || l.many
	i.tell(l)
}

// due says whether there may be something to send.
func (i *interest) due() bool { return i.answer || i.seen != i.shelf.revision }

// unsettled says whether something is to be sent or answered. A client need not answer for a
// type that it has given up.
func (i *interest) unsettled() bool {
	return i.due() || len(i.subscribed) > 0 && i.open
}

func (i *interest) request(r *Request) {
	names := newLabels(r.Names())
	if r.Nonce() == i.nonce {
		i.open = false
	}
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
	if i.nonce != "" && nonce != "" && nonce != i.nonce {
		return
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
			i.subscribe(l)
		}
	}
}

// requestDelta acts on a request whatever the nonce, as the protocol demands of incremental
// streams. Only the first request may bring versions, of what is not told anew then, and mean "*" by
// naming nothing.
func (i *interest) requestDelta(r *Request, names []label) {
	dropped := newLabels(r.Unsubscribed())
	first := !i.begun
	if i.begun = true; first && len(names) == 0 && len(dropped) == 0 {
		names = []label{newLabel(wildcard)}
	}
	for _, l := range names {
		i.subscribe(l)
	}
	for _, l := range dropped {
		i.unsubscribe(l)
	}
	if !first {
		return
	}
	clear(i.anew)
	for name, version := range r.Delta.GetInitialResourceVersions() {
		l := newLabel(name)
		if it := i.shelf.items[l.key]; it != nil && it.full.GetVersion() == version {
			i.known[l.key] = it
		} else {
			i.known[l.key] = &item{label: l}
		}
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
	if !l.many {
		i.tell(l)
	}
}

// difference is what the client does not know: the items that it has not, and the names that are gone of
// what it subscribes to. It is told of them now.
func (i *interest) difference() (due []*item, gone []string) {
	there := make(map[string]*item)
	for _, it := range i.wanted() {
		has := i.known[it.key]
		if !has.sameAs(it) || hasAny(i.anew, it.keys) {
			has = it
			due = append(due, it)
		}
		there[it.key] = has
		for _, key := range it.keys {
			if l, ok := i.subscribed[key]; ok && there[key] == nil {
				there[key] = &item{label: l} // an alias or a collection, which may go again
			}
		}
	}
	for key, it := range i.known {
		l, subscribed := i.subscribed[key]
		switch {
		case there[key] != nil, key == wildcard, !hasAny(i.subscribed, it.keys):
		case subscribed:
			gone = append(gone, l.text)
		case i.shelf.items[key] == nil: // else it was subscribed to by an alias that it has no more
			gone = append(gone, it.text)
		}
	}
	slices.Sort(gone)
	i.known = there
	clear(i.anew)
	return due, gone
}

// respond makes the next response, and notes that an answer to it is due; nil if nothing is owed. In state
// of the world it restates everything, or of partial types gives what is owed: what is gone cannot be said
// there.
func (i *interest) respond(nonce string) proto.Message {
	due, gone := i.difference()
	if !i.delta && !i.shelf.fullState {
		gone = nil
	}
	owed := i.answer || len(due)+len(gone) > 0
	i.answer, i.seen = false, i.shelf.revision
	if !owed {
		return nil
	}
	i.nonce, i.open = nonce, true
	if i.delta {
		resp := &discoveryv3.DeltaDiscoveryResponse{TypeUrl: i.typeURL, Nonce: nonce, RemovedResources: gone}
		for _, it := range due {
			resp.Resources = append(resp.Resources, it.full)
		}
		return resp
	}
	if i.shelf.fullState {
		due = i.wanted()
	}
	resp := &discoveryv3.DiscoveryResponse{TypeUrl: i.typeURL, VersionInfo: strconv.Itoa(i.shelf.revision), Nonce: nonce}
	for _, it := range due {
		resp.Resources = append(resp.Resources, it.bare)
	}
	return resp
}
