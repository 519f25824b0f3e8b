package transport

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"
	"time"

	"golang.org/x/net/http2"
	"google.golang.org/grpc/credentials"
)

// guarded are transport credentials whose connections are bounded in what the server's frames take
// in memory, and in how long a close may wait for the server to read.
type guarded struct {
	credentials.TransportCredentials
	bounds
}

// bounds are those of a connection's messages.
type bounds struct {
	largest int // message, in bytes
	holder  *holder
}

// ClientHandshake is documented at [credentials.TransportCredentials].
func (g guarded) ClientHandshake(ctx context.Context, authority string, raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	c, info, err := g.TransportCredentials.ClientHandshake(ctx, authority, hasty{raw})
	if err != nil {
		return nil, nil, err
	}
	return &frameConn{Conn: c, bounds: g.bounds, sentLeft: len(http2.ClientPreface), streams: map[uint32]*unfinished{}}, info, nil
}

// Clone is documented at [credentials.TransportCredentials].
func (g guarded) Clone() credentials.TransportCredentials {
	return guarded{g.TransportCredentials.Clone(), g.bounds}
}

// guardedBundle is a program's bundle with guarded credentials.
type guardedBundle struct {
	credentials.Bundle
	bounds
}

// TransportCredentials is documented at [credentials.Bundle].
func (b guardedBundle) TransportCredentials() credentials.TransportCredentials {
	return guarded{b.Bundle.TransportCredentials(), b.bounds}
}

// NewWithMode is documented at [credentials.Bundle].
func (b guardedBundle) NewWithMode(mode string) (credentials.Bundle, error) {
	made, err := b.Bundle.NewWithMode(mode)
	if err != nil {
		return nil, err
	}
	return guardedBundle{made, b.bounds}, nil
}

// hasty is a connection that waits for its server to read no longer than a close may take. gRPC and
// TLS set deadlines of writing only to say goodbye, up to ten seconds.
type hasty struct{ net.Conn }

// SetWriteDeadline is documented at [net.Conn].
func (c hasty) SetWriteDeadline(t time.Time) error {
	if last := time.Now().Add(farewellTime); t.After(last) {
		t = last
	}
	return c.Conn.SetWriteDeadline(t)
}

// SyscallConn is documented at [syscall.Conn].
func (c hasty) SyscallConn() (syscall.RawConn, error) {
	if sys, ok := c.Conn.(syscall.Conn); ok {
		return sys.SyscallConn()
	}
	return nil, errors.ErrUnsupported
}

// frameConn is a connection of HTTP/2 that fails if unfinished messages take too much memory, on all
// streams together: by their content, or beside it by their frames. Until a message is complete, gRPC
// keeps the content of each of its frames in a buffer, so a message in frames of one byte would take a
// hundred times its size. It holds back the window of a stream whose large message has to wait.
type frameConn struct {
	net.Conn
	bounds
	read scanner // owned by the reader

	writing   sync.Mutex // held while something is written
	sentLeft  int        // of the frame that is being written, after its head
	inHeaders bool       // what comes next has to be a CONTINUATION
	cut       []byte     // the beginning of a frame that is not written

	mu      sync.Mutex
	streams map[uint32]*unfinished // those that are open
	excess  int                    // of all of them
	content int                    // of their messages, so far
	owed    []byte                 // frames that go between two of gRPC's
	fault   error                  // why the client closed the connection
}

// unfinished is the message that comes on a stream.
type unfinished struct {
	head   [5]byte // of gRPC: a flag, and how much content follows
	n      int     // how much of the head has come
	left   int     // of the content
	came   int     // of it, while some is left
	excess int     // what the frames take beside head and content
	large  int     // what a large message takes of the budget; 0 of others
	share  *share  // nil until gRPC asks for a large message
	waits  bool    // for its share
	kept   uint32  // how much of the window is held back meanwhile
}

// Read is documented at [net.Conn].
func (c *frameConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.read.scan(b[:n], c.begin, c.take)
	if c.fault != nil {
		return n, c.fault
	}
	// H-5: what both take is bounded, in however many frames and streams it comes.
	if most := max(maxFrameExcess, c.largest/2); c.excess > most {
		return n, fmt.Errorf("a message comes in small frames, which take more than %d bytes of memory beside it", most)
	}
	if c.content-c.largest > c.largest/unfinishedPart {
		return n, fmt.Errorf("unfinished messages of several streams have more than %d bytes, one and a half times GRPCConfig.MaxReceiveSize", int64(c.largest)+int64(c.largest/unfinishedPart))
	}
	return n, err
}

