package main

import (
	"net"
	"strconv"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

	"github.com/xdswatch/xdswatch/cmd/xdsctl/internal/report"
	"github.com/xdswatch/xdswatch/view"
)

// configOf is what is printed of a snapshot without a root error.
func configOf(s *view.Snapshot) report.ConfigValue {
	c := report.ConfigValue{
		RouteConfigs: []report.RouteConfig{}, VirtualHosts: []report.VirtualHost{},
		Clusters: make(map[string]report.Cluster, s.Len()), Complete: s.Complete,
	}
	if l := s.Listener; l != nil {
		c.Listener = &report.Named{Name: l.Name, Version: l.Version}
	}
	for _, rc := range s.Routes {
		c.RouteConfigs = append(c.RouteConfigs, report.RouteConfig{
			Named:  report.Named{Name: rc.Name, Version: rc.Version},
			Inline: rc.Inline, Deleted: !rc.Deleted.IsZero(), Error: report.ErrorOf(rc.Err),
		})
	}
	for rc, vh := range s.VirtualHosts() {
		c.VirtualHosts = append(c.VirtualHosts, report.VirtualHost{
			Name: vh.GetName(), Domains: list(vh.GetDomains()), RouteConfig: rc.Name,
		})
	}
	for cl := range s.Clusters() {
		c.Clusters[cl.Name] = clusterOf(s, cl)
	}
	return c
}

func clusterOf(s *view.Snapshot, c *view.Cluster) report.Cluster {
	out := report.Cluster{
		Status: c.Status().String(), Error: report.ErrorOf(c.Err()), Deleted: !c.Deleted().IsZero(),
		Version: c.Version, Kind: c.Kind().String(),
		Leaves: list(c.Leaves()), Endpoints: []report.Locality{}, ReferencedBy: list(c.ReferencedBy()),
	}
	if note := s.Note(c); note != nil {
		out.Note = note.Error()
	}
	if c.Endpoints != nil {
		out.Endpoints, out.EndpointsDeleted = localitiesOf(c.Endpoints.Assignment()), !c.Endpoints.Deleted().IsZero()
	}
	return out
}

// list is a list that is [] in JSON if there is nothing in it.
func list(names []string) []string { return append([]string{}, names...) }

// localitiesOf keeps the order of the server.
func localitiesOf(a *endpointv3.ClusterLoadAssignment) []report.Locality {
	ls := []report.Locality{}
	for _, l := range a.GetEndpoints() {
		at := l.GetLocality()
		out := report.Locality{
			Priority: l.GetPriority(), Weight: l.GetLoadBalancingWeight().GetValue(),
			Locality:  report.Place{Region: at.GetRegion(), Zone: at.GetZone(), SubZone: at.GetSubZone()},
			Endpoints: []report.Endpoint{},
		}
		for _, e := range l.GetLbEndpoints() {
			out.Endpoints = append(out.Endpoints, report.Endpoint{
				Address: addressOf(e.GetEndpoint().GetAddress()), Weight: e.GetLoadBalancingWeight().GetValue(),
				Health: e.GetHealthStatus().String(), Hostname: e.GetEndpoint().GetHostname(),
			})
		}
		ls = append(ls, out)
	}
	return ls
}

func addressOf(a *corev3.Address) string {
	switch {
	case a.GetSocketAddress() != nil:
		s := a.GetSocketAddress()
		port := s.GetNamedPort()
		if port == "" {
			port = strconv.FormatUint(uint64(s.GetPortValue()), 10)
		}
		return net.JoinHostPort(s.GetAddress(), port)
	case a.GetPipe() != nil:
		return "unix:" + a.GetPipe().GetPath()
	case a.GetEnvoyInternalAddress() != nil:
		return "envoy:" + a.GetEnvoyInternalAddress().GetServerListenerName()
	}
	return ""
}

// waitsOf is what is printed of what is waited for.
func waitsOf(ws []view.Waiting) []report.Wait {
	out := []report.Wait{}
	for _, w := range ws {
		out = append(out, report.Wait{Type: w.Type, Name: w.Name, Since: report.Time(w.Since), Reason: w.Reason, Blocking: w.Blocking})
	}
	return out
}

// dumpOf is what is printed of the state of a view, with the newest versions.
func dumpOf(st view.State, n newest) report.ViewDump {
	d := report.ViewDump{Head: head(report.EventDump), Waiting: waitsOf(st.Waiting), Watched: []report.Watched{}}
	if s := st.Snapshot; s != nil && s.Err != nil {
		d.Error = report.ErrorOf(s.Err)
	} else if s != nil {
		value := configOf(s)
		n.renew(&value, s)
		d.Config = &value
	}
	for _, w := range st.Watched {
		n := len(w.By) + w.Holds
		if n == 0 { // the root is what everything begins with
			n = 1
		}
		d.Watched = append(d.Watched, report.Watched{Type: w.Type, Name: w.Name, References: n})
	}
	return d
}
