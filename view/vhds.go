package view

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"github.com/tidwall/btree"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/internal/domains"
	"github.com/xdswatch/xdswatch/internal/protoequal"
	"github.com/xdswatch/xdswatch/xdstp"
)

// vhdsState is what a core has of VHDS.
type vhdsState struct {
	names    btree.Map[string, int]         // host names that the program wants, and how often each is held
	live     []*virtualHosts                // that shapes lead to
	refollow map[*virtualHost]*virtualHosts // below which resources name others now
	changed  map[*virtualHosts]bool         // of the published shape, that may differ from the newest snapshot
}

func newVHDSState() vhdsState {
	return vhdsState{refollow: map[*virtualHost]*virtualHosts{}, changed: map[*virtualHosts]bool{}}
}

// any says whether a step has something to do.
func (s *vhdsState) any() bool { return len(s.refollow)+len(s.changed) > 0 }

// virtualHosts are those of VHDS of one route configuration, from one config source: those that the server sends by
// itself, and those on demand. Neither they nor what they name holds anything back, so no shape has them: each comes
// and goes by itself, as clusters do.
type virtualHosts struct {
	routes   *resourcePart
	source   *corev3.ConfigSource
	wildcard *resourcePart // has what the server sends by itself
	shapes   int           // that lead to them
	shown    int           // of them published

	subscribed map[string]*resourcePart        // by host name; nil if there was no room
	given      map[string]*virtualHost         // by giver
	named      btree.Map[string, *virtualHost] // by name and giver; the first of a name counts, since one may have aliases
	differ     map[string]bool                 // names and host names that may differ from those of the newest snapshot
	hostsTable
}

// hostsTable is what snapshots have of VHDS.
type hostsTable struct {
	found   *btree.Map[string, *virtualHost] // by name
	missing *btree.Map[string, error]        // why there is none, by host name (VHDS-3)
	domains *hostDomains
}

func (t hostsTable) copy() hostsTable {
	return hostsTable{t.found.Copy(), t.missing.Copy(), t.domains.Copy()}
}

// Givers of virtual hosts: members of the wildcard come before host names that were subscribed to.
const (
	byMember = "0"
	byHost   = "1"
)

// hostName is a host name that a resource is the answer for.
type hostName struct {
	of   *virtualHosts
	name string
}

// holdHost and releaseHost count who wants the virtual host of a host name.
func (c *core) holdHost(now time.Time, host string) {
	c.now = now
	n, _ := c.vhds.names.Get(host)
	c.vhds.names.Set(host, n+1)
	if n == 0 {
		for _, v := range c.vhds.live {
			c.subscribeHost(v, host)
		}
	}
}

func (c *core) releaseHost(now time.Time, host string) {
	c.now = now
	if n, _ := c.vhds.names.Get(host); n > 1 {
		c.vhds.names.Set(host, n-1)
	} else {
		c.vhds.names.Delete(host)
		for _, v := range c.vhds.live {
			c.unsubscribeHost(v, host)
		}
	}
}

// draftVHDS finds the virtual hosts of VHDS of a route configuration.
func (c *core) draftVHDS(s *shape, rc *RouteConfig, p *resourcePart) {
	if rc.Message.GetVhds() == nil || c.root.Host != "" {
		return
	}
	// VHDS-1, C-3: the names of its virtual hosts would be structured ones of another type.
	if xdstp.IsXDSTP(p.name) {
		rc.unserved = fmt.Errorf("virtual hosts on demand of a route configuration with an xdstp name: %w", errors.ErrUnsupported)
		return
	}
	source, ignorePort := rc.Message.GetVhds().GetConfigSource(), rc.Message.GetIgnorePortInHostMatching()
	wildcard := c.resource(c.feedOf(vhdsKind, source, true, p.feed), "*")
	if wildcard == nil {
		s.lack = tooMany(c.config.maxNames)
		return
	}
	s.needs = append(s.needs, need{part: wildcard, Need: Optional})
	if i := slices.IndexFunc(p.vhds, func(v *virtualHosts) bool { return v.wildcard == wildcard && v.domains.IgnorePort() == ignorePort }); i >= 0 {
		rc.from = p.vhds[i]
	} else {
		rc.from = &virtualHosts{
			routes: p, source: source, wildcard: wildcard,
			subscribed: map[string]*resourcePart{}, given: map[string]*virtualHost{}, differ: map[string]bool{},
			hostsTable: hostsTable{
				btree.NewMap[string, *virtualHost](degree), btree.NewMap[string, error](degree), domains.New[[]*virtualHost](ignorePort),
			},
		}
	}
	rc.unserved = join(wildcard.err, c.lackOf(rc.from))
}

// vhds are those that a shape leads to.
func (s *shape) vhds() iter.Seq[*virtualHosts] {
	return func(yield func(*virtualHosts) bool) {
		for _, rc := range s.routes {
			if rc.from != nil && !yield(rc.from) {
				return
			}
		}
	}
}

