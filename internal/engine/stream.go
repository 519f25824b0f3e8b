package engine

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"google.golang.org/grpc/status"

	"github.com/xdswatch/xdswatch/internal/apiv2"
	"github.com/xdswatch/xdswatch/internal/machine"
	"github.com/xdswatch/xdswatch/internal/wire"
	"github.com/xdswatch/xdswatch/transport"
)

// stream is one incarnation of a stream: a writer, which also opens it, and a reader.
type stream struct {
	ref    machine.Ref
	number int // of the server
	server *Server
	conn   transport.Conn
	method string
	ctx    context.Context
	cancel context.CancelFunc
	outbox chan [][]byte // one message at most
	credit chan struct{} // lets one response through to the loop

	opened time.Time // owned by the loop

	// current is the response that the loop works on: the reader's until it is posted,
	// then the loop's until it lets the next one through.
	current *received
}

// received is a response with the frame that it is scanned from. Both are used again.
type received struct {
	frame    transport.Frame
	response wire.Response
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
		ref: o.Ref, number: o.Server, server: server, method: e.methodOf(server, o.TypeURL),
		outbox: make(chan [][]byte, 1), credit: make(chan struct{}, 1), opened: time.Now(),
	}
	s.ctx, s.cancel = context.WithCancel(e.ctx)
	e.retries[o.Stream].rested(s.opened)
	if e.streams[o.Stream] == nil {
		e.used[server]++
	}
	e.streams[o.Stream] = s
	e.created(o.Server)
	var err error
	if s.conn, err = e.connect(server); err != nil {
		e.again = append(e.again, machine.Down{Ref: s.ref, Kind: machine.FaultConnection, Err: err})
		return
	}
	e.work.Go(func() { e.write(s) })
}

// connect finds or makes the connection of a server, which all its streams share.
func (e *Engine) connect(server *Server) (transport.Conn, error) {
	conn := e.conns[server]
	if conn == nil {
		var err error
		if conn, err = server.Connect(); err != nil {
			return nil, err
		}
		e.conns[server] = conn
	}
	return conn, nil
}

// methodOf is the gRPC method of a stream: the aggregated service's, or the type's own.
func (e *Engine) methodOf(server *Server, typeURL string) string {
	sotw, delta := transport.MethodADS, transport.MethodADSDelta
	if typeURL != "" {
		sotw, delta = e.kinds[typeURL].Methods()
	}
	method := sotw
	if server.Delta {
		method = delta
	}
	if server.V2 {
		return apiv2.Method(method)
	}
	return method
}

// node makes the node of a new stream.
func (e *Engine) node(server *Server) []byte {
	if server.V2 {
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
	return nil
}

// allow lets the next response through.
func (s *stream) allow() {
	select {
	case s.credit <- struct{}{}:
	default:
	}
}

func (s *stream) end() { s.cancel() }

// write opens the stream and writes what the loop hands to it.
func (e *Engine) write(s *stream) {
	ts, err := s.conn.Open(s.ctx, s.method)
	if err != nil {
		e.post(machine.Down{Ref: s.ref, Kind: machine.FaultConnection, Err: err})
		return
	}
	defer ts.Close()
	if !e.post(machine.Up{Ref: s.ref, Node: e.node(s.server)}) {
		return
	}
	e.work.Go(func() { e.read(s, ts) })
	for {
		select {
		case <-s.ctx.Done():
			return
		case msg := <-s.outbox:
			if s.send(ts, msg) != nil {
				return // the reader tells why
			}
			e.post(machine.Written{Ref: s.ref})
		}
	}
}

// read scans responses. One may wait here while the last is being delivered, so that the
// end of the stream is noticed meanwhile.
func (e *Engine) read(s *stream, ts transport.Stream) {
	defer s.end()
	for {
		frame, err := ts.Recv()
		r := e.received.Get().(*received) // not before: while nothing comes it would be held
		if r.frame = frame; err == nil {
			err = s.scan(r)
		}
		if err != nil {
			kind := machine.FaultStream
			if s.server.Polled {
				kind = machine.FaultConnection // each poll is an attempt of its own
			}
			e.post(machine.Down{Ref: s.ref, Kind: kind, Err: err, Code: int32(status.Code(err))})
			return
		}
		select {
		case <-s.credit:
		case <-s.ctx.Done():
			return
		}
		s.current = r
		e.post(machine.Received{Ref: s.ref, Response: &r.response})
	}
}

// consumed takes back what a response was made of: the machine is done with it.
func (s *stream) consumed(pool *sync.Pool) {
	if r := s.current; r != nil {
		s.current = nil
		r.frame.Free()
		pool.Put(r)
	}
}

// ended notes that a stream is down.
func (e *Engine) ended(ev machine.Down) {
	s := e.stream(ev.Ref)
	if s == nil {
		return
	}
	s.end()
	e.down = append(e.down, ev.Ref)
	uri := s.server.URI
	if text := ev.Err.Error(); ev.Kind == machine.FaultConnection && !machine.SameText(e.lastFault[uri], text) {
		e.lastFault[uri] = text
		e.say(slog.LevelWarn, "the server cannot be reached", uri, "", "error", brief(text))
	}
}

// forgetDown lets go of streams that ended and that nobody wants back.
func (e *Engine) forgetDown() {
	for _, ref := range e.down {
		if r := e.retries[ref.Stream]; r == nil || !r.waiting {
			e.closeStream(ref)
		}
	}
	e.down = nil
}

// closeStream ends a stream that nobody needs, and its connection with the last of it.
func (e *Engine) closeStream(r machine.Ref) {
	s := e.stream(r)
	if s == nil {
		return
	}
	s.end()
	delete(e.streams, r.Stream)
	delete(e.health[s.number].failing, r.Stream)
	if e.used[s.server]--; e.used[s.server] > 0 {
		return
	}
	delete(e.used, s.server)
	delete(e.conns, s.server) // the next stream dials anew
	if s.conn != nil {
		e.closeConn(s.conn)
	}
}

// closeConn closes a connection without waiting: gRPC waits up to seconds for a peer that
// does not read.
func (e *Engine) closeConn(conn transport.Conn) {
	e.work.Go(func() { _ = conn.Close() }) // nobody is left to hear of it
}
