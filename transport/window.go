package transport

import (
	"encoding/binary"

	"golang.org/x/net/http2"
)

const (
	frameHeadSize    = 9
	windowUpdateSize = frameHeadSize + 4
)

// Write is documented at [net.Conn]. It writes frames whole from their head to the increment of a
// WINDOW_UPDATE, so that one can be held back, and others go between two.
func (c *frameConn) Write(b []byte) (int, error) {
	c.writing.Lock()
	defer c.writing.Unlock()
	if _, err := c.Conn.Write(c.pass(b)); err != nil {
		return 0, err
	}
	return len(b), c.pay()
}

// pass is what is to be written of what gRPC writes.
func (c *frameConn) pass(b []byte) []byte {
	if len(c.cut) > 0 {
		b = append(c.cut, b...)
		c.cut = nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var before []byte // what stays of b up to start
	start, at := 0, 0
	for at < len(b) {
		if n := min(c.sentLeft, len(b)-at); n > 0 {
			c.sentLeft -= n
			at += n
			continue
		}
		rest := b[at:]
		if len(rest) < frameHeadSize || http2.FrameType(rest[3]) == http2.FrameWindowUpdate && len(rest) < windowUpdateSize {
			c.cut = append([]byte(nil), rest...)
			b = b[:at]
			break
		}
		f := parseHead(rest)
		if c.holdsBack(f, rest) {
			before = append(before, b[start:at]...)
			at += windowUpdateSize
			start = at
			continue
		}
		if f.kind == http2.FrameHeaders || f.kind == http2.FrameContinuation {
			c.inHeaders = !f.flags.Has(http2.FlagHeadersEndHeaders)
		}
		c.sentLeft = f.length
		at += frameHeadSize
	}
	if start == 0 {
		return b
	}
	return append(before, b[start:]...)
}

// holdsBack accounts for a frame of the client, and says whether it is not to be written now.
func (c *frameConn) holdsBack(f frameHead, b []byte) bool {
	switch m := c.streams[f.stream]; {
	case f.kind == http2.FrameHeaders:
		c.streams[f.stream] = &unfinished{}
	case f.kind == http2.FrameRSTStream:
		c.end(f.stream)
	case f.kind == http2.FrameWindowUpdate && m != nil:
		more := binary.BigEndian.Uint32(b[frameHeadSize:])
		if m.large > 0 && m.share == nil && more > streamWindow {
			c.ask(m, f.stream)
		}
		if m.waits {
			m.kept += more
		}
		return m.waits
	}
	return false
}

// pay writes what is owed, unless a frame of gRPC's, or a row of HEADERS and CONTINUATION (RFC 9113,
// section 6.10), is not written to its end.
func (c *frameConn) pay() error {
	c.mu.Lock()
	owed := c.owed
	if c.sentLeft > 0 || c.inHeaders || len(owed) == 0 {
		c.mu.Unlock()
		return nil
	}
	c.owed = nil
	c.mu.Unlock()
	_, err := c.Conn.Write(owed)
	return err
}

// ask asks for the share of a large message, when gRPC asks for all of it: then nobody has to receive
// an earlier message of its stream, which may need a share too. What gRPC asks is written when the share
// is there.
func (c *frameConn) ask(m *unfinished, stream uint32) {
	s := large.ask(c.holder, m.large, c.tooSlow)
	m.share = s
	select {
	case <-s.granted:
		return
	default:
		m.waits = true
	}
	go func() {
		<-s.granted
		c.mu.Lock()
		if m.waits = false; m.kept > 0 && c.streams[stream] == m {
			c.owed = binary.BigEndian.AppendUint32(append(c.owed, 0, 0, 4, byte(http2.FrameWindowUpdate), 0), stream)
			c.owed = binary.BigEndian.AppendUint32(c.owed, m.kept)
		}
		m.kept = 0
		c.mu.Unlock()
		c.writing.Lock()
		defer c.writing.Unlock()
		_ = c.pay() // gRPC notices
	}()
}

// finish notes that a message has come whole. Who receives it takes its share.
func (c *frameConn) finish(m *unfinished) {
	if m.share != nil {
		m.share.complete()
		m.share = nil
	}
}

// tooSlow ends the connection.
func (c *frameConn) tooSlow() {
	c.mu.Lock()
	c.fault = errSlow
	c.mu.Unlock()
	_ = c.Close()
}

// Close is documented at [net.Conn].
func (c *frameConn) Close() error {
	c.mu.Lock()
	for stream := range c.streams {
		c.end(stream)
	}
	c.mu.Unlock()
	return c.Conn.Close()
}
