package testutil

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/xdswatch/xdswatch/resource/wellknown"
)

// Methods of the aggregated service.
const (
	aggregatedSotW  = "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources"
	aggregatedDelta = "/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources"
)

// collectionMethod is what a method serves.
type collectionMethod struct {
	typeURL string // empty if aggregated
	delta   bool
}

// collectionMethods are the methods of the aggregated service and of the well-known types.
func collectionMethods() map[string]collectionMethod {
	methods := map[string]collectionMethod{
		aggregatedSotW:  {},
		aggregatedDelta: {delta: true},
	}
	for _, e := range wellknown.All() {
		sotw, delta := e.Kind.Methods()
		methods[sotw] = collectionMethod{typeURL: e.Kind.TypeURL()}
		methods[delta] = collectionMethod{typeURL: e.Kind.TypeURL(), delta: true}
	}
	delete(methods, "")
	return methods
}

// collectionStream is one stream: the grpc handler waits for its end, a reader takes
// requests into accounts, and a writer pays what they owe.
type collectionStream struct {
	collectionMethod
	id     int
	server *CollectionServer
	grpc   grpc.ServerStream
	wake   chan struct{} // holds a token while there may be something to send

	over chan struct{} // closed when the stream is over
	once sync.Once     // guards err and over
	err  error         // readable once over is closed

	// The server's mu guards these.
	accounts map[string]*account // by type URL
	order    []*account          // in the order in which they were first asked for
	nonces   int
	sending  bool // a response is on its way and not counted
}

// handle serves one stream; grpc calls it for every method.
func (s *CollectionServer) handle(r *collectionRun, methods map[string]collectionMethod, gs grpc.ServerStream) error {
	name, _ := grpc.MethodFromServerStream(gs)
	method, ok := methods[name]
	if !ok {
		return status.Errorf(codes.Unimplemented, "no method %s", name)
	}
	st := &collectionStream{
		collectionMethod: method,
		server:           s,
		grpc:             gs,
		wake:             make(chan struct{}, 1),
		over:             make(chan struct{}),
		accounts:         make(map[string]*account),
	}
	s.opened(st)
	defer s.ended(st)
	r.wg.Go(st.read)
	r.wg.Go(st.write)
	select {
	case <-st.over:
	case <-gs.Context().Done():
		st.finish(gs.Context().Err())
	}
	return st.err
}

func (s *CollectionServer) opened(st *collectionStream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts.Streams++
	s.counts.Open++
	st.id = s.counts.Streams
	s.streams[st] = struct{}{}
	s.noteChange()
}

func (s *CollectionServer) ended(st *collectionStream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts.Open--
	delete(s.streams, st)
	s.noteChange()
}

func (st *collectionStream) finish(err error) {
	st.once.Do(func() {
		st.err = err
		close(st.over)
	})
}

// poke tells the writer that something may be owed.
func (st *collectionStream) poke() {
	select {
	case st.wake <- struct{}{}:
	default:
	}
}

// settled says whether nothing is owed by either side, or on its way; the caller holds mu.
func (st *collectionStream) settled() bool {
	for _, a := range st.order {
		if !a.settled() {
			return false
		}
	}
	return !st.sending
}

// read takes requests until the stream is over.
func (st *collectionStream) read() {
	for {
		var raw []byte
		err := st.grpc.RecvMsg(&raw)
		if errors.Is(err, io.EOF) {
			st.finish(nil)
			return
		}
		if err == nil {
			err = st.take(parseRequest(st.id, st.delta, raw))
		}
		if err != nil {
			st.finish(err)
			return
		}
	}
}

// take records a request and acts on it.
func (st *collectionStream) take(r *Request) error {
	s := st.server
	if s.config.OnRequest != nil {
		s.config.OnRequest(r)
	}
	q := newInquiry(r)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, r)
	s.counts.Requests++
	if r.ErrorDetail() != nil {
		s.counts.NACKs++
	}
	defer s.noteChange()
	a, err := st.account(r)
	if err != nil {
		return err
	}
	a.request(q)
	st.poke()
	return nil
}

// account gives the account of a request's type; the caller holds mu.
func (st *collectionStream) account(r *Request) (*account, error) {
	url := r.TypeURL()
	if url == "" {
		url = st.typeURL
	}
	switch {
	case r.Err != nil:
		return nil, status.Error(codes.InvalidArgument, r.Err.Error())
	case url == "":
		return nil, status.Error(codes.InvalidArgument, "type_url is empty")
	case st.typeURL != "" && url != st.typeURL:
		return nil, status.Errorf(codes.InvalidArgument, "type_url is %s, want %s", url, st.typeURL)
	}
	a := st.accounts[url]
	if a == nil {
		a = newAccount(url, st.server.shelf(url), st.delta)
		st.accounts[url] = a
		st.order = append(st.order, a)
	}
	return a, nil
}

// write sends what is owed until the stream is over. It alone waits for a client that does
// not read.
func (st *collectionStream) write() {
	for {
		select {
		case <-st.wake:
		case <-st.over:
			return
		}
		if err := st.pay(); err != nil {
			st.finish(err)
			return
		}
	}
}

// pay sends responses until nothing is owed.
func (st *collectionStream) pay() error {
	for {
		m := st.next()
		if m == nil {
			return nil
		}
		b, err := proto.Marshal(m)
		if err != nil {
			return status.Errorf(codes.Internal, "response: %v", err)
		}
		if err := st.grpc.SendMsg(b); err != nil {
			return fmt.Errorf("send a response: %w", err)
		}
		st.sent()
	}
}

func (st *collectionStream) sent() {
	s := st.server
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts.Responses++
	st.sending = false
	s.noteChange()
}

// next makes the next response of the first account that owes one; nil if none does.
func (st *collectionStream) next() proto.Message {
	st.server.mu.Lock()
	defer st.server.mu.Unlock()
	for _, a := range st.order {
		if m := a.respond(st.server.config.MaxResponse, strconv.Itoa(st.nonces+1)); m != nil {
			st.nonces++
			st.sending = true
			return m
		}
	}
	// What was looked at and found to be nothing is settled now.
	st.server.noteChange()
	return nil
}
