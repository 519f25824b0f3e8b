package client

import (
	"sync/atomic"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/internal/follow"
	"github.com/xdswatch/xdswatch/internal/machine"
	"github.com/xdswatch/xdswatch/transport"
)

// Bounds that tests reach.
const (
	MaxHops    = follow.MaxHops
	MaxLacking = maxLacking
)

// RateOf is how a rate limit is kept to.
var RateOf = rateOf

// StreamID is the number of an incarnation of a stream in traces.
func StreamID(stream, gen int) uint64 { return streamID(machine.Ref{Stream: stream, Gen: gen}) }

// Pending is how many subscriptions wait for their first answer.
func Pending(c *Client) (n int) {
	for s := range c.Watches() {
		n += s.Unanswered
	}
	return n
}

// Live is how many watches are on the client's books.
func Live(c *Client) int { return len(c.books.living()) }

// Conns counts the connections of a client.
type Conns struct {
	transport.Builder
	Built, Open atomic.Int64
}

// CountConns counts the connections that a client makes from now on.
func CountConns(c *Client) *Conns {
	all := &Conns{Builder: c.config.Transport}
	c.config.Transport = all
	return all
}

// Build implements [transport.Builder].
func (all *Conns) Build(s bootstrap.ManagementServer) (transport.Conn, error) {
	conn, err := all.Builder.Build(s)
	if err != nil {
		return nil, err
	}
	all.Built.Add(1)
	all.Open.Add(1)
	return countedConn{conn, all}, nil
}

type countedConn struct {
	transport.Conn
	all *Conns
}

func (c countedConn) Close() error {
	defer c.all.Open.Add(-1)
	return c.Conn.Close()
}

// NewMember makes what a set has of a name.
func NewMember(name string) any { return newMember(name) }
