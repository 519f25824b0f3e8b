package view

import (
	"slices"
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"github.com/xdswatch/xdswatch/internal/domains"
)

// domainsOf find the virtual hosts of a route configuration. The first of a domain keeps it.
func domainsOf(rc *routev3.RouteConfiguration) *domains.Table[*routev3.VirtualHost] {
	d := domains.New[*routev3.VirtualHost](rc.GetIgnorePortInHostMatching())
	for _, vh := range rc.GetVirtualHosts() {
		for _, domain := range vh.GetDomains() {
			d.Change(domain, func(first *routev3.VirtualHost, has bool) (*routev3.VirtualHost, bool) {
				if has {
					return first, true
				}
				return vh, true
			})
		}
	}
	return d
}

// matchHost chooses the virtual host of a host name, or nil.
func matchHost(rc *routev3.RouteConfiguration, host string) *routev3.VirtualHost {
	vh, _, _ := domainsOf(rc).Find(host)
	return vh
}

// hostDomains find the virtual hosts of VHDS that have a domain, by name: the first is the one that counts.
type hostDomains = domains.Table[[]*virtualHost]

// enter adds the domains of a virtual host, or takes them out.
func enter(d *hostDomains, h *virtualHost, in bool) {
	for _, domain := range h.message.GetDomains() {
		d.Change(domain, func(all []*virtualHost, _ bool) ([]*virtualHost, bool) {
			i, has := slices.BinarySearchFunc(all, h, func(a, b *virtualHost) int {
				return strings.Compare(a.message.GetName(), b.message.GetName())
			})
			if has != in { // else the host names it twice
				if all = slices.Clone(all); in {
					all = slices.Insert(all, i, h)
				} else {
					all = slices.Delete(all, i, i+1)
				}
			}
			return all, len(all) > 0
		})
	}
}
