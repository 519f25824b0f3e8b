package testutil

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
)

// ErrStreamOver is the error of a stream that was ended by either side.
var ErrStreamOver = errors.New("stream is over")

// Stream is one stream of a [Server], played by the test. Its methods are safe for
// concurrent use.
type Stream struct {
	// ID counts the server's streams from 1. The order of streams that a client opens at
	// the same moment is not defined.
	ID int
	// Method is the full gRPC method, "/package.Service/StreamThings".
	Method string
	// Delta says that the stream is of the delta variant, by the name of its method.
	Delta bool
	// Metadata is what the client sent as headers.
	Metadata metadata.MD

	server   *Server
	grpc     grpc.ServerStream
	requests feed[*Request]
	sending  chan struct{} // has room while nobody sends

	ctx context.Context         // done when the stream is over
	end context.CancelCauseFunc // with errEnded for nil

	stopped atomic.Bool // reading
	resumed change
}

// errEnded is the cause of the end of a stream that was ended with status OK.
var errEnded = errors.New("ended with OK")

func (s *Server) newStream(gs grpc.ServerStream) *Stream {
	method, _ := grpc.MethodFromServerStream(gs)
	md, _ := metadata.FromIncomingContext(gs.Context())
	st := &Stream{
		Method:   method,
		Delta:    isDelta(method),
		Metadata: md,
		server:   s,
		grpc:     gs,
		sending:  make(chan struct{}, 1),
	}
	st.ctx, st.end = context.WithCancelCause(gs.Context())
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opened++
	st.ID = s.opened
	if !s.unrecorded {
		s.streams.add(st)
	}
	return st
}

// Next waits for the next request that was not taken yet. Its errors are those of ctx
// and, after the last request, [ErrStreamOver].
func (st *Stream) Next(ctx context.Context) (*Request, error) {
	r, err := st.requests.next(ctx, st.ctx)
	if err != nil {
		return nil, st.fault("next request", err)
	}
	return r, nil
}

// Requests are all requests of the stream so far, taken or not.
func (st *Stream) Requests() []*Request { return st.requests.all() }

// Send sends a message, a response as a rule. It blocks while the client's flow control
// does, until the stream is over. A nil error means that the message is on its way, not
// that it arrived.
func (st *Stream) Send(m proto.Message) error {
	b, err := proto.Marshal(m)
	if err != nil {
		return fmt.Errorf("stream %d: send: %w", st.ID, err)
	}
	return st.send(b)
}

// SendBytes sends a message of any bytes and size, and is otherwise like Send. The bytes
// are copied.
func (st *Stream) SendBytes(b []byte) error { return st.send(bytes.Clone(b)) }

func (st *Stream) send(b []byte) error {
	select {
	case st.sending <- struct{}{}:
		defer func() { <-st.sending }()
	case <-st.Done():
	}
	err := st.ctx.Err()
	if err == nil {
		err = st.grpc.SendMsg(b)
	}
	if err != nil {
		return st.fault("send", err)
	}
	return nil
}

// fault is the error of what was done on the stream: that it is over, if so.
func (st *Stream) fault(doing string, err error) error {
	if st.ctx.Err() != nil {
		err = fmt.Errorf("%w: %w", ErrStreamOver, context.Cause(st.ctx))
	}
	return fmt.Errorf("stream %d: %s: %w", st.ID, doing, err)
}

// End ends the stream, after what was sent before. Nil ends it with status OK, which is
// io.EOF to the client; an error of package status with that status, any other error with
// the code Unknown. Ending a stream that is over does nothing. End does not wait for the
// client.
func (st *Stream) End(err error) {
	if err == nil {
		err = errEnded
	}
	st.end(err)
}

// Done is closed when the stream is over: ended by the script, or closed or broken by the
// client or the network.
func (st *Stream) Done() <-chan struct{} { return st.ctx.Done() }

// Err is nil before Done is closed. Then it is what End was given, io.EOF if the client
// closed its side in good order, or the error of a stream that was cancelled or broke.
func (st *Stream) Err() error {
	err := context.Cause(st.ctx)
	if err == errEnded {
		return nil
	}
	return err
}

// StopReading leaves requests unread from now on, so that the client's sends block once
// the flow-control window is full (64 KiB, if nothing else is asked of grpc). No request
// is recorded until ResumeReading; one may already have been read, and waits.
func (st *Stream) StopReading() { st.stopped.Store(true) }

// ResumeReading ends what StopReading began.
func (st *Stream) ResumeReading() {
	st.stopped.Store(false)
	st.resumed.happened()
}

// read takes requests until the stream is over.
func (st *Stream) read() {
	for st.pass() {
		var raw []byte
		if err := st.grpc.RecvMsg(&raw); err != nil {
			st.end(err)
			return
		}
		if !st.pass() {
			return
		}
		r := parseRequest(st.ID, st.Delta, raw)
		if !st.server.unrecorded {
			st.server.requests.add(r)
			st.requests.add(r)
		}
		for _, f := range st.server.onRequest {
			f(st, r)
		}
	}
}

// pass waits while reading is stopped, and says whether the stream goes on.
func (st *Stream) pass() bool {
	err := st.resumed.await(st.ctx, context.Background(), func() bool { return !st.stopped.Load() })
	return err == nil && st.ctx.Err() == nil
}
