package main

import (
	"fmt"
	"io"
	"sync"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/cmd/xdsctl/internal/subscription"
)

// hints are what standard error says of what a user may not know.
type hints struct {
	out io.Writer
	// silent are the names of the servers that may be silent about names on purpose: those of
	// the state-of-the-world variant over gRPC.
	silent map[string]bool

	mu   sync.Mutex
	said map[string]bool // by type URL
}

func newHints(boot *bootstrap.Config, variant string, out io.Writer) *hints {
	h := &hints{out: out, silent: map[string]bool{}, said: map[string]bool{}}
	for s := range servers(boot) {
		if s.REST() == nil && s.File() == nil && (variant == "sotw" || variant == "" && !s.Delta) {
			h.silent[s.Name()] = true
		}
	}
	return h
}

// hint says once for each type that a server which sent nothing at all for a name may answer
// only those who ask for everything.
func (s *session) hint(sub *subscribed, ev client.Event[any]) {
	late := ev.Kind == client.EventDoesNotExist && ev.Reason == client.ReasonTimeout
	if !late || sub.Collection || ev.Instead != nil || !s.hints.silent[ev.Server] || !s.hints.first(ev.Type) {
		return
	}
	typ := subscription.Short(ev.Type)
	fmt.Fprintf(s.hints.out, "xdsctl: hint: server %q sent no response for %s by name; some servers answer only who asks for all "+
		"that they have, as go-control-plane's snapshot cache does in its ADS mode: try %s without a name\n", ev.Server, typ, subscription.TypeText(ev.Type))
}

// first says whether nothing was said of a type yet.
func (h *hints) first(typeURL string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	said := h.said[typeURL]
	h.said[typeURL] = true
	return !said
}
