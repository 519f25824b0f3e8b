package view

import (
	"slices"
	"strings"

	"github.com/xdswatch/xdswatch/internal/protoequal"
)

// showVHDS is called when the published shape comes to lead to virtual hosts of VHDS, or does no more.
func (c *core) showVHDS(v *virtualHosts, by int) {
	was := v.shown > 0
	if v.shown += by; v.shown > 0 == was {
		return
	}
	v.found.Scan(func(_ string, h *virtualHost) bool {
		for _, n := range h.clusters {
			c.showByHost(n, int32(by))
		}
		return true
	})
}

// differHost has a name, or a host name, compared, and who waits for a host of some domains look again. Of virtual
// hosts that come into the snapshot later all is new.
func (c *core) differHost(v *virtualHosts, key string, domains ...string) {
	if v.shown > 0 {
		v.differ[key], c.vhds.changed[v] = true, true
		for _, domain := range domains {
			c.out.news.add(hostKey(domain))
			c.out.news.hosts = c.out.news.hosts || strings.Contains(domain, "*")
		}
	}
}

// compareVHDS says how much virtual hosts of VHDS differ from those of the newest snapshot (VIEW-4).
func (c *core) compareVHDS() {
	if len(c.vhds.changed) == 0 || c.shown == nil {
		return
	}
	for i, rc := range c.shown.routes {
		if !c.vhds.changed[rc.from] {
			continue
		}
		var was *RouteConfig
		if c.snapshot != nil && i < len(c.snapshot.Routes) { // else the routes differ
			was = c.snapshot.Routes[i]
		}
		if rc.from.same(was) {
			c.out.differs(changeQuiet)
		} else {
			c.out.differs(changeLoud)
		}
	}
}

// same says whether a program can tell virtual hosts of VHDS from those of the newest snapshot.
func (v *virtualHosts) same(was *RouteConfig) bool {
	if was == nil || was.from != v {
		now, without := (&publishedHosts{hostsTable: v.hostsTable}).lists()
		return was != nil && equal(now, was.OnDemand()) && slices.Equal(without, was.Missing())
	}
	for key := range v.differ {
		now, _ := v.found.Get(key)
		old, _ := was.vhds.found.Get(key)
		missing, _ := v.missing.Get(key)
		if was, _ := was.vhds.missing.Get(key); absent(was) != absent(missing) || !now.same(old) {
			return false
		}
	}
	return true
}

func (h *virtualHost) same(o *virtualHost) bool {
	if h == nil || o == nil {
		return h == o
	}
	return protoequal.Equal(h.message, o.message)
}

// renewVHDS puts the newest virtual hosts of VHDS into the published shape.
func (c *core) renewVHDS() {
	if len(c.vhds.changed) == 0 {
		return
	}
	c.shown.routes = slices.Clone(c.shown.routes)
	for i, rc := range c.shown.routes {
		if c.vhds.changed[rc.from] {
			now := *rc
			now.vhds = &publishedHosts{hostsTable: rc.from.copy()}
			c.shown.routes[i] = &now
			clear(rc.from.differ)
		}
	}
}
