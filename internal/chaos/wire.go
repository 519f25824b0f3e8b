package chaos

import (
	"bytes"
	"encoding/binary"
	"net"
	"sync"

	"golang.org/x/net/http2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
)

// wireCreds puts a wire on top of the connections of another credential, so that frames
// can be slipped in below grpc and above TLS.
type wireCreds struct {
	credentials.TransportCredentials
	wires *sync.Map // those that are open
}

// ServerHandshake makes a wire of the connection.
func (c *wireCreds) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := c.TransportCredentials.ServerHandshake(conn)
	if err != nil {
		return nil, nil, err
	}
	w := newWire(conn, info, c.wires)
	return w, w, nil
}

// wire is the connection of a grpc server without a write buffer, which so begins each frame with
// a write of its own. The wire slips others in between.
type wire struct {
	net.Conn
	credentials.AuthInfo // by it streams find their wire
	wires                *sync.Map

	mu     sync.Mutex // also held while writing
	opened uint32     // streams, by the client
	left   int        // bytes of the frame that is being written
	framer *http2.Framer
	slip   bytes.Buffer // what framer wrote, which waits for the end of that frame
	torn   bool         // the next write ends in the middle
}

func newWire(conn net.Conn, info credentials.AuthInfo, wires *sync.Map) *wire {
	w := &wire{Conn: conn, AuthInfo: info, wires: wires}
	w.framer = http2.NewFramer(&w.slip, nil)
	wires.Store(w, nil)
	return w
}

// countStream is a server's interceptor, by which a wire knows of a stream.
func countStream(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	if p, ok := peer.FromContext(ss.Context()); ok {
		w := p.AuthInfo.(*wire)
		w.mu.Lock()
		w.opened++
		w.mu.Unlock()
	}
	return next(srv, ss)
}

// Write writes a frame or the next piece of one, and after its end what is to be slipped in.
func (w *wire) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.torn {
		_, _ = w.Conn.Write(p[:len(p)/2]) // the connection ends whether or not that arrives
		_ = w.Conn.Close()
		return 0, net.ErrClosed
	}
	if w.left == 0 && len(p) >= frameHeader {
		w.left = frameHeader + int(binary.BigEndian.Uint32(p)>>8)
	}
	n, err := w.Conn.Write(p)
	w.left -= n
	w.slipLocked()
	return n, err
}

// frameHeader is the length of a frame's header, which begins with that of the payload in three
// bytes (RFC 9113, section 4.1).
const frameHeader = 9

// slipLocked writes what is to be slipped in, if no frame is being written.
func (w *wire) slipLocked() {
	if w.left == 0 {
		_, _ = w.slip.WriteTo(w.Conn) // a connection that is gone needs no frames
	}
}

// Close forgets the wire.
func (w *wire) Close() error {
	w.wires.Delete(w)
	return w.Conn.Close()
}

// Frame is what is slipped in on a connection.
type Frame struct {
	Type http2.FrameType // RST_STREAM of all streams, GOAWAY, or anything else: the next frame is torn
	Code http2.ErrCode
	Last uint32 // stream that was processed, of GOAWAY
}

// slipIn slips a frame in. The server itself is not told; streams that are over already have no use for it.
func (w *wire) slipIn(f Frame) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch f.Type {
	case http2.FrameRSTStream:
		for n := range w.opened {
			_ = w.framer.WriteRSTStream(2*n+1, f.Code) // a buffer takes everything
		}
	case http2.FrameGoAway:
		_ = w.framer.WriteGoAway(f.Last, f.Code, nil)
	default:
		w.torn = true
	}
	w.slipLocked()
}
