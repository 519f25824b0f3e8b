package transport

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/xdswatch/xdswatch/transport/internal/tlscreds"
)

const (
	// spareLife is how long a connection that was dialled ahead may wait for its use.
	spareLife = 5 * time.Second
	// restIdle is how long a connection is kept between polls.
	restIdle = 90 * time.Second
	// restPing is how long an HTTP/2 connection may be silent under a poll before the
	// server is asked for a sign of life, and how long that may take.
	restPing = 20 * time.Second
	// restIdleConns is how many connections without HTTP/2 are kept; one for each type.
	restIdleConns = 32
)

// restPool is connections to one endpoint. After a poll that found no answer it is given
// up, so that the next one dials anew, and closed with its last use.
type restPool struct {
	endpoint *restEndpoint
	client   *http.Client
	// ctx ends when the pool is closed, and what dials with it: the HTTP client goes on
	// dialling for a poll that is over.
	ctx    context.Context
	cancel context.CancelFunc

	mu      sync.Mutex
	conns   map[*restNetConn]struct{}
	spare   net.Conn // dialled ahead of its use; nil if there is none
	spareAt time.Time
	unheard *tls.Conn    // secured last; nil once a poll was answered
	kept    *restNetConn // under unheard; it is not closed before that is done with
	uses    int
	givenUp bool // close with the last use
	closed  bool
}

func newRESTPool(e *restEndpoint) *restPool {
	p := &restPool{endpoint: e, conns: map[*restNetConn]struct{}{}}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		conn, err := p.take(ctx)
		if err != nil {
			return nil, &dialError{err}
		}
		return conn, nil
	}
	p.client = &http.Client{
		CheckRedirect: checkRedirect,
		Transport: located{&http.Transport{
			DialContext: dial, DialTLSContext: dial, ForceAttemptHTTP2: true,
			MaxIdleConnsPerHost: restIdleConns, IdleConnTimeout: restIdle, MaxResponseHeaderBytes: restHeaderBytes,
			ReadBufferSize: restBuffer,
			HTTP2:          &http.HTTP2Config{SendPingTimeout: restPing, PingTimeout: restPing},
		}},
	}
	return p
}

// reach makes sure that there is a connection, by dialling one ahead of its use where there
// is none.
func (p *restPool) reach(ctx context.Context) error {
	p.mu.Lock()
	have := len(p.conns) > 0
	p.mu.Unlock()
	if have {
		return nil
	}
	conn, err := p.dial(ctx)
	if err != nil {
		return err
	}
	p.mu.Lock()
	old := p.spare
	p.spare, p.spareAt = conn, time.Now()
	p.mu.Unlock()
	if old != nil {
		old.Close()
	}
	return nil
}

// take gives the connection that was dialled ahead, or dials.
func (p *restPool) take(ctx context.Context) (net.Conn, error) {
	p.mu.Lock()
	spare, fresh := p.spare, time.Since(p.spareAt) < spareLife
	p.spare = nil
	p.mu.Unlock()
	if spare != nil && fresh {
		return spare, nil
	}
	if spare != nil {
		spare.Close()
	}
	return p.dial(ctx)
}

// dial makes a connection that is ready for HTTP.
func (p *restPool) dial(ctx context.Context) (net.Conn, error) {
	e := p.endpoint
	ctx, cancel := context.WithTimeout(ctx, e.config.ConnectTimeout)
	defer cancel()
	defer context.AfterFunc(p.ctx, cancel)()
	raw, err := e.config.Dial(ctx, e.network, e.address)
	if err != nil {
		return nil, err
	}
	conn, err := p.track(raw)
	if err != nil {
		return nil, err
	}
	if e.secure == nil {
		return newExactConn(conn), nil
	}
	secured, err := e.secure.Handshake(ctx, e.base.Hostname(), conn, "h2", "http/1.1")
	if err != nil {
		conn.Close()
		return nil, err
	}
	p.listen(secured, conn)
	if secured.ConnectionState().NegotiatedProtocol == "h2" {
		return secured, nil // the HTTP client wants to see that it is TLS
	}
	return newExactConn(secured), nil
}

// listen takes note of a new connection of which nothing was heard yet, in place of the
// last; nil says that something was.
func (p *restPool) listen(secured *tls.Conn, under *restNetConn) {
	p.mu.Lock()
	old := p.kept
	p.unheard, p.kept = secured, under
	over := old != nil && old.over
	p.mu.Unlock()
	if over {
		old.Close()
	}
}

// refusal is why the server refused the client after the handshake, which the HTTP client
// may not tell; nil if it did not, or if it answered before. The pool is to be given up.
func (p *restPool) refusal() error {
	p.mu.Lock()
	conn := p.unheard
	p.mu.Unlock()
	if conn == nil {
		return nil
	}
	defer p.listen(nil, nil)
	return tlscreds.Refusal(conn)
}

// track keeps a connection among those that the pool closes.
func (p *restPool) track(raw net.Conn) (*restNetConn, error) {
	c := &restNetConn{Conn: raw, pool: p}
	p.mu.Lock()
	closed := p.closed
	if !closed {
		p.conns[c] = struct{}{}
	}
	p.mu.Unlock()
	if closed {
		raw.Close()
		return nil, ErrClosed
	}
	return c, nil
}

// use begins a use of the pool; it is to be released.
func (p *restPool) use() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.uses++
}

func (p *restPool) release() {
	p.mu.Lock()
	p.uses--
	last := p.givenUp && p.uses == 0
	p.mu.Unlock()
	if last {
		p.close()
	}
}

// giveUp leaves the connections to the polls that still use them.
func (p *restPool) giveUp() {
	p.mu.Lock()
	p.givenUp = true
	unused := p.uses == 0
	p.mu.Unlock()
	if unused {
		p.close()
	}
}

// close ends all connections at once. The HTTP client would leave those that it does not
// take for idle yet.
func (p *restPool) close() {
	p.cancel()
	p.mu.Lock()
	p.closed = true
	conns := p.conns
	p.conns, p.spare = map[*restNetConn]struct{}{}, nil
	p.mu.Unlock()
	for c := range conns {
		c.Conn.Close()
	}
	p.client.CloseIdleConnections()
}

// restNetConn is a connection that its pool knows of until it is closed.
type restNetConn struct {
	net.Conn
	pool *restPool
	over bool // Close was called; guarded by the pool's mutex
}

// Close leaves a connection open from which the pool still wants to hear why it ended.
func (c *restNetConn) Close() error {
	c.pool.mu.Lock()
	c.over = true
	keep := c.pool.kept == c
	if !keep {
		delete(c.pool.conns, c)
	}
	c.pool.mu.Unlock()
	if keep {
		return nil
	}
	return c.Conn.Close()
}
