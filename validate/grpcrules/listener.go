package grpcrules

import (
	"net/netip"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
)

// listener judges a listener: one with an API listener is a client's, and any other a server's.
func (j *judge) listener(l *listenerv3.Listener) {
	if l.GetApiListener() == nil {
		j.serverListener(l)
		return
	}
	path, a, m := "apiListener.apiListener", l.GetApiListener().GetApiListener(), &hcmv3.HttpConnectionManager{}
	if !isA(a, m) {
		j.refuses(RuleAPIListener, path, "the API listener is no HttpConnectionManager")
		return
	}
	if !j.read(path, a, m) {
		return
	}
	j.manager(path, m, false)
	j.httpFilters(path, m.GetHttpFilters(), false)
}

// manager judges a connection manager without its HTTP filters (gRFC A27, A36, A41).
func (j *judge) manager(path string, m *hcmv3.HttpConnectionManager, server bool) {
	if m.GetXffNumTrustedHops() != 0 {
		j.refuses(RuleXFF, path+".xffNumTrustedHops", "the number is not 0")
	}
	if len(m.GetOriginalIpDetectionExtensions()) > 0 {
		j.refuses(RuleXFF, path+".originalIpDetectionExtensions", "the field is not supported")
	}
	switch r := m.GetRouteSpecifier().(type) {
	case *hcmv3.HttpConnectionManager_Rds:
		source := r.Rds.GetConfigSource()
		if server && source.GetAds() == nil || !fromADSOrSelf(source) {
			j.refuses(RuleRouteSpecifier, path+".rds.configSource", "the source of routes is not ADS (nor self, of a client)")
		}
		if r.Rds.GetRouteConfigName() == "" {
			j.refuses(RuleRouteSpecifier, path+".rds.routeConfigName", "there is no name")
		}
	case *hcmv3.HttpConnectionManager_RouteConfig:
		j.routes(path+".routeConfig", r.RouteConfig)
	default:
		j.refuses(RuleRouteSpecifier, path, "there are no routes, or gRPC does not know where they come from")
	}
}

// serverListener judges a listener of a server (gRFC A36).
func (j *judge) serverListener(l *listenerv3.Listener) {
	if len(l.GetListenerFilters()) > 0 {
		j.refuses(RuleListenerFields, "listenerFilters", "the field is not supported")
	}
	if l.GetUseOriginalDst().GetValue() {
		j.refuses(RuleListenerFields, "useOriginalDst", "the field is not supported")
	}
	if l.GetAddress().GetSocketAddress() == nil {
		j.refuses(RuleListenerAddress, "address", "there is no socket address")
	}
	if c := l.GetDefaultFilterChain(); c != nil {
		j.providers("defaultFilterChain", j.filterChain("defaultFilterChain", c))
	}
	var m chains
	for i, c := range l.GetFilterChains() {
		j.addChain(&m, at("", "filterChains", i), c)
	}
	if !j.finishChains(&m) && l.GetDefaultFilterChain() == nil {
		j.refuses(RuleChainNone, "filterChains", "there is no filter chain that gRPC uses")
	}
}

// filterChain judges a chain, and returns the certificate providers that it names.
func (j *judge) filterChain(path string, c *listenerv3.FilterChain) security {
	names, managers := map[string]bool{}, 0
	for i, f := range c.GetFilters() {
		path := at(path, "filters", i)
		switch {
		case f.GetName() == "":
			j.refuses(RuleChainFilters, path+".name", "the filter has no name")
		case names[f.GetName()]:
			j.refuses(RuleChainFilters, path+".name", "the name is another filter's")
		}
		names[f.GetName()] = true
		m := &hcmv3.HttpConnectionManager{}
		if !isA(f.GetTypedConfig(), m) {
			j.refuses(RuleChainFilters, path+".typedConfig", "the filter is no HttpConnectionManager")
			continue
		}
		if !j.read(path+".typedConfig", f.GetTypedConfig(), m) {
			continue
		}
		j.httpFilters(path+".typedConfig", m.GetHttpFilters(), true)
		if managers == 0 { // gRPC uses the first
			j.manager(path+".typedConfig", m, true)
		}
		managers++
	}
	if len(c.GetFilters()) == 0 {
		j.refuses(RuleChainFilters, path+".filters", "there is no HttpConnectionManager")
	}
	return j.downstreamTLS(path+".transportSocket", c.GetTransportSocket())
}

