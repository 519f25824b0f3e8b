package client

import "slices"

// book puts a watch on the client's books.
func (c *Client) book(w *core) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed.Load() {
		return ErrClosed
	}
	c.watches = append(c.watches, w)
	w.place = int32(len(c.watches))
	return nil
}

// living lists the watches on the books.
func (c *Client) living() []*core {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.watches)
}

// forget takes a watch off the books, if it is there.
func (c *Client) forget(w *core) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if w.place == 0 {
		return
	}
	n := len(c.watches) - 1
	last := c.watches[n]
	c.watches[w.place-1], last.place = last, w.place
	c.watches[n], w.place = nil, 0
	if c.watches = c.watches[:n]; n < cap(c.watches)/4 {
		c.watches = slices.Clone(c.watches)
	}
}
