package view

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
)

// virtualHost is a virtual host of VHDS, and what it names.
type virtualHost struct {
	message   *routev3.VirtualHost
	names     names
	needs     []Dependency
	onDemand  bool // it is there for a host name alone
	lacksHost bool // which is not among its domains

	// What it leads to, while it is the one of its name:
	parts    []need
	clusters []hostCluster
	lack     error // not all of it is followed, for want of room or too deep
}

// hostCluster is a cluster that a virtual host names.
type hostCluster struct {
	part *clusterPart
	refs refs
}

func (c *core) readHost(message *routev3.VirtualHost) *virtualHost {
	r := readRoutes(&routev3.RouteConfiguration{VirtualHosts: []*routev3.VirtualHost{message}}, "", c.hooks)
	r.names.hint()
	return &virtualHost{message: message, names: r.names, needs: r.needs}
}

// readOnDemand reads the answer for a host name.
func (c *core) readOnDemand(message *routev3.VirtualHost, host string, ignorePort bool) *virtualHost {
	h := c.readHost(message)
	alone := &routev3.RouteConfiguration{VirtualHosts: []*routev3.VirtualHost{message}, IgnorePortInHostMatching: ignorePort}
	h.onDemand, h.lacksHost = true, matchHost(alone, host) == nil
	return h
}

// followNamed has what a virtual host names be watched, found anew if it was already; or not any more.
func (c *core) followNamed(v *virtualHosts, h *virtualHost, on bool) {
	parts, clusters, lack := h.parts, h.clusters, h.lack
	h.parts, h.clusters, h.lack = nil, nil, nil
	for _, n := range parts {
		delete(n.part.leaders, h)
		n.part.users--
		c.enqueue(n.part)
	}
	if on {
		c.watchBelow(v, h)
	}
	for _, n := range clusters { // which a new one of h.clusters may be
		c.nameByHost(v, n, -1)
	}
	if !sameError(h.lack, lack) {
		c.due.stale = true // a note says so
	}
}

func (c *core) watchBelow(v *virtualHosts, h *virtualHost) {
	named := h.names
	if len(h.needs) > 0 {
		needs, clusters, cramped := c.needsOf(h.needs, v.routes.feed, Optional)
		h.parts, named = needs, append(slices.Clip(named), clusters...)
		named.compact()
		for _, n := range needs {
			if n.part.leaders == nil {
				n.part.leaders = map[*virtualHost]*virtualHosts{}
			}
			n.part.leaders[h] = v
			n.part.users++
			h.lack = cmp.Or(h.lack, n.deep)
		}
		if len(cramped) > 0 {
			h.lack = c.cramp()
		}
	}
	for _, n := range named {
		p := c.cluster(n.name)
		if p == nil {
			h.lack = c.cramp()
			continue
		}
		h.clusters = append(h.clusters, hostCluster{p, n.refs})
		c.nameByHost(v, hostCluster{p, n.refs}, 1)
	}
}

// refollow is for virtual hosts below which resources name others now.
func (c *core) refollow() {
	all := c.vhds.refollow
	c.vhds.refollow = map[*virtualHost]*virtualHosts{}
	byName := func(a, b *virtualHost) int { return strings.Compare(a.message.GetName(), b.message.GetName()) }
	for _, h := range slices.SortedFunc(maps.Keys(all), byName) { // there may be room for some
		v := all[h]
		if now, _ := v.found.Get(h.message.GetName()); now == h {
			c.followNamed(v, h, true)
		}
	}
}

// hosted counts the virtual hosts of VHDS that name a cluster, and those of them in the snapshot, by how they do.
type hosted struct {
	all   int32
	shown [len(hostWays)]int32
}

var hostWays = [...]refs{refHost, refMirror, refHint}

func (c *core) nameByHost(v *virtualHosts, n hostCluster, by int32) {
	n.part.own().hosted.all += by
	if v.shown > 0 {
		c.showByHost(n, by)
	} else {
		c.place(n.part)
	}
}

func (c *core) showByHost(n hostCluster, by int32) {
	for i, way := range hostWays {
		if n.refs&way != 0 {
			n.part.own().hosted.shown[i] += by
		}
	}
	c.place(n.part)
}

// named says who names a cluster in the snapshot, other clusters left out.
func (p *clusterPart) named() refs {
	r := p.base
	for i, way := range hostWays {
		if p.rare().hosted.shown[i] > 0 {
			r |= way
		}
	}
	return r
}

// cramp notes that there was no room for something of VHDS.
func (c *core) cramp() error {
	c.due.stale = true // a note says so
	c.starveShape()
	return tooMany(c.config.maxNames)
}

// lackOf says that not all is followed; nil if it is.
func (c *core) lackOf(v *virtualHosts) (err error) {
	for _, p := range v.subscribed {
		if p == nil {
			return tooMany(c.config.maxNames)
		}
	}
	v.found.Scan(func(_ string, h *virtualHost) bool {
		err = h.lack
		return err == nil
	})
	return err
}

// retryVHDS has what found no room try again.
func (c *core) retryVHDS() {
	for _, v := range c.vhds.live {
		for _, host := range slices.Sorted(maps.Keys(v.subscribed)) {
			if v.subscribed[host] == nil {
				c.due.stale = true // a note says so
				c.subscribeHost(v, host)
			}
		}
		for _, h := range v.found.Values() {
			if h.lack != nil {
				c.followNamed(v, h, true)
			}
		}
	}
}
