package recording

import (
	"bytes"
	"context"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/transport"
)

// Builder makes connections with another builder, and records what passes on their streams.
func Builder(next transport.Builder, node string, w *Writer) transport.Builder {
	return builder{next, node, w}
}

type builder struct {
	next transport.Builder
	node string
	out  *Writer
}

// Build implements [transport.Builder].
func (b builder) Build(s bootstrap.ManagementServer) (transport.Conn, error) {
	c, err := b.next.Build(s)
	if err != nil {
		return nil, err
	}
	return conn{c, b, s.Name()}, nil
}

type conn struct {
	transport.Conn
	builder
	server string
}

// Open implements [transport.Conn].
func (c conn) Open(ctx context.Context, method string) (transport.Stream, error) {
	s, err := c.Conn.Open(ctx, method)
	if err != nil {
		return nil, err
	}
	return stream{s, c.out, Frame{Server: c.server, Node: c.node, Stream: c.out.nextStream(), Method: method, Variant: variantOf(method)}}, nil
}

type stream struct {
	transport.Stream
	out  *Writer
	head Frame // what all its frames have
}

// Send implements [transport.Stream]. A request is recorded before it is sent, so that it stands
// before its answer.
func (s stream) Send(msg ...[]byte) error {
	s.record(Request, msg)
	return s.Stream.Send(msg...)
}

// Recv implements [transport.Stream].
func (s stream) Recv() (transport.Frame, error) {
	f, err := s.Stream.Recv()
	if err == nil {
		s.record(Response, f.Parts)
	}
	return f, err
}

func (s stream) record(d Direction, parts [][]byte) {
	f := s.head
	f.Direction = d
	s.out.Write(f, bytes.Join(parts, nil))
}
