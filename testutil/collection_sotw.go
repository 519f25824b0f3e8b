package testutil

import (
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"
)

// sotwVariant is the state-of-the-world side of an account.
type sotwVariant struct {
	named bool   // names were asked for on this stream, so that none means nothing
	nonce string // of the newest response; empty before the first
}

// request takes the names as the whole of what is wanted, unless the request answers an
// older response than the newest: such a one is stale (xDS protocol, "ACK/NACK and
// versioning").
func (v *sotwVariant) request(a *account, q *inquiry) {
	if n := q.Nonce(); v.nonce != "" && n != "" {
		delete(a.open, n)
		if n != v.nonce {
			return
		}
		clear(a.open)
	}
	v.named = v.named || len(q.names) > 0
	names := q.names
	if !v.named {
		names = []label{newLabel(wildcard)}
	}
	v.replace(a, names)
}

// replace puts a new interest in place of the old one.
func (v *sotwVariant) replace(a *account, names []label) {
	old := *a
	a.names, a.globs, a.all = make(map[string]string, len(names)), make(map[string]string), false
	for _, l := range names {
		if !old.asked(l) {
			a.ask(l, true)
			continue
		}
		switch {
		case l.key == wildcard:
			a.all = true
		case l.many:
			a.globs[l.key] = l.text
		default:
			a.names[l.key] = l.text
		}
	}
}

func (v *sotwVariant) respond(a *account, limit int, nonce string) proto.Message {
	resp := &discoveryv3.DiscoveryResponse{
		TypeUrl: a.typeURL, VersionInfo: a.shelf.version(), Nonce: nonce,
	}
	due := v.fill
	if a.shelf.fullState() {
		due = v.restate
	}
	if !due(a, resp, limit) {
		return nil
	}
	v.nonce = nonce
	return resp
}

// fill pays from the batch until a response is full. What is gone cannot be said.
func (v *sotwVariant) fill(a *account, resp *discoveryv3.DiscoveryResponse, limit int) bool {
	filling := newFilling(limit)
	for a.take() {
		key := a.batch[0].key
		it := a.shelf.find(key)
		if it != nil && (filling.has(it) || !a.wants(it)) {
			it = nil
		}
		if !filling.add(it, "") {
			break
		}
		if it != nil {
			resp.Resources = append(resp.Resources, it.bare)
		}
		delete(a.owed, key)
		a.batch = a.batch[1:]
	}
	due := a.answer || !filling.empty()
	a.answer = false
	return due
}

// holds is false: such a client says nothing of what it has.
func (v *sotwVariant) holds(string) bool { return false }

// restate fills a response with everything that is asked for, if anything is owed.
func (v *sotwVariant) restate(a *account, resp *discoveryv3.DiscoveryResponse, _ int) bool {
	due := a.take() || a.answer
	a.batch, a.answer = nil, false
	if due {
		for _, it := range a.wanted() {
			resp.Resources = append(resp.Resources, it.bare)
		}
	}
	return due
}
