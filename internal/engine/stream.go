package engine

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc/status"

	"github.com/xdswatch/xdswatch/internal/apiv2"
	"github.com/xdswatch/xdswatch/internal/machine"
	"github.com/xdswatch/xdswatch/internal/wire"
	"github.com/xdswatch/xdswatch/resource"
	"github.com/xdswatch/xdswatch/transport"
)

// stream is one incarnation of a stream: a writer, which also opens it, and a reader.
type stream struct {
	ref    machine.Ref
	server *server
	conn   *conn
	kind   resource.AnyType // nil of an aggregated stream
	ctx    context.Context
	cancel context.CancelFunc
	outbox chan [][]byte // one message at most
	credit chan struct{} // lets one response through to the loop

	opened time.Time // owned by the loop

	current *received // the response that is being worked on; owned by the loop
}

// received is a response with the frame that it is scanned from. Both are used again.
type received struct {
	frame    transport.Frame
	response wire.Response
	at       time.Time // zero unless it is traced
}

// stream finds a stream that stands or is being opened.
func (e *Engine) stream(r machine.Ref) *stream {
	if s := e.streams[r.Stream]; s != nil && s.ref == r {
		return s
	}
	return nil
}

// open starts a stream's writer.
func (e *Engine) open(o machine.Open) {
	server := e.server(o.Server)
	s := &stream{
		ref: o.Ref, server: server,
		outbox: make(chan [][]byte, 1), credit: make(chan struct{}, 1), opened: time.Now(),
	}
	if o.Type != nil {
		s.kind = kindOf(o.Type)
	}
	s.ctx, s.cancel = context.WithCancel(e.ctx)
	e.waits.of[o.Stream].rested(s.opened)
	if last := e.streams[o.Stream]; last != nil {
		s.conn = last.conn
	} else {
		s.conn = server.join()
	}
	e.streams[o.Stream] = s
	e.work.Go(func() { e.write(s) })
}

// Method is the gRPC method of a stream: the type's own, "" if it has none, or without a type the aggregated service's.
func Method(kind resource.AnyType, delta, v2 bool) string {
	method, ofDelta := transport.MethodADS, transport.MethodADSDelta
	// STREAM-1: a stream for each type, or one for all, in the variant of the server.
	if kind != nil {
		method, ofDelta = kind.Methods()
	}
	if delta {
		method = ofDelta
	}
	if v2 {
		// V2-2
		method = apiv2.Method(method)
	}
	return method
}

// node makes the node of a new stream.
func (e *Engine) node(server *server) []byte {
	if server.V2 {
		// V2-3
		return apiv2.Node(e.config.Node())
	}
	return e.config.Node()
}

// send puts a request into the form of the stream's version.
func (s *stream) send(to transport.Stream, msg [][]byte) error {
	if s.server.V2 {
		msg = apiv2.Request(msg, s.server.Delta)
	}
	return to.Send(msg...)
}

// scan reads a response of the stream's variant and version.
func (s *stream) scan(r *received) error {
	scan := (*wire.Response).ScanSotW
	if s.server.Delta {
		scan = (*wire.Response).ScanDelta
	}
	if err := scan(&r.response, r.frame.Parts...); err != nil {
		return err
	}
	if s.server.V2 {
		apiv2.Response(&r.response)
	}
	r.response.Renewed = r.frame.Renewed
	for i, fault := range r.frame.Faults {
		if i >= 0 && i < len(r.response.Resources) {
			r.response.Resources[i].Fault = WithText(fault)
		}
	}
	return nil
}

// allow lets the next response through.
func (s *stream) allow() {
	select {
	case s.credit <- struct{}{}:
	default:
	}
}

func (s *stream) open() (transport.Stream, error) {
	return openApart(func() (transport.Stream, error) {
		conn, err := s.conn.get(s.ctx)
		if err != nil {
			return nil, err
		}
		return conn.Open(s.ctx, Method(s.kind, s.server.Delta, s.server.V2))
	})
}

// write opens the stream and writes what the loop hands to it.
func (e *Engine) write(s *stream) {
	ts, err := s.open()
	if err != nil {
		e.post(machine.Down{Ref: s.ref, Kind: machine.FaultConnection, Err: WithText(err)})
		return
	}
	defer e.letGo(s.server, ts.Close)
	if !e.post(machine.Up{Ref: s.ref, Node: e.node(s.server)}) {
		return
	}
	e.work.Go(func() { e.read(s, ts) })
	sends := false
	defer func() {
		if sends { // for good
			e.broken(s, transportFault(recover()))
		}
	}()
	for {
		select {
		case <-s.ctx.Done():
			return
		case msg := <-s.outbox:
			sends = true
			err := s.send(ts, msg)
			if sends = false; err != nil {
				return // the reader tells why
			}
			e.post(machine.Written{Ref: s.ref})
		}
	}
}

// read scans responses. One may wait here while the last is being delivered, so that the
// end of the stream is noticed meanwhile.
func (e *Engine) read(s *stream, ts transport.Stream) {
	defer s.cancel()
	receives := false
	defer func() {
		if receives { // for good
			e.broken(s, transportFault(recover()))
		}
	}()
	for {
		receives = true
		frame, err := ts.Recv()
		receives = false
		r := e.received.Get().(*received) // not before: while nothing comes it would be held
		if e.config.Trace != nil {
			r.at = time.Now()
		}
		if r.frame = frame; err == nil {
			// STREAM-11: a frame that does not parse ends the stream.
			err = s.scan(r)
		}
		if err != nil {
			frame.Discarded().Free()
			e.broken(s, err)
			return
		}
		select {
		// FC-1: the handlers of the last response have returned.
		case <-s.credit:
		case <-s.ctx.Done():
			frame.Discarded().Free()
			return
		}
		if !e.post(arrived{s, r}) {
			frame.Discarded().Free()
		}
	}
}

// broken tells the loop that the stream ended, and why.
func (e *Engine) broken(s *stream, err error) {
	kind := machine.FaultStream
	if s.server.Polled {
		kind = machine.FaultConnection // each poll is an attempt of its own
	}
	err = WithText(err) // status.Code may ask for it
	e.post(machine.Down{Ref: s.ref, Kind: kind, Err: err, Code: int32(status.Code(err))})
}

// arrived is a response of a stream, on its way to the loop.
type arrived struct {
	stream   *stream
	received *received
}

// arrive makes it the one that is being worked on, unless its stream is over.
func (e *Engine) arrive(a arrived) (ok bool) {
	if ok = e.stream(a.stream.ref) == a.stream; ok {
		a.stream.current = a.received
	} else {
		a.received.frame.Discarded().Free()
	}
	return ok
}

// consumed takes back what a response was made of: the machine is done with it.
func (s *stream) consumed(pool *sync.Pool) {
	if r := s.current; r != nil {
		s.current = nil
		r.frame.Free()
		pool.Put(r)
	}
}

// abandon lets go of a response of a stream that is over.
func (s *stream) abandon() {
	s.cancel()
	if r := s.current; r != nil {
		r.frame.Discarded().Free() // the rest is garbage when nothing decodes it any more
	}
}

// closeStream ends a stream that nobody needs.
func (e *Engine) closeStream(r machine.Ref) {
	s := e.stream(r)
	if s == nil {
		return
	}
	s.abandon()
	delete(e.streams, r.Stream)
	e.leave(s.conn)
}
