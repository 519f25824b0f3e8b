package testutil

import (
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"
)

// deltaVariant is the incremental side of an account.
type deltaVariant struct {
	begun bool               // there was a request on this stream
	held  map[string]holding // what the client was sent or said that it has, by key
}

// holding is a resource that a client has.
type holding struct {
	text    string // its name as the client knows it
	version string
	item    *item // nil if the client brought it from elsewhere
}

// is says whether the client needs nothing but what it holds.
func (h holding) is(it *item) bool {
	if h.item != nil {
		return it.sameAs(h.item)
	}
	return h.version == it.full.GetVersion()
}

func (d *deltaVariant) holds(key string) bool {
	_, ok := d.held[key]
	return ok
}

// request acts on interest whatever the nonce, as the protocol demands of incremental
// streams. Only the first request may bring versions, and mean "*" by asking for nothing.
func (d *deltaVariant) request(a *account, q *inquiry) {
	delete(a.open, q.Nonce())
	first := !d.begun
	d.begun = true
	if first {
		d.resume(a, q)
	}
	for _, l := range q.names {
		a.ask(l, !first)
	}
	for _, l := range q.dropped {
		d.drop(a, l)
	}
	if first {
		d.forget(a, q.initial)
	}
}

func (d *deltaVariant) resume(a *account, q *inquiry) {
	versions := q.Delta.GetInitialResourceVersions()
	for _, l := range q.initial {
		d.held[l.key] = holding{text: l.text, version: versions[l.text]}
		a.owe(l.key, false)
	}
	if len(q.names) == 0 && len(q.dropped) == 0 {
		a.ask(newLabel(wildcard), false)
	}
}

// forget drops what a client has from an earlier stream and does not ask for now.
func (d *deltaVariant) forget(a *account, initial []label) {
	for _, l := range initial {
		it := a.shelf.find(l.key)
		if !a.covers(l) && (it == nil || !a.wants(it)) {
			delete(d.held, l.key)
			delete(a.owed, l.key)
		}
	}
}

// drop ends interest. What no other interest covers is forgotten. A name that a collection
// covers still is told anew, or is told to be gone, because the client cannot know which
// (xDS protocol, "Unsubscribing from Resources").
func (d *deltaVariant) drop(a *account, l label) {
	switch {
	case l.key == wildcard:
		a.all = false
		for key := range d.held {
			d.release(a, a.shelf.find(key))
		}
	case l.many:
		delete(a.globs, l.key)
		delete(a.owed, l.key)
		for _, it := range a.shelf.globs[l.key] {
			d.release(a, it)
		}
	default:
		d.dropName(a, l)
	}
}

func (d *deltaVariant) dropName(a *account, l label) {
	if _, ok := a.names[l.key]; !ok {
		return
	}
	delete(a.names, l.key)
	it := a.shelf.find(l.key)
	switch {
	case a.covers(l), it != nil && a.wants(it):
		a.owe(l.key, true)
	default:
		delete(a.owed, l.key)
		delete(d.held, l.key)
		d.release(a, it)
	}
}

// release forgets an item that is no longer asked for.
func (d *deltaVariant) release(a *account, it *item) {
	if it != nil && !a.wants(it) {
		delete(d.held, it.key)
	}
}

// respond pays from the batch until a response is full.
func (d *deltaVariant) respond(a *account, limit int, nonce string) proto.Message {
	resp := &discoveryv3.DeltaDiscoveryResponse{TypeUrl: a.typeURL, Nonce: nonce}
	filling := newFilling(limit)
	for a.take() {
		it, gone := d.due(a, a.batch[0])
		if filling.has(it) {
			it = nil
		}
		if !filling.add(it, gone) {
			break
		}
		if it != nil {
			resp.Resources = append(resp.Resources, it.full)
			d.held[it.key] = holding{text: it.text, version: it.full.GetVersion(), item: it}
		}
		if gone != "" {
			resp.RemovedResources = append(resp.RemovedResources, gone)
			delete(d.held, a.batch[0].key)
		}
		a.batch = a.batch[1:]
	}
	if filling.empty() && !a.answer {
		return nil
	}
	a.answer = false
	return resp
}

// due says what a debt comes to: an item to send, a name that is gone, or nothing.
func (d *deltaVariant) due(a *account, b debt) (send *item, gone string) {
	if text, ok := a.globs[b.key]; ok {
		if len(a.shelf.globs[b.key]) == 0 {
			return nil, text
		}
		return nil, ""
	}
	held, holds := d.held[b.key]
	if it := a.shelf.find(b.key); it != nil {
		switch has, ok := d.held[it.key]; {
		case !a.wants(it):
			delete(d.held, it.key)
		case b.force || !ok || !has.is(it):
			return it, ""
		}
		return nil, ""
	}
	switch text, asked := a.names[b.key]; {
	case asked:
		return nil, text
	case holds:
		return nil, held.text
	case b.force && a.covers(newLabel(b.key)):
		return nil, b.key
	}
	return nil, ""
}
