package client

import (
	"fmt"

	"github.com/xdswatch/xdswatch/authority"
	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/internal/apiv2"
	"github.com/xdswatch/xdswatch/internal/engine"
	"github.com/xdswatch/xdswatch/internal/listing"
	"github.com/xdswatch/xdswatch/internal/machine"
	"github.com/xdswatch/xdswatch/internal/sources"
	"github.com/xdswatch/xdswatch/resource"
	"github.com/xdswatch/xdswatch/xdstp"
)

// view is how the names of a watch of a client are looked up. It is immutable.
type view struct {
	client *Client
	table  *authority.Table
	watchOptions
}

// prepare checks what a watch of one resource or of a whole collection is to be, which has not begun, and gives it its
// source.
func (v *view) prepare(kind resource.AnyType, name string, collection bool, w *machine.Watch) (asked, error) {
	a, err := v.read(kind, name, collection)
	if err == nil {
		w.Wildcard, w.Explicit = a.wildcard, a.wildcard && v.explicit
		err = v.placeAsked(a, w)
	}
	return a, v.client.configError(kind, name, err)
}

// placeAsked places the watch of what a program asks for. Alternatives that cannot be followed are a fault of the
// name, though they may never be needed.
func (v *view) placeAsked(a asked, w *machine.Watch) error {
	kind := a.kind
	if a.List {
		if _, err := v.client.kinds.typeOf(kind); err != nil {
			return err
		}
		kind = a.to.kind
	}
	if a.At != nil {
		for alt := a.At.Alt(); alt != nil; alt = alt.Alt() {
			if err := v.aim(kind, *alt, new(machine.Watch)); err != nil {
				return fmt.Errorf("the alternative: %w", err)
			}
		}
	}
	return v.place(a.to, w)
}

// aim places the watch of what a locator that leads elsewhere names. It does not look at the alternatives.
func (v *view) aim(kind resource.AnyType, l xdstp.Locator, w *machine.Watch) error {
	if err := listing.CheckScheme(l); err != nil {
		return err
	}
	to, err := v.find(kind, l)
	if err != nil {
		return err
	}
	return v.place(to, w)
}

// place gives a watch its type and its source, which is its lane too. What cannot be
// watched has no source made for it.
func (v *view) place(to target, w *machine.Watch) error {
	for _, server := range to.Servers {
		server = v.client.config.override(server)
		err := carries(server, to.kind)
		if v.deltaOnly && !server.Delta {
			err = fmt.Errorf("it is to be asked for in delta, and server %q is asked in state of the world", server.Name())
		}
		if err != nil {
			return err
		}
	}
	t, err := v.client.kinds.typeOf(to.kind)
	if err != nil {
		return err
	}
	source, err := v.client.sources.Find(v.table, sources.Place{Key: to.Key(), Scope: v.scope}, to.Resolved)
	if err != nil {
		return err
	}
	w.Type, w.Source, w.Lane, w.Name = t, int32(source), int32(source), to.Name
	if to.Spelling != "" {
		spelling := to.Spelling // to stays off the heap
		w.Spelling = &spelling
	}
	timeout := to.InitialFetchTimeout
	if v.fetch != nil {
		timeout = *v.fetch
	}
	w.FetchTimeout, w.Patient = max(timeout, 0), timeout < 0
	return nil
}

// carries says why a server's streams cannot carry a type; nil if they can.
func carries(s bootstrap.ManagementServer, kind resource.AnyType) error {
	url := kind.TypeURL()
	if v3 := apiv2.ToV3(url); s.TransportV2 && v3 != url {
		return fmt.Errorf("resources of server %q are those of version 3; want type %s", s.Name(), v3)
	}
	if s.PerType && s.REST() == nil && engine.Method(kind, s.Delta, s.TransportV2) == "" {
		return fmt.Errorf("the type has no stream of its own, as server %q asks for", s.Name())
	}
	return nil
}
