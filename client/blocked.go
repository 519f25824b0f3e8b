package client

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/xdswatch/xdswatch/internal/engine"
)

// BlockedHandler is a handler that has not returned for a while: the events of its authority
// wait for it, and so do the next responses of the servers of these events. A [*NotReadyError]
// and a timeout of [Client.Get] wrap it.
type BlockedHandler struct {
	// Type and Name are those of the resource, or of one of the resources, of the handler's last
	// event; empty for a guard and for a function of [Trace] or [Metrics].
	Type, Name string
	For        time.Duration // how long it has been running, up to a second more or less
	Waiting    int           // events that wait for it
}

func (b BlockedHandler) Error() string {
	who := "a guard, or a function of Trace or Metrics,"
	if b.Type != "" {
		who = "the handler of " + textOf(b.Type, b.Name)
	}
	return fmt.Sprintf("xds: %s has not returned for %v, and %d events wait for it", who, b.For.Round(time.Millisecond), b.Waiting)
}

// blockedHandlers are those of all that have run for atLeast or longer.
func blockedHandlers(all []engine.Blocked, atLeast time.Duration) (bs []BlockedHandler) {
	for _, b := range all {
		if b.For >= atLeast {
			bs = append(bs, BlockedHandler(b))
		}
	}
	slices.SortFunc(bs, func(a, b BlockedHandler) int {
		return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.Name, b.Name))
	})
	return bs
}
