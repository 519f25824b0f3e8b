package client

import (
	"fmt"

	"github.com/xdswatch/xdswatch/authority"
	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/internal/apiv2"
	"github.com/xdswatch/xdswatch/internal/engine"
	"github.com/xdswatch/xdswatch/internal/machine"
	"github.com/xdswatch/xdswatch/internal/sources"
	"github.com/xdswatch/xdswatch/resource"
)

// server is one that the machine knows.
func (c *Client) server(i int) bootstrap.ManagementServer { return c.sources.Server(i) }

// uri is a server's.
func (c *Client) uri(server int) string { return c.server(server).Name() }

// first is the server that a watch's source prefers.
func (c *Client) first(w *machine.Watch) int { return c.sources.Source(int(w.Source)).Servers[0] }

// newSources makes the sources of the bootstrap, and has the engine know them.
func (c *Client) newSources(ec *engine.Config) (err error) {
	c.sources, ec.Servers, ec.Sources, err = sources.New(sources.Config{
		Override: c.config.override, Make: c.engineServer, Extend: c.extend, Params: c.paramsOf, Stored: c.config.Store != nil,
	}, c.view.table)
	return err
}

// extend has the engine know more of them.
func (c *Client) extend(servers []engine.Server, all []machine.Source) error {
	if !c.engine.Extend(servers, all) {
		return ErrClosed
	}
	return nil
}

// paramsOf are the dynamic parameters of a key's names.
func (c *Client) paramsOf(k authority.Key) map[string]string {
	if k.Old {
		return c.boot.DynamicParameters.Old
	}
	return c.boot.DynamicParameters.Authorities[k.Authority]
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
	timeout := v.fetchTimeout(to.Resolved)
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