// chains are the filter chains so far, by what they match.
type chains struct {
	destinations []*destination
}

// destination is what is matched of a destination.
type destination struct {
	prefix  netip.Prefix // the zero value is any
	raw     bool         // chains with raw_buffer count, and those without it do not
	sources [3]map[origin]chain
}

// origin is what is matched of a source.
type origin struct {
	prefix netip.Prefix
	port   uint32 // 0 is any
}

// chain is a filter chain that gRPC uses.
type chain struct {
	path string
	security
}

func (m *chains) at(p netip.Prefix) *destination {
	for _, d := range m.destinations {
		if d.prefix == p {
			return d
		}
	}
	d := &destination{prefix: p}
	m.destinations = append(m.destinations, d)
	return d
}

// addChain judges a chain and adds it, unless gRPC drops it.
func (j *judge) addChain(m *chains, path string, c *listenerv3.FilterChain) {
	match := c.GetFilterChainMatch()
	if match.GetDestinationPort().GetValue() != 0 {
		j.ignores(RuleChainDropped, path+".filterChainMatch.destinationPort", "gRPC does not match it, and drops the chain")
		return
	}
	for _, p := range j.prefixes(path+".filterChainMatch.prefixRanges", match.GetPrefixRanges()) {
		d := m.at(p)
		if !j.dropped(d, path+".filterChainMatch", match) {
			j.addSources(d, path, c)
		}
	}
}

// dropped says whether gRPC drops a chain for what it matches of a connection beside its addresses. A
// chain with raw_buffer takes the place of those without.
func (j *judge) dropped(d *destination, path string, match *listenerv3.FilterChainMatch) bool {
	transport := match.GetTransportProtocol()
	drop := func(field string) bool {
		j.ignores(RuleChainDropped, path+"."+field, "gRPC does not match it, and drops the chain")
		return true
	}
	switch {
	case len(match.GetServerNames()) > 0:
		return drop("serverNames")
	case transport != "" && transport != "raw_buffer", transport == "" && d.raw:
		return drop("transportProtocol")
	case transport != "" && !d.raw:
		d.raw, d.sources = true, [3]map[origin]chain{}
	}
	if len(match.GetApplicationProtocols()) > 0 {
		return drop("applicationProtocols")
	}
	return false
}

func (j *judge) addSources(d *destination, path string, c *listenerv3.FilterChain) {
	match := c.GetFilterChainMatch()
	kind := int(match.GetSourceType())
	if _, known := listenerv3.FilterChainMatch_ConnectionSourceType_name[int32(kind)]; !known {
		j.refuses(RuleChainMatch, path+".filterChainMatch.sourceType", "the source type is not known")
		return
	}
	if d.sources[kind] == nil {
		d.sources[kind] = map[origin]chain{}
	}
	ports := match.GetSourcePorts()
	if len(ports) == 0 {
		ports = []uint32{0}
	}
	for _, p := range j.prefixes(path+".filterChainMatch.sourcePrefixRanges", match.GetSourcePrefixRanges()) {
		for _, port := range ports {
			if _, twice := d.sources[kind][origin{p, port}]; twice {
				j.refuses(RuleChainOverlap, path+".filterChainMatch", "the chain matches what one before it matches")
				continue
			}
			d.sources[kind][origin{p, port}] = chain{path, j.filterChain(path, c)}
		}
	}
}

// prefixes reads ranges; the zero prefix stands for none.
func (j *judge) prefixes(path string, ranges []*corev3.CidrRange) (all []netip.Prefix) {
	for i, r := range ranges {
		address, err := netip.ParseAddr(r.GetAddressPrefix())
		p := netip.PrefixFrom(address.Unmap(), int(r.GetPrefixLen().GetValue())).Masked()
		if err != nil || !p.IsValid() {
			j.refuses(RuleChainMatch, at("", path, i), "it is no range of IP addresses")
			continue
		}
		all = append(all, p)
	}
	if len(ranges) == 0 {
		return []netip.Prefix{{}}
	}
	return all
}

// finishChains judges the certificate providers of the chains that gRPC uses, and says whether there
// are any.
func (j *judge) finishChains(m *chains) (some bool) {
	for _, d := range m.destinations {
		for _, s := range d.sources {
			for _, c := range s {
				some = true
				j.providers(c.path, c.security)
			}
		}
	}
	return some
}
