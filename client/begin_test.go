package client_test

import (
	"context"
	"testing"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/xdstp"
)

// tying is a context that calls a function when a watch ties itself to it, and counts what is tied.
type tying struct {
	context.Context
	then func()
	tied int
}

func (c *tying) Done() <-chan struct{} { return make(chan struct{}) }

func (c *tying) AfterFunc(func()) func() bool {
	c.tied++
	c.then()
	return func() bool {
		c.tied--
		return true
	}
}

// A watch that ends while it begins leaves nothing at its context, which may outlive the client.
// spec: WATCH-2
func TestCloseWhileWatchBegins(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		c := &tying{Context: context.Background(), then: func() { r.c.Close() }}
		_, err := r.c.Watch(c, cds.Type, "a", func(client.Event[any]) {})
		if c.tied != 0 || err != client.ErrClosed {
			t.Errorf("%d are tied, and the error is %v", c.tied, err)
		}
	})
}

// Nor does one that is stopped.
// spec: WATCH-2
func TestStopLeavesContext(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		c := &tying{Context: context.Background(), then: func() {}}
		w, err := r.c.Watch(c, cds.Type, "a", func(client.Event[any]) {})
		must(t, err)
		if w.Stop(); c.tied != 0 {
			t.Errorf("%d are tied", c.tied)
		}
	})
}

// A client that is closed while it looks at a name has no watch of it.
// spec: WATCH-2
func TestCloseWhileNameIsRead(t *testing.T) {
	var c *client.Client
	inBubble(t, func(t *testing.T, r *rig) {
		c = r.c
		_, err := c.Watch(context.Background(), cds.Type, at("a", "x"), func(client.Event[any]) {})
		if err != client.ErrClosed || client.Live(c) != 0 {
			t.Errorf("the error is %v, and there are %d watches", err, client.Live(c))
		}
	}, func(config *client.Config) {
		config.Bootstrap.Authorities = map[string]bootstrap.Authority{"a": {}}
		config.Context = func(string) xdstp.Context {
			c.Close()
			return xdstp.Context{}
		}
	})
}
