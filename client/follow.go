package client

import (
	"errors"
	"fmt"

	"github.com/xdswatch/xdswatch/authority"
	"github.com/xdswatch/xdswatch/internal/follow"
	"github.com/xdswatch/xdswatch/internal/listing"
	"github.com/xdswatch/xdswatch/internal/machine"
	"github.com/xdswatch/xdswatch/resource"
	"github.com/xdswatch/xdswatch/xdstp"
)

// Errors of redirects, of kind [ErrorData].
var (
	// ErrRedirectLoop says that a redirect leads back to an earlier one.
	ErrRedirectLoop = follow.ErrLoop
	// ErrTooManyHops says that a name has more than eight redirects.
	ErrTooManyHops = follow.ErrTooMany
)

// host is what a tree of names needs of the client; it implements [follow.Host].
type host struct {
	*view
	kind resource.AnyType
	lane int32
}

// Lead implements [follow.Host].
func (h host) Lead(by *xdstp.Locator, to xdstp.Locator, directory bool) (*machine.Watch, *machine.Fault) {
	kind := h.kind
	if directory {
		kind = h.client.directoryOf(kind)
	}
	w := &machine.Watch{}
	if err := h.aim(kind, to, w); err != nil {
		kind := machine.FaultConfig
		if wrongName(err) {
			kind = machine.FaultData
		}
		return nil, &machine.Fault{Kind: kind, Err: err}
	}
	if err := h.client.foreign.take(h.table, by, to, w); err != nil {
		return nil, &machine.Fault{Kind: machine.FaultData, Err: err}
	}
	w.Lane = h.lane
	return w, nil
}

// Start implements [follow.Host].
func (h host) Start(ws ...*machine.Watch) { h.client.engine.Start(ws...) }

// Stop implements [follow.Host].
func (h host) Stop(w *machine.Watch) {
	h.client.engine.Post(machine.Stop{Watch: w})
	h.client.foreign.release(w)
}

// Strict implements [follow.Host].
func (h host) Strict(server int) bool { return h.client.server(server).Features.FailOnDataErrors }

// wrongName says that what [view.aim] was given is at fault, and not the bootstrap.
func wrongName(err error) bool {
	_, bad := errors.AsType[*authority.NameError](err)
	return bad || errors.Is(err, listing.ErrScheme)
}

// followed makes the event of what is told of a name that is followed.
func (c *Client) followed(t *follow.Told) Event[any] {
	ev := c.newEvent(&t.Notice)
	ev.Type, ev.Locator = t.Type, t.Locator
	re, ok := ev.Err.(*ResourceError)
	if !ok {
		return ev
	}
	if t.At != "" {
		re.Err = fmt.Errorf("at %q: %w", t.At, re.Err)
	}
	switch also := t.Also; {
	case also == nil:
	case also.Kind == machine.NoticeDoesNotExist:
		re.Err = fmt.Errorf("%w; the alternative %q does not exist (%s)", re.Err, also.Name, also.Reason)
	default:
		re.Err = fmt.Errorf("%w; the alternative: %w", re.Err, c.resourceError(also.Fault, also.Server, t.Type, also.Name))
	}
	return ev
}
