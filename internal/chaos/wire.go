package chaos

import (
	"bytes"
	"encoding/binary"
	"io"
	"maps"
	"net"
	"slices"
	"sync"

	"golang.org/x/net/http2"
	"google.golang.org/grpc/credentials"
)

// wires are the server's connections.
type wires struct {
	mu   sync.Mutex
	open map[*wire]struct{}
}

func (ws *wires) each(f func(*wire)) {
	ws.mu.Lock()
	all := slices.Collect(maps.Keys(ws.open))
	ws.mu.Unlock()
	for _, w := range all {
		f(w)
	}
}

// wireCreds puts a wire on top of the connections of another credential, so that frames
// can be slipped in below grpc and above TLS.
type wireCreds struct {
	credentials.TransportCredentials
	wires *wires
}

// ServerHandshake makes a wire of the connection.
func (c *wireCreds) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := c.TransportCredentials.ServerHandshake(conn)
	if err != nil {
		return nil, nil, err
	}
	return newWire(conn, c.wires), info, nil
}

// wire is the connection of a grpc server without a write buffer, which so begins each frame with
// a write of its own. The wire slips others in between.
type wire struct {
	net.Conn
	wires *wires
	heard *io.PipeWriter // takes what the client says

	mu      sync.Mutex // also held while writing
	streams []uint32   // that the client opened
	left    int        // bytes of the frame that is being written
	framer  *http2.Framer
	slip    bytes.Buffer // what framer wrote, which waits for the end of that frame
	torn    bool         // the next write ends in the middle
}

func newWire(conn net.Conn, all *wires) *wire {
	w := &wire{Conn: conn, wires: all}
	w.framer = http2.NewFramer(&w.slip, nil)
	heard, pipe := io.Pipe()
	w.heard = pipe
	go w.listen(heard)
	all.mu.Lock()
	defer all.mu.Unlock()
	all.open[w] = struct{}{}
	return w
}

// listen notes the streams that the client opens, until the wire is closed.
func (w *wire) listen(heard *io.PipeReader) {
	_, err := io.CopyN(io.Discard, heard, int64(len(http2.ClientPreface)))
	for framer := http2.NewFramer(nil, heard); err == nil; {
		var f http2.Frame
		if f, err = framer.ReadFrame(); err == nil && f.Header().Type == http2.FrameHeaders {
			w.mu.Lock()
			w.streams = append(w.streams, f.Header().StreamID)
			w.mu.Unlock()
		}
	}
	heard.CloseWithError(err)
}

// Read reads, and lets the wire hear it.
func (w *wire) Read(p []byte) (int, error) {
	n, err := w.Conn.Read(p)
	_, _ = w.heard.Write(p[:n]) // where nobody listens any more the streams are known
	return n, err
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
	w.wires.mu.Lock()
	delete(w.wires.open, w)
	w.wires.mu.Unlock()
	w.heard.Close()
	return w.Conn.Close()
}

// resetStreams resets all streams; the server itself is not told. Those that are over already
// have no use for it.
func (w *wire) resetStreams(code http2.ErrCode) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, id := range w.streams {
		_ = w.framer.WriteRSTStream(id, code) // a buffer takes everything
	}
	w.slipLocked()
}

// goAway says that no stream after last is processed.
func (w *wire) goAway(f GoAway) {
	w.mu.Lock()
	defer w.mu.Unlock()
	_ = w.framer.WriteGoAway(f.Last, f.Code, nil) // a buffer takes everything
	w.slipLocked()
}

// tear makes the next write, of a ping or a response, end in the middle.
func (w *wire) tear() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.torn = true
}
