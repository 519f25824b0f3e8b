package view

import (
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"github.com/xdswatch/xdswatch/view/route"
)

// hostTable finds virtual hosts by their domains.
type hostTable struct {
	table *route.Table
	of    map[*routev3.VirtualHost]*routev3.VirtualHost // by those in the table
}

// newHostTable has the virtual hosts of a route configuration and of VHDS, which take precedence as they do in
// [route.Compile].
func newHostTable(rc *routev3.RouteConfiguration, vhds []*routev3.VirtualHost) *hostTable {
	t := &hostTable{of: map[*routev3.VirtualHost]*routev3.VirtualHost{}}
	bare := func(all []*routev3.VirtualHost) []*routev3.VirtualHost { // routes would be compiled in vain
		var domains []*routev3.VirtualHost
		for _, vh := range all {
			b := &routev3.VirtualHost{Name: vh.GetName(), Domains: vh.GetDomains()}
			domains, t.of[b] = append(domains, b), vh
		}
		return domains
	}
	t.table = route.Compile(&routev3.RouteConfiguration{
		IgnorePortInHostMatching: rc.GetIgnorePortInHostMatching(), VirtualHosts: bare(rc.GetVirtualHosts()),
	}, nil, bare(vhds)...)
	return t
}

// find is nil if there is none.
func (t *hostTable) find(host string) *routev3.VirtualHost {
	found := t.table.VirtualHost(host)
	if found == nil {
		return nil
	}
	return t.of[found.Proto()]
}

// matchHost chooses the virtual host of a host name, or nil.
func matchHost(rc *routev3.RouteConfiguration, host string) *routev3.VirtualHost {
	return newHostTable(rc, nil).find(host)
}
