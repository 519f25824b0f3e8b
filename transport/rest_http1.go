package transport

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http/httptrace"
	"sync"
)

// restBuffer is the size of the HTTP client's buffer. A trailer has to fit into it, and what a
// caller reads into more memory goes past it.
const restBuffer = 512

// exactConn is a connection for HTTP/1.1 on which the HTTP client never holds a byte of what comes
// after a response. The client would print such bytes to the process's standard log, and they may be
// a secret. So reads into its buffer get one byte at a time, as the client needs it, and a byte that
// comes while no request waits for its response ends the connection.
type exactConn struct {
	net.Conn
	in *bufio.Reader

	mu sync.Mutex
	// Requests are counted, since the next may begin before the client tells that the last has ended.
	begun   int // given this connection
	written int // of those, the last of which something was written
	ended   int // with their responses complete
}

func newExactConn(conn net.Conn) *exactConn {
	return &exactConn{Conn: conn, in: bufio.NewReader(conn)}
}

func (c *exactConn) Read(b []byte) (int, error) {
	if len(b) <= restBuffer {
		b = b[:min(len(b), 1)]
	}
	n, err := c.in.Read(b)
	// H-3: nobody sees what no request asked for.
	if n > 0 && !c.awaited() {
		c.Close()
		return 0, io.EOF
	}
	return n, err
}

func (c *exactConn) Write(b []byte) (int, error) {
	c.mu.Lock()
	c.written = c.begun
	c.mu.Unlock()
	return c.Conn.Write(b)
}

// awaited says whether the server owes a response.
func (c *exactConn) awaited() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.written > c.ended
}

// countRequests has the connections count the requests that are made with a context.
func countRequests(ctx context.Context) context.Context {
	var conn *exactConn // of the newest request; nil over HTTP/2
	count := func(n func(*exactConn)) {
		if conn == nil {
			return
		}
		conn.mu.Lock()
		defer conn.mu.Unlock()
		n(conn)
	}
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(i httptrace.GotConnInfo) {
			conn, _ = i.Conn.(*exactConn)
			count(func(c *exactConn) { c.begun++ })
		},
		PutIdleConn: func(error) { count(func(c *exactConn) { c.ended++ }) },
	})
}