// begin accounts for a frame of the server whose content has not come.
func (c *frameConn) begin(f frameHead) {
	ends := (f.kind == http2.FrameData || f.kind == http2.FrameHeaders) && f.flags.Has(http2.FlagDataEndStream)
	switch m := c.streams[f.stream]; {
	case ends || f.kind == http2.FrameRSTStream:
		c.end(f.stream)
	case f.kind == http2.FrameData && m != nil && f.length > 0:
		c.charge(m, frameMemory+bufferFor(f.length))
	}
}

// take follows the messages of a stream.
func (c *frameConn) take(stream uint32, b []byte) {
	m := c.streams[stream]
	for m != nil && len(b) > 0 {
		n := min(m.left, len(b))
		if m.n < len(m.head) {
			n = copy(m.head[m.n:], b)
			m.n += n
			if m.left = int(binary.BigEndian.Uint32(m.head[1:])); m.n == len(m.head) && m.left > smallMessage && m.left <= c.largest {
				m.large = m.left
				if m.head[0] != 0 {
					m.large = 2*m.left + c.largest // what was compressed, twice, and what it becomes
				}
			}
		} else {
			m.left -= n
			m.came += n
			c.content += n
			if m.share != nil {
				m.share.progress(n)
			}
		}
		c.charge(m, -min(n, m.excess))
		b = b[n:]
		if m.n == len(m.head) && m.left == 0 {
			c.finish(m)
			c.forget(m)
			m.n = 0
		}
	}
}

// charge adds to what the frames of a message take.
func (c *frameConn) charge(m *unfinished, n int) {
	m.excess += n
	c.excess += n
}

// forget ends the accounts of a message.
func (c *frameConn) forget(m *unfinished) {
	c.charge(m, -m.excess)
	c.content -= m.came
	m.came, m.large = 0, 0
	m.share.release()
	m.share = nil
}

// end forgets a stream.
func (c *frameConn) end(stream uint32) {
	if m := c.streams[stream]; m != nil {
		c.forget(m)
		delete(c.streams, stream)
	}
}

// bufferFor is how large a buffer gRPC uses for the content and padding of a frame.
func bufferFor(length int) int {
	switch {
	case length < 1<<10:
		return length
	case length <= 4<<10:
		return 4 << 10
	default:
		return 16 << 10
	}
}

// frameHead is what begins a frame.
type frameHead struct {
	length int
	kind   http2.FrameType
	flags  http2.Flags
	stream uint32
}

// scanner finds the frames in one direction of a connection, however it is cut into pieces.
type scanner struct {
	skip    int // what comes next and is looked at no more
	head    [9]byte
	n       int // how much of the head has come
	frame   frameHead
	padded  bool // the length of the padding comes next
	left    int  // of the content of a DATA frame
	padding int  // that follows it
}

// scan calls begin for each frame and content for what is in frames of DATA.
func (s *scanner) scan(b []byte, begin func(frameHead), content func(stream uint32, b []byte)) {
	for len(b) > 0 {
		n := min(s.skip, len(b))
		switch {
		case s.skip > 0:
			s.skip -= n
		case s.n < len(s.head):
			n = copy(s.head[s.n:], b)
			if s.n += n; s.n == len(s.head) {
				s.parse()
				begin(s.frame)
			}
		case s.padded:
			n, s.padded, s.padding = 1, false, int(b[0])
			s.left = max(0, s.frame.length-1-s.padding)
		default:
			n = min(s.left, len(b))
			content(s.frame.stream, b[:n])
			s.left -= n
		}
		b = b[n:]
		if s.n == len(s.head) && s.left == 0 && !s.padded {
			s.skip, s.padding, s.n = s.skip+s.padding, 0, 0
		}
	}
}

// parseHead reads the head of a frame.
func parseHead(h []byte) frameHead {
	return frameHead{
		length: int(h[0])<<16 | int(h[1])<<8 | int(h[2]),
		kind:   http2.FrameType(h[3]), flags: http2.Flags(h[4]),
		stream: binary.BigEndian.Uint32(h[5:]) & (1<<31 - 1),
	}
}

// parse reads a complete head.
func (s *scanner) parse() {
	s.frame = parseHead(s.head[:])
	if s.frame.kind != http2.FrameData {
		s.skip = s.frame.length
		return
	}
	s.left, s.padded = s.frame.length, s.frame.flags.Has(http2.FlagDataPadded) && s.frame.length > 0
}
