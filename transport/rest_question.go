package transport

import (
	"slices"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"

	"github.com/xdswatch/xdswatch/transport/internal/restjson"
)

// question is what the next poll asks: the newest request, with what requests of a stream
// leave out since they were said before, and without what was said once.
type question struct {
	v2       bool                          // it is for a server of version 2
	request  *discoveryv3.DiscoveryRequest // nil before the first
	node     *corev3.Node                  // of the stream's first request
	body     []byte                        // its JSON; nil until it is needed
	bodyFull bool                          // that says no version
	interest int                           // counts the changes of what is wanted
	from     *restEndpoint                 // of the last response; nil if there was none

	// urgent says that what is wanted changed since the last poll began.
	urgent bool
	// owed says that nothing was sent since the last response was handed over: its answer
	// is still to come.
	owed bool
	// added says that something is wanted that no response has covered. A server that
	// compares versions alone has nothing new to say then, though it was never asked.
	added bool
	// refused says that the last response was. Something of it may be used, or what it replaces may be gone, so a server that
	// goes back to the version that polls say would have to say that again.
	refused bool
	// whole has the poll leave out the version, so that the server has to say everything.
	whole bool
	// limited says that the last response has a time to live, which each answer begins anew: polls leave out the version
	// too, since a server that says that nothing is new would let it pass.
	limited bool

	// seen is a hash of the last response, to the interest seenOf; 0 if there was none.
	seen   uint64
	seenOf int
}

// poll is one that was begun.
type poll struct {
	request  *discoveryv3.DiscoveryRequest
	body     []byte
	interest int
	whole    bool // it says no version
}

// take takes a request as the next thing to say. It becomes the question's own.
func (q *question) take(r *discoveryv3.DiscoveryRequest) {
	if r.GetNode() != nil {
		q.urgent = q.urgent || !proto.Equal(q.node, r.GetNode())
		q.node = r.GetNode()
	}
	// REST-1: each poll has the node.
	r.Node = q.node
	if old := q.request; old == nil {
		q.urgent = true
	} else if had, names := wanted(old), wanted(r); !slices.Equal(had, names) {
		q.urgent = true
		q.interest++
		q.added = q.added || grown(had, names)
	}
	q.refused = q.refused || r.GetErrorDetail() != nil
	if old := q.request.GetErrorDetail(); r.GetErrorDetail() == nil && old != nil {
		// REST-4: the error goes with the next poll.
		r.ErrorDetail = old // no poll has carried it yet
	}
	q.request, q.body, q.owed = r, nil, false
}

// wanted are the names that a request asks for, with parameters or without.
func wanted(r *discoveryv3.DiscoveryRequest) []string {
	names := slices.Clip(r.GetResourceNames()) // to be shared, not appended to
	for _, l := range r.GetResourceLocators() {
		names = append(names, l.GetName())
	}
	return names
}

// grown says whether more is wanted than was; no names at all are everything.
func grown(old, names []string) bool {
	if len(names) == 0 {
		return len(old) > 0
	}
	had := make(map[string]struct{}, len(old))
	for _, name := range old {
		had[name] = struct{}{}
	}
	return slices.ContainsFunc(names, func(name string) bool {
		_, ok := had[name]
		return !ok
	})
}

// begin is the poll that is due, of an endpoint.
func (q *question) begin(e *restEndpoint) (poll, error) {
	// TTL-1: each receipt sets the time anew.
	// REST-5: replicas count versions apart.
	full := q.whole || q.limited || q.from != nil && q.from != e
	if q.body == nil || q.bodyFull != full {
		version := q.request.VersionInfo
		if full {
			q.request.VersionInfo = ""
		}
		write := restjson.Request
		if q.v2 {
			write = restjson.RequestV2
		}
		body, err := write(q.request)
		q.request.VersionInfo = version
		if err != nil {
			return poll{}, err
		}
		q.body, q.bodyFull = body, full
	}
	q.urgent = false
	return poll{q.request, q.body, q.interest, full || q.request.GetVersionInfo() == ""}, nil
}

// answered notes that a poll was: what it said once it need not say again.
func (q *question) answered(p poll) {
	if q.request == p.request && q.request.ErrorDetail != nil {
		q.request.ErrorDetail, q.body = nil, nil
	}
}

// unchanged notes the answer that nothing is. Of what was added since the last response it
// may not speak at all, nor of what was refused: then the server is asked for everything.
func (q *question) unchanged(p poll) {
	if (q.added || q.refused) && q.interest == p.interest {
		q.whole = !p.whole
		q.added = q.added && q.whole
		q.urgent = q.urgent || q.whole
	}
}

// fresh notes a response, and says whether it is another than the last. One to a changed
// interest always is.
func (q *question) fresh(p poll, hash uint64) bool {
	if q.interest == p.interest && (q.added || q.whole) {
		q.added, q.whole = false, false
	}
	same := q.seen == hash && q.seenOf == p.interest
	q.seen, q.seenOf = hash, p.interest
	return !same
}

// handOver notes that a response goes to who will answer it. What it answered is no news.
func (q *question) handOver() {
	q.owed, q.refused = true, false
	if q.request.ErrorDetail != nil {
		q.request.ErrorDetail, q.body = nil, nil
	}
}
