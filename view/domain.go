package view

import (
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"github.com/xdswatch/xdswatch/view/route"
)

// matchHost chooses the virtual host of a host name, or nil.
func matchHost(rc *routev3.RouteConfiguration, hosts []*routev3.VirtualHost, host string) *routev3.VirtualHost {
	bare := &routev3.RouteConfiguration{IgnorePortInHostMatching: rc.GetIgnorePortInHostMatching()}
	of := map[*routev3.VirtualHost]*routev3.VirtualHost{}
	for _, vh := range hosts {
		b := &routev3.VirtualHost{Name: vh.GetName(), Domains: vh.GetDomains()} // its routes would be compiled in vain
		bare.VirtualHosts = append(bare.VirtualHosts, b)
		of[b] = vh
	}
	best := route.Compile(bare, nil).VirtualHost(host)
	if best == nil {
		return nil
	}
	return of[best.Proto()]
}
