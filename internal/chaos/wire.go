package main

import (
	"encoding/binary"
	"maps"
	"net"
	"slices"
	"sync"

	"google.golang.org/grpc/credentials"
)

// Frames of HTTP/2 (RFC 9113, section 6), as far as the harness writes or looks at them.
const (
	frameHeader  = 9 // bytes
	frameHeaders = 0x1
	frameReset   = 0x3
	frameGoAway  = 0x7

	flagEndStream = 0x1

	preface = len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n") // what a client says first
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
	w := &wire{Conn: conn, wires: c.wires, streams: map[uint32]bool{}}
	w.in.skip = preface
	c.wires.mu.Lock()
	c.wires.open[w] = struct{}{}
	c.wires.mu.Unlock()
	return w, info, nil
}

// Clone shares the wires.
func (c *wireCreds) Clone() credentials.TransportCredentials {
	return &wireCreds{c.TransportCredentials.Clone(), c.wires}
}

// wire is a server's connection that knows where frames end and which streams are open.
type wire struct {
	net.Conn
	wires *wires

	mu      sync.Mutex // also held while writing
	in, out cursor
	streams map[uint32]bool // open ones; true once the server sent headers
	slip    []byte          // to be written between two frames
	torn    bool            // the next write ends in the middle
}

// cursor walks over frames.
type cursor struct {
	skip   int // bytes to the next header
	header []byte
}

// walk passes over bytes, calls frame for each header that is complete, and says after
// how many bytes the first frame boundary comes; -1 if there is none.
func (c *cursor) walk(p []byte, frame func(kind, flags byte, stream uint32)) int {
	boundary := -1
	for at := 0; ; {
		if c.skip == 0 && len(c.header) == 0 && boundary < 0 {
			boundary = at
		}
		if at == len(p) {
			return boundary
		}
		if c.skip > 0 {
			n := min(c.skip, len(p)-at)
			c.skip -= n
			at += n
			continue
		}
		n := min(frameHeader-len(c.header), len(p)-at)
		c.header = append(c.header, p[at:at+n]...)
		at += n
		if h := c.header; len(h) == frameHeader {
			c.skip = int(h[0])<<16 | int(h[1])<<8 | int(h[2])
			frame(h[3], h[4], binary.BigEndian.Uint32(h[5:])&(1<<31-1))
			c.header = c.header[:0]
		}
	}
}

// Read notes the streams that the client opens and resets.
func (w *wire) Read(p []byte) (int, error) {
	n, err := w.Conn.Read(p)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.in.walk(p[:n], func(kind, _ byte, stream uint32) {
		switch kind {
		case frameHeaders:
			w.streams[stream] = false
		case frameReset:
			delete(w.streams, stream)
		}
	})
	return n, err
}

// Write writes frames, with what is to be slipped in at the first boundary.
func (w *wire) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.torn {
		_, _ = w.Conn.Write(p[:len(p)/2]) // the connection ends whether or not that arrives
		_ = w.Conn.Close()
		return 0, net.ErrClosed
	}
	boundary := w.out.walk(p, w.wrote)
	out := p
	if len(w.slip) > 0 && boundary >= 0 {
		out = slices.Concat(p[:boundary], w.slip, p[boundary:])
		w.slip = nil
	}
	if _, err := w.Conn.Write(out); err != nil {
		return 0, err
	}
	return len(p), nil
}

func (w *wire) wrote(kind, flags byte, stream uint32) {
	switch {
	case kind == frameReset, kind == frameHeaders && flags&flagEndStream != 0:
		delete(w.streams, stream)
	case kind == frameHeaders:
		w.streams[stream] = true
	}
}

// Close forgets the wire.
func (w *wire) Close() error {
	w.wires.mu.Lock()
	delete(w.wires.open, w)
	w.wires.mu.Unlock()
	return w.Conn.Close()
}

// slipLocked writes frames now, or as soon as the frame that is being written has ended.
func (w *wire) slipLocked(frames []byte) {
	if w.out.skip > 0 || len(w.out.header) > 0 {
		w.slip = append(w.slip, frames...)
		return
	}
	_, _ = w.Conn.Write(frames) // a connection that is gone needs no frames
}

// resetStreams resets all streams; the server itself is not told.
func (w *wire) resetStreams(code uint32) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(w.streams)) {
		w.slipLocked(frame(frameReset, id, binary.BigEndian.AppendUint32(nil, code)))
	}
}

// goAway says that no stream after last is processed.
func (w *wire) goAway(last, code uint32) {
	payload := binary.BigEndian.AppendUint32(nil, last)
	payload = binary.BigEndian.AppendUint32(payload, code)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.slipLocked(frame(frameGoAway, 0, payload))
}

// tear makes the next write, which a ping or a response will be, end in the middle.
func (w *wire) tear() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.torn = true
}

func frame(kind byte, stream uint32, payload []byte) []byte {
	n := len(payload)
	f := []byte{byte(n >> 16), byte(n >> 8), byte(n), kind, 0}
	f = binary.BigEndian.AppendUint32(f, stream)
	return append(f, payload...)
}
