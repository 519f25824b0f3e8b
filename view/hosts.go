package view

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"github.com/tidwall/btree"

	"github.com/xdswatch/xdswatch/internal/protoequal"
	"github.com/xdswatch/xdswatch/view/route"
)

// hostRead is a virtual host of VHDS, and what it names.
type hostRead struct {
	host  *routev3.VirtualHost
	names names
	needs []Dependency
	asked bool // by View.VirtualHost alone
	fails bool // it was asked for a host name that it does not have

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

func (c *core) readHost(vh *routev3.VirtualHost) *hostRead {
	r := readRoutes(&routev3.RouteConfiguration{VirtualHosts: []*routev3.VirtualHost{vh}}, "", c.hooks)
	r.names.hint()
	return &hostRead{host: vh, names: r.names, needs: r.needs}
}

// readAsked reads what was asked for a host name.
func (c *core) readAsked(vh *routev3.VirtualHost, host string, ignorePort bool) *hostRead {
	h := c.readHost(vh)
	alone := &routev3.RouteConfiguration{VirtualHosts: []*routev3.VirtualHost{vh}, IgnorePortInHostMatching: ignorePort}
	h.asked, h.fails = true, matchHost(alone, host) == nil
	return h
}

// hosts are the virtual hosts of VHDS of one route configuration, from one config source: those of a wildcard, and
// those on demand. Neither they nor what they name holds anything back, so no shape has them: each comes and goes by
// itself, as clusters do.
type hosts struct {
	routes *resourcePart
	source *corev3.ConfigSource
	all    *resourcePart // what the server sends by itself
	shapes int           // that lead to them
	shown  int           // of them published

	asked  map[string]*resourcePart     // by host name; nil if there was no room
	given  map[string]*hostRead         // by giver
	named  btree.Map[string, *hostRead] // by name and giver; the first of a name counts, since one may have aliases
	differ map[string]bool              // names and host names that may differ from those of the newest snapshot
	hostTable
}

// Givers of virtual hosts: members that the server sends by itself come before host names that were asked for.
const (
	byMember = "0"
	byHost   = "1"
)

// hostTable is what snapshots have of hosts.
type hostTable struct {
	found   *btree.Map[string, *hostRead] // by name
	missing *btree.Map[string, bool]      // by host name (VHDS-3)
	domains *domains
}

// asker wants the virtual host of a host name.
type asker struct {
	hosts *hosts
	host  string
}

// draftHosts finds the virtual hosts of VHDS of a route configuration.
func (c *core) draftHosts(s *shape, rc *RouteConfig, p *resourcePart) {
	if rc.Message.GetVhds() == nil || c.root.Host != "" {
		return
	}
	source, ignorePort := rc.Message.GetVhds().GetConfigSource(), rc.Message.GetIgnorePortInHostMatching()
	all := c.resource(c.feedOf(vhdsKind, source, true, p.feed), "*")
	if all == nil {
		s.lack = tooMany(c.config.maxNames)
		return
	}
	s.needs = append(s.needs, need{part: all, Need: Optional})
	var h *hosts
	if i := slices.IndexFunc(p.vhds, func(h *hosts) bool { return h.all == all && h.domains.IgnorePort() == ignorePort }); i >= 0 {
		h = p.vhds[i]
	} else {
		h = &hosts{
			routes: p, source: source, all: all,
			asked: map[string]*resourcePart{}, given: map[string]*hostRead{}, differ: map[string]bool{},
			hostTable: hostTable{btree.NewMap[string, *hostRead](degree), btree.NewMap[string, bool](degree), route.NewDomains[[]*hostRead](ignorePort)},
		}
	}
	rc.unserved, rc.vhds = join(all.err, c.lackOf(h)), h.view()
}

// hosts are the virtual hosts of VHDS that a shape leads to.
func (s *shape) hosts() iter.Seq[*hosts] {
	return func(yield func(*hosts) bool) {
		for _, rc := range s.routes {
			if rc.vhds != nil && !yield(rc.vhds.of) {
				return
			}
		}
	}
}

// leadTo counts the shapes that lead to virtual hosts.
func (c *core) leadTo(h *hosts, by int) {
	switch h.shapes += by; {
	case h.shapes == 0:
		ended := func(o *hosts) bool { return o == h }
		c.vhds, h.routes.vhds = slices.DeleteFunc(c.vhds, ended), slices.DeleteFunc(h.routes.vhds, ended)
		for host := range h.asked {
			c.unask(h, host)
		}
		for giver := range h.given {
			c.give(h, giver, nil)
		}
	case h.shapes == by:
		c.vhds, h.routes.vhds = append(c.vhds, h), append(h.routes.vhds, h)
		h.all.members.Scan(func(name string, m *resourceValue) bool {
			c.takeHost(h, name, m)
			return true
		})
		c.hosts.Scan(func(host string, _ int) bool {
			c.ask(h, host)
			return true
		})
	}
}

// showHosts is called when the published shape comes to lead to virtual hosts, or does no more.
func (c *core) showHosts(h *hosts, by int) {
	was := h.shown > 0
	if h.shown += by; h.shown > 0 == was {
		return
	}
	h.found.Scan(func(_ string, vh *hostRead) bool {
		for _, n := range vh.clusters {
			c.showByHost(n, int32(by))
		}
		return true
	})
}

// ask asks for the virtual host of a host name.
func (c *core) ask(h *hosts, host string) {
	f := c.feedOf(vhdsKind, h.source, false, h.routes.feed)
	full := h.routes.name + "/" + host // OD-e: spelled as it was asked for
	p := c.resource(f, full)           // VHDS-2: the host is an alias of the resource that answers
	if h.asked[host] = p; p == nil {
		c.cramp()
		return
	}
	p.users++
	p.asked = append(p.asked, asker{h, host})
	c.answer(h, host, p)
}

func (c *core) unask(h *hosts, host string) {
	p := h.asked[host]
	if delete(h.asked, host); p == nil {
		c.due.stale = true // a note says so
		return
	}
	p.users--
	p.asked = slices.DeleteFunc(p.asked, func(a asker) bool { return a == asker{h, host} })
	c.enqueue(p)
	c.give(h, byHost+host, nil)
	c.miss(h, host, false)
}

// answer takes what came for a host name.
func (c *core) answer(h *hosts, host string, p *resourcePart) {
	read := h.given[byHost+host]
	switch vh, ok := p.message.(*routev3.VirtualHost); {
	case !ok:
		read = nil
	case read == nil || read.host != vh:
		read = c.readAsked(vh, host, h.domains.IgnorePort())
	}
	c.give(h, byHost+host, read)
	c.miss(h, host, read != nil && read.fails || read == nil && !p.state.open()) // VHDS-3
}

func (c *core) miss(h *hosts, host string, missing bool) {
	if was, _ := h.missing.Get(host); was == missing {
		return
	}
	if missing {
		h.missing.Set(host, true)
	} else {
		h.missing.Delete(host)
	}
	c.differHost(h, host, host)
}

// differHost has a name, or a host name, compared, and who asks for a host of some domains look again. Of virtual
// hosts that come into the snapshot later all is new.
func (c *core) differHost(h *hosts, key string, domains ...string) {
	if h.shown > 0 {
		h.differ[key], c.out.hosts[h] = true, true
		for _, domain := range domains {
			c.out.news.add(hostKey(domain))
			c.out.news.hosts = c.out.news.hosts || strings.Contains(domain, "*")
		}
	}
}

// takeHosts takes a member of a wildcard; nil if it is gone.
func (c *core) takeHosts(all *resourcePart, name string, m *resourceValue) {
	for _, h := range c.vhds {
		if h.all == all {
			c.takeHost(h, name, m)
		}
	}
}

func (c *core) takeHost(h *hosts, name string, m *resourceValue) {
	// VHDS-1: what is before the last slash names the route configuration.
	if name[:max(strings.LastIndexByte(name, '/'), 0)] != h.routes.name {
		return
	}
	var vh *routev3.VirtualHost
	if m != nil {
		vh, _ = m.message.(*routev3.VirtualHost)
	}
	switch read := h.given[byMember+name]; {
	case vh == nil:
		c.give(h, byMember+name, nil)
	case read == nil || !protoequal.Equal(read.host, vh):
		c.give(h, byMember+name, c.readHost(vh))
	}
}

func (h *hostRead) key(giver string) string { return h.host.GetName() + "\x00" + giver }

// give replaces what came from a giver; nil is nothing.
func (c *core) give(h *hosts, giver string, vh *hostRead) {
	old := h.given[giver]
	if old == vh {
		return
	}
	if old != nil {
		h.named.Delete(old.key(giver))
		delete(h.given, giver)
	}
	if vh != nil {
		h.named.Set(vh.key(giver), vh)
		h.given[giver] = vh
		c.choose(h, vh.host.GetName())
	}
	if old != nil {
		c.choose(h, old.host.GetName())
	}
}

// choose finds the virtual host of a name.
func (c *core) choose(h *hosts, name string) {
	var now *hostRead
	h.named.Ascend(name+"\x00", func(key string, vh *hostRead) bool {
		if vh.host.GetName() == name {
			now = vh
		}
		return now == nil && strings.HasPrefix(key, name+"\x00") // a name may have a zero byte
	})
	old, _ := h.found.Get(name)
	if now == old {
		return
	}
	h.found.Delete(name)
	if now != nil {
		h.found.Set(name, now)
		c.followNamed(h, now, true)
	}
	if old != nil {
		enter(h.domains, old, false)
		c.followNamed(h, old, false)
		c.differHost(h, name, old.host.GetDomains()...)
	}
	if now != nil {
		enter(h.domains, now, true)
		c.differHost(h, name, now.host.GetDomains()...)
	}
}

// followNamed has what a virtual host names be watched, found anew if it was already; or not any more.
func (c *core) followNamed(h *hosts, vh *hostRead, on bool) {
	parts, clusters, lack := vh.parts, vh.clusters, vh.lack
	vh.parts, vh.clusters, vh.lack = nil, nil, nil
	for _, n := range parts {
		delete(n.part.hosts, vh)
		n.part.users--
		c.enqueue(n.part)
	}
	if on {
		c.follows(h, vh)
	}
	for _, n := range clusters { // which a new one of vh.clusters may be
		c.nameByHost(h, n, -1)
	}
	if !sameError(vh.lack, lack) {
		c.due.stale = true // a note says so
	}
}

func (c *core) follows(h *hosts, vh *hostRead) {
	named := vh.names
	if len(vh.needs) > 0 {
		needs, clusters, cramped := c.needsOf(vh.needs, h.routes.feed, Optional)
		vh.parts, named = needs, append(slices.Clip(named), clusters...)
		named.compact()
		for _, n := range needs {
			if n.part.hosts == nil {
				n.part.hosts = map[*hostRead]*hosts{}
			}
			n.part.hosts[vh] = h
			n.part.users++
			vh.lack = cmp.Or(vh.lack, n.deep)
		}
		if len(cramped) > 0 {
			vh.lack = c.cramp()
		}
	}
	for _, n := range named {
		p := c.cluster(n.name)
		if p == nil {
			vh.lack = c.cramp()
			continue
		}
		vh.clusters = append(vh.clusters, hostCluster{p, n.refs})
		c.nameByHost(h, hostCluster{p, n.refs}, 1)
	}
}

// hosted counts the virtual hosts of VHDS that name a cluster, and those of them in the snapshot, by how they do.
type hosted struct {
	all   int32
	shown [len(hostWays)]int32
}

var hostWays = [...]refs{refHost, refMirror, refHint}

func (c *core) nameByHost(h *hosts, n hostCluster, by int32) {
	n.part.own().hosted.all += by
	if h.shown > 0 {
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

// refollow is for virtual hosts below which resources name others now.
func (c *core) refollow() {
	all := c.due.refollow
	c.due.refollow = map[*hostRead]*hosts{}
	byName := func(a, b *hostRead) int { return strings.Compare(a.host.GetName(), b.host.GetName()) }
	for _, vh := range slices.SortedFunc(maps.Keys(all), byName) { // there may be room for some
		h := all[vh]
		if now, _ := h.found.Get(vh.host.GetName()); now == vh {
			c.followNamed(h, vh, true)
		}
	}
}

// cramp notes that there was no room for something of VHDS.
func (c *core) cramp() error {
	c.due.stale = true // a note says so
	c.starveShape()
	return tooMany(c.config.maxNames)
}

// lackOf says that not all is followed; nil if it is.
func (c *core) lackOf(h *hosts) (err error) {
	for _, p := range h.asked {
		if p == nil {
			return tooMany(c.config.maxNames)
		}
	}
	h.found.Scan(func(_ string, vh *hostRead) bool {
		err = vh.lack
		return err == nil
	})
	return err
}

// feedHosts has the virtual hosts try again that found no room.
func (c *core) feedHosts() {
	for _, h := range c.vhds {
		for _, host := range slices.Sorted(maps.Keys(h.asked)) {
			if h.asked[host] == nil {
				c.due.stale = true // a note says so
				c.ask(h, host)
			}
		}
		for _, vh := range h.found.Values() {
			if vh.lack != nil {
				c.followNamed(h, vh, true)
			}
		}
	}
}

// compareHosts says how much the virtual hosts of VHDS differ from those of the newest snapshot (VIEW-4).
func (c *core) compareHosts() {
	if len(c.out.hosts) == 0 || c.shown == nil {
		return
	}
	for i, rc := range c.shown.routes {
		if rc.vhds == nil || !c.out.hosts[rc.vhds.of] {
			continue
		}
		var was *hostView
		if c.snapshot != nil && i < len(c.snapshot.Routes) { // else the routes differ
			was = c.snapshot.Routes[i].vhds
		}
		if rc.vhds.of.same(was) {
			c.out.differs(changeQuiet)
		} else {
			c.out.differs(changeLoud)
		}
	}
}

// same says whether a program can tell virtual hosts from those of the newest snapshot.
func (h *hosts) same(v *hostView) bool {
	if v == nil || v.of != h {
		now, without := h.view().lists()
		old, oldWithout := v.lists()
		return equal(now, old) && slices.Equal(without, oldWithout)
	}
	for key := range h.differ {
		now, _ := h.found.Get(key)
		old, _ := v.found.Get(key)
		missing, _ := h.missing.Get(key)
		if was, _ := v.missing.Get(key); was != missing || !now.same(old) {
			return false
		}
	}
	return true
}

func (h *hostRead) same(o *hostRead) bool {
	if h == nil || o == nil {
		return h == o
	}
	return protoequal.Equal(h.host, o.host)
}

// renewHosts puts the newest virtual hosts of VHDS into the published shape.
func (c *core) renewHosts() {
	if len(c.out.hosts) == 0 {
		return
	}
	c.shown.routes = slices.Clone(c.shown.routes)
	for i, rc := range c.shown.routes {
		if rc.vhds != nil && c.out.hosts[rc.vhds.of] {
			now := *rc
			now.vhds = rc.vhds.of.view()
			c.shown.routes[i] = &now
			clear(now.vhds.of.differ)
		}
	}
}

func (h *hosts) view() *hostView {
	return &hostView{of: h, hostTable: hostTable{h.found.Copy(), h.missing.Copy(), h.domains.Copy()}}
}
