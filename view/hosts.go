package view

import (
	"slices"
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
)

// hostRead is a virtual host of VHDS, and what it names. It is read once.
type hostRead struct {
	host  *routev3.VirtualHost
	names names
	needs []Dependency
	asked bool // by View.VirtualHost alone
	fails bool // it was asked for a host name that it does not have

	ignorePort bool // of the route configuration, for fails
}

func (c *core) readHost(vh *routev3.VirtualHost) *hostRead {
	r := readRoutes(&routev3.RouteConfiguration{VirtualHosts: []*routev3.VirtualHost{vh}}, "", c.hooks)
	r.names.hint()
	return &hostRead{host: vh, names: r.names, needs: r.needs}
}

// readAsked reads what was asked for a host name.
func (c *core) readAsked(vh *routev3.VirtualHost, host string, ignorePort bool) *hostRead {
	h := c.readHost(vh)
	alone := &routev3.RouteConfiguration{VirtualHosts: []*routev3.VirtualHost{vh}, IgnorePortInHostMatching: ignorePort}
	h.asked, h.fails, h.ignorePort = true, matchHost(alone, host) == nil, ignorePort
	return h
}

func (h *hostRead) compare(o *hostRead) int {
	return strings.Compare(h.host.GetName(), o.host.GetName())
}

// draftHosts adds the virtual hosts of VHDS: those that the server sends to a wildcard, and those
// on demand. They hold nothing back: neither they nor their clusters. There may be many of them, one of
// which comes or goes, so that little is done for each of the others.
func (c *core) draftHosts(s *shape, rc *RouteConfig, by *feed) {
	source := rc.Message.GetVhds().GetConfigSource()
	if rc.Message.GetVhds() == nil || c.root.Host != "" {
		return
	}
	var all []*hostRead
	if p := c.resource(c.feedOf(vhdsKind, source, true, by), "*"); p != nil {
		s.needs = append(s.needs, need{part: p, Need: Optional})
		rc.unserved = p.err
		p.members.Scan(func(name string, m *resourceValue) bool {
			vh, ok := m.message.(*routev3.VirtualHost)
			// VHDS-1: what is before the last slash names the route configuration.
			if routes := name[:max(strings.LastIndexByte(name, '/'), 0)]; !ok || routes != rc.Name {
				return true
			}
			if m.host == nil {
				m.host = c.readHost(vh)
			}
			all = append(all, m.host)
			return true
		})
	}
	f := c.feedOf(vhdsKind, source, false, by)
	all, s.needs = slices.Grow(all, c.hosts.Len()), slices.Grow(s.needs, c.hosts.Len())
	ignorePort := rc.Message.GetIgnorePortInHostMatching()
	full := []byte(rc.Name + "/")
	c.hosts.Scan(func(host string, _ int) bool {
		full = append(full[:len(rc.Name)+1], host...) // OD-e: spelled as it was asked for
		p := f.resources[string(full)]
		if p == nil {
			p = c.resource(f, string(full)) // VHDS-2: the host is an alias of the resource that answers
		}
		if p == nil {
			s.lack = tooMany(c.config.maxNames)
			return true
		}
		s.needs = append(s.needs, need{part: p, Need: Optional})
		h, _ := p.read.(*hostRead)
		if vh, ok := p.message.(*routev3.VirtualHost); ok && (h == nil || h.ignorePort != ignorePort) {
			h = c.readAsked(vh, host, ignorePort)
			p.read = h
		}
		if h != nil {
			all = append(all, h)
		}
		if h != nil && h.fails || h == nil && !p.state.open() { // VHDS-3
			rc.Missing = append(rc.Missing, host)
		}
		return true
	})
	if !slices.IsSortedFunc(all, (*hostRead).compare) {
		slices.SortStableFunc(all, (*hostRead).compare)
	}
	all = slices.CompactFunc(all, func(a, b *hostRead) bool { return a.compare(b) == 0 }) // one may have aliases
	rc.OnDemand, s.names = slices.Grow(rc.OnDemand, len(all)), slices.Grow(s.names, len(all))
	for _, h := range all {
		rc.OnDemand = append(rc.OnDemand, h.host)
		s.names = append(s.names, h.names...)
		c.draftNeeds(s, h.needs, by, Optional)
		if h.asked {
			rc.asked = append(rc.asked, h.host)
		}
	}
}
