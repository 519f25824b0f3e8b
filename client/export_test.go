package client

import (
	"github.com/xdswatch/xdswatch/internal/follow"
	"github.com/xdswatch/xdswatch/internal/machine"
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

// Connections is how many connections are open, or being closed.
func Connections(c *Client) int { return c.engine.Connections() }

// Sources is how many sources the client has made.
func Sources(c *Client) int { return c.sources.Len() }

// NewMember makes what a set has of a name.
func NewMember(name string) any { return newMember(name) }