// leadTo counts the shapes that lead to virtual hosts of VHDS.
func (c *core) leadTo(v *virtualHosts, by int) {
	switch v.shapes += by; {
	case v.shapes == 0:
		ended := func(o *virtualHosts) bool { return o == v }
		c.vhds.live, v.routes.vhds = slices.DeleteFunc(c.vhds.live, ended), slices.DeleteFunc(v.routes.vhds, ended)
		for host := range v.subscribed {
			c.unsubscribeHost(v, host)
		}
		for giver := range v.given {
			c.give(v, giver, nil)
		}
	case v.shapes == by:
		c.vhds.live, v.routes.vhds = append(c.vhds.live, v), append(v.routes.vhds, v)
		v.wildcard.members.Scan(func(name string, m *resourceValue) bool {
			c.takeHost(v, name, m)
			return true
		})
		c.vhds.names.Scan(func(host string, _ int) bool {
			c.subscribeHost(v, host)
			return true
		})
	}
}

// subscribeHost subscribes to the virtual host of a host name.
func (c *core) subscribeHost(v *virtualHosts, host string) {
	f := c.feedOf(vhdsKind, v.source, false, v.routes.feed)
	full := v.routes.name + "/" + host // OD-e: spelled as the program has it
	p := c.resource(f, full)           // VHDS-2: the host is an alias of the resource that answers
	if v.subscribed[host] = p; p == nil {
		c.cramp()
		return
	}
	p.users++
	p.answers = append(p.answers, hostName{v, host})
	c.answerHost(v, host, p)
}

func (c *core) unsubscribeHost(v *virtualHosts, host string) {
	p := v.subscribed[host]
	if delete(v.subscribed, host); p == nil {
		c.due.stale = true // a note says so
		return
	}
	p.users--
	p.answers = slices.DeleteFunc(p.answers, func(n hostName) bool { return n == hostName{v, host} })
	c.enqueue(p)
	c.give(v, byHost+host, nil)
	c.setMissing(v, host, nil)
}

// answerHost takes what came for a host name.
func (c *core) answerHost(v *virtualHosts, host string, p *resourcePart) {
	read := v.given[byHost+host]
	switch message, ok := p.message.(*routev3.VirtualHost); {
	case !ok:
		read = nil
	case read == nil || read.message != message:
		read = c.readOnDemand(message, host, v.domains.IgnorePort())
	}
	c.give(v, byHost+host, read)
	// VHDS-3: there is none.
	// ONDEMAND-1: an error ends the waiting too, and is another answer.
	switch {
	case read != nil && read.lacksHost:
		c.setMissing(v, host, client.ErrDoesNotExist)
	case read == nil && !p.state.open():
		c.setMissing(v, host, missed(p.err))
	default:
		c.setMissing(v, host, nil)
	}
}

// missed is why there is no virtual host, given the error of its resource. One that cannot be asked for does not exist.
func missed(err error) error {
	if e, ok := errors.AsType[*client.ResourceError](err); ok && e.Kind == client.ErrorConfig {
		return client.ErrDoesNotExist
	}
	return err
}

func (c *core) setMissing(v *virtualHosts, host string, why error) {
	if was, _ := v.missing.Get(host); sameError(was, why) {
		return
	}
	if why != nil {
		v.missing.Set(host, why)
	} else {
		v.missing.Delete(host)
	}
	c.differHost(v, host, host)
}

// takeMemberHost takes a member of a wildcard; nil if it is gone.
func (c *core) takeMemberHost(wildcard *resourcePart, name string, m *resourceValue) {
	for _, v := range c.vhds.live {
		if v.wildcard == wildcard {
			c.takeHost(v, name, m)
		}
	}
}

func (c *core) takeHost(v *virtualHosts, name string, m *resourceValue) {
	// VHDS-1: what is before the last slash names the route configuration.
	if name[:max(strings.LastIndexByte(name, '/'), 0)] != v.routes.name {
		return
	}
	var message *routev3.VirtualHost
	if m != nil {
		message, _ = m.message.(*routev3.VirtualHost)
	}
	switch read := v.given[byMember+name]; {
	case message == nil:
		c.give(v, byMember+name, nil)
	case read == nil || !protoequal.Equal(read.message, message):
		c.give(v, byMember+name, c.readHost(message))
	}
}

func (h *virtualHost) key(giver string) string { return h.message.GetName() + "\x00" + giver }

// give replaces what came from a giver; nil is nothing.
func (c *core) give(v *virtualHosts, giver string, h *virtualHost) {
	old := v.given[giver]
	if old == h {
		return
	}
	if old != nil {
		v.named.Delete(old.key(giver))
		delete(v.given, giver)
	}
	if h != nil {
		v.named.Set(h.key(giver), h)
		v.given[giver] = h
		c.choose(v, h.message.GetName())
	}
	if old != nil {
		c.choose(v, old.message.GetName())
	}
}

// choose finds the virtual host of a name.
func (c *core) choose(v *virtualHosts, name string) {
	var now *virtualHost
	v.named.Ascend(name+"\x00", func(key string, h *virtualHost) bool {
		if h.message.GetName() == name {
			now = h
		}
		return now == nil && strings.HasPrefix(key, name+"\x00") // a name may have a zero byte
	})
	old, _ := v.found.Get(name)
	if now == old {
		return
	}
	v.found.Delete(name)
	if now != nil {
		v.found.Set(name, now)
		c.followNamed(v, now, true)
	}
	if old != nil {
		enter(v.domains, old, false)
		c.followNamed(v, old, false)
		c.differHost(v, name, old.message.GetDomains()...)
	}
	if now != nil {
		enter(v.domains, now, true)
		c.differHost(v, name, now.message.GetDomains()...)
	}
}
