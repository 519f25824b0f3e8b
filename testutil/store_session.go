package testutil

import (
	"context"
	"maps"
	"slices"
	"strconv"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// session is what a [Store] does on one stream: requests change its interests, and a
// writer sends what these lack. The store's mu guards it.
type session struct {
	store     *Store
	stream    *Stream
	typeURL   string      // empty if aggregated
	interests []*interest // in the order in which they were first subscribed to
	nonces    int
}

func (s *Store) opened(st *Stream) {
	url, ok := methods()[st.Method]
	if !ok {
		st.End(status.Errorf(codes.Unimplemented, "no method %s", st.Method))
		return
	}
	x := &session{store: s, stream: st, typeURL: url}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sessions[st] = x
	s.update(func(c *Counters) {
		c.Streams++
		c.Open++
	})
	st.server.wg.Go(x.write)
}

func (s *Store) ended(st *Stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sessions, st)
	s.update(func(c *Counters) { c.Open-- })
}

// heard acts on a request.
func (s *Store) heard(st *Stream, r *Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.update(r.count)
	x := s.sessions[st]
	if x == nil {
		return // it is over
	}
	i, err := x.interestOf(r)
	if err != nil {
		st.End(err)
		return
	}
	i.request(r)
}

// interestOf gives the interest of a request's type; the caller holds mu.
func (x *session) interestOf(r *Request) (*interest, error) {
	url := r.TypeURL()
	if url == "" {
		url = x.typeURL
	}
	switch {
	case r.Err != nil:
		return nil, status.Error(codes.InvalidArgument, r.Err.Error())
	case url == "":
		return nil, status.Error(codes.InvalidArgument, "type_url is empty")
	case x.typeURL != "" && url != x.typeURL:
		return nil, status.Errorf(codes.InvalidArgument, "type_url is %s, want %s", url, x.typeURL)
	}
	if i := x.interestIn(url); i != nil {
		return i, nil
	}
	i := &interest{
		typeURL: url, shelf: x.store.shelf(url), delta: x.stream.Delta,
		subscribed: make(map[string]label), known: make(map[string]*item), anew: make(map[string]struct{}),
	}
	x.interests = append(x.interests, i)
	return i, nil
}

// interestIn gives the interest of a type, or nil.
func (x *session) interestIn(url string) *interest {
	for _, i := range x.interests {
		if i.typeURL == url {
			return i
		}
	}
	return nil
}

// write sends what is owed until the stream is over. It alone waits for a client that does
// not read.
func (x *session) write() {
	defer x.store.ended(x.stream)
	var m proto.Message
	for x.store.await(x.stream.ctx, context.Background(), func() bool { m = x.next(); return m != nil }) == nil {
		_ = x.stream.Send(m) // fails if the stream is over, or will be soon
	}
}

// next makes the next response, of the first interest that owes one; nil if none does.
func (x *session) next() proto.Message {
	x.store.mu.Lock()
	defer x.store.mu.Unlock()
	if x.store.held {
		return nil
	}
	for _, i := range x.interests {
		if !i.due() {
			continue
		}
		if m := i.respond(strconv.Itoa(x.nonces + 1)); m != nil {
			x.nonces++
			x.store.update(func(c *Counters) { c.Responses++ })
			return m
		}
		x.store.happened() // what was looked at and found to be nothing is settled now
	}
	return nil
}

// Subscribed is what the streams that are open now subscribe to of a type: names and globs in
// their canonical text, and "*"; sorted, and each of them once.
func (s *Store) Subscribed(typeURL string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make(map[string]label)
	for _, x := range s.sessions {
		if i := x.interestIn(typeURL); i != nil {
			maps.Copy(all, i.subscribed)
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// Settle waits until the clients know all that the server has to say: nothing is left to be
// sent on any open stream, and every response is answered. What a client has not subscribed to
// yet is not waited for: see that it is [Store.Subscribed] first, with
// [Store.Await]. The error is that of ctx.
func (s *Store) Settle(ctx context.Context) error {
	return s.Await(ctx, func(Counters) bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, x := range s.sessions {
			if slices.ContainsFunc(x.interests, (*interest).unsettled) {
				return false
			}
		}
		return true
	})
}
