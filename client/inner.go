package client

import (
	"sync"

	"github.com/xdswatch/xdswatch/internal/machine"
	"github.com/xdswatch/xdswatch/resource"
	"github.com/xdswatch/xdswatch/xdstp"
)

// inner are the machine's watches that serve a watch of the program besides its first:
// where redirects lead, alternatives, members of a list. They end with it.
type inner struct {
	client *Client
	follow *follow // of a watch of one name; its dispatcher's own
	set    *Set    // of a set, which has more to end; else nil

	mu   sync.Mutex
	over bool
	live map[*machine.Watch]struct{}
	lent map[*machine.Watch]*loan // what is counted of them; nil until something is
}

func newInner(c *Client) *inner { return &inner{client: c, live: map[*machine.Watch]struct{}{}} }

// following makes what serves a name that is followed; see [Client.newFollow].
func (c *Client) following(kind resource.AnyType, a asked, out outlet) *inner {
	in := newInner(c)
	in.follow = c.newFollow(kind, a, in, out)
	return in
}

// start begins watches at one moment, unless all is over. The engine is told under the
// lock, so that it hears of no start after the stop.
func (in *inner) start(ws ...*machine.Watch) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.over {
		return
	}
	for _, w := range ws {
		in.live[w] = struct{}{}
	}
	in.client.engine.Start(ws...)
}

// borrow counts what a watch, which has not begun, asks of an authority because of a resource of
// another; see [foreign]. With an error it must not begin.
func (in *inner) borrow(v *view, from, to xdstp.Locator, w *machine.Watch) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.over {
		return nil
	}
	l, err := in.client.foreign.take(v, from, to, w)
	if l != nil {
		if in.lent == nil {
			in.lent = map[*machine.Watch]*loan{}
		}
		in.lent[w] = l
	}
	return err
}

func (in *inner) stop(w *machine.Watch) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.lent[w].end()
	delete(in.lent, w)
	if _, ok := in.live[w]; ok {
		delete(in.live, w)
		in.client.engine.Stop(w)
	}
}

// end stops them all, for good.
func (in *inner) end() {
	if in.set != nil {
		in.set.clear()
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	in.over = true
	for w := range in.live {
		in.client.engine.Stop(w)
	}
	for _, l := range in.lent {
		l.end()
	}
	in.live, in.lent = nil, nil
}
