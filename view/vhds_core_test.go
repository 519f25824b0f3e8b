package view

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/proto"

	"github.com/xdswatch/xdswatch/internal/domains"
	"github.com/xdswatch/xdswatch/resource/ecds"
	"github.com/xdswatch/xdswatch/view/route"
)

// checkHosts sees that what virtual hosts of VHDS change one by one is what they amount to at once: those of each
// name, what is missing, and which clusters they name.
func (d *driver) checkHosts() {
	c := d.core
	counted := map[*clusterPart]*hosted{}
	for _, h := range c.vhds.live {
		given := map[string][]string{} // who gives a name
		note := func(giver string, vh *virtualHost) {
			given[vh.message.GetName()] = append(given[vh.message.GetName()], giver)
		}
		h.wildcard.members.Scan(func(name string, m *resourceValue) bool {
			if strings.HasPrefix(name, h.routes.name+"/") {
				note(byMember+name, h.given[byMember+name])
			}
			return true
		})
		c.vhds.names.Scan(func(host string, _ int) bool {
			vh, p := h.given[byHost+host], h.subscribed[host]
			if vh != nil {
				note(byHost+host, vh)
			}
			missing, _ := h.missing.Get(host)
			if want := p != nil && (vh == nil && !p.state.open() || vh != nil && vh.lacksHost); (missing != nil) != want {
				d.t.Errorf("%s is missing: %t", host, missing)
			}
			return true
		})
		if h.found.Len() != len(given) || h.missing.Len() > c.vhds.names.Len() || len(h.subscribed) != c.vhds.names.Len() {
			d.t.Errorf("%d virtual hosts of %d, %d asked for, %d missing", h.found.Len(), len(given), len(h.subscribed), h.missing.Len())
		}
		for name, givers := range given {
			vh, _ := h.found.Get(name)
			if vh != h.given[slices.Min(givers)] {
				d.t.Errorf("the virtual host of %s is not that of %s", name, slices.Min(givers))
				continue
			}
			for _, n := range vh.clusters {
				if counted[n.part] == nil {
					counted[n.part] = &hosted{}
				}
				counted[n.part].all++
				for i, way := range hostWays {
					if h.shown > 0 && n.refs&way != 0 {
						counted[n.part].shown[i]++
					}
				}
			}
		}
	}
	for _, p := range c.clusters {
		if want := counted[p]; p.rare().hosted != (hosted{}) && want == nil || want != nil && p.rare().hosted != *want {
			d.t.Errorf("virtual hosts that name %s are counted as %v, want %v", p.name, p.rare().hosted, want)
		}
	}
}

// Virtual hosts whose domains come and go one by one are found as a table finds them that is made of all at once.
//
// spec: VIEW-60, VHDS-2
func TestDomainsAsTable(t *testing.T) {
	texts := []string{"a.org", "A.org:80", "*.a.org", "*.b.a.org", "*a.org", "a.*", "a.b.*", "*", "a*b", "**", "", "b.org", "É.org"}
	asked := []string{"a.org", "a.ORG", "a.org:80", "x.a.org", "b.a.org", "x.b.a.org", "a.b.c", "a.c:80", "a.org:", "", "xa.org", "ab", "É.org", "é.ORG"}
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 3))
		host := func(i int) *routev3.VirtualHost {
			vh := &routev3.VirtualHost{Name: fmt.Sprint("v", i)}
			for range r.IntN(4) {
				vh.Domains = append(vh.Domains, texts[r.IntN(len(texts))])
			}
			return vh
		}
		rc := &routev3.RouteConfiguration{IgnorePortInHostMatching: seed%2 == 0}
		for i := range r.IntN(4) {
			rc.VirtualHosts = append(rc.VirtualHosts, host(i))
		}
		d, vhds := domains.New[[]*virtualHost](rc.IgnorePortInHostMatching), map[string]*virtualHost{}
		for range 20 {
			vh := host(r.IntN(5))
			before := d
			if seed%4 < 3 { // without a copy they are kept in another way
				before = d.Copy()
			}
			found, _, _ := before.Find("a.org")
			if old := vhds[vh.GetName()]; old != nil {
				enter(d, old, false)
				delete(vhds, vh.GetName())
			} else {
				vhds[vh.GetName()] = &virtualHost{message: vh}
				enter(d, vhds[vh.GetName()], true)
			}
			if again, _, _ := before.Find("a.org"); before != d && !slices.Equal(again, found) {
				t.Fatal("a copy changes")
			}
			var all []*routev3.VirtualHost
			for _, name := range slices.Sorted(maps.Keys(vhds)) {
				all = append(all, vhds[name].message)
			}
			table := route.Compile(rc, nil, all...)
			for _, host := range asked {
				got, _ := (&RouteConfig{Message: rc, vhds: &publishedHosts{hostsTable: hostsTable{domains: d}}, finder: &finder{}}).find(host)
				var want *routev3.VirtualHost
				if h := table.VirtualHost(host); h != nil {
					want = h.Proto()
				}
				if got != want {
					t.Fatalf("seed %d: %q has %v, want %v, of %v and %v", seed, host, got, want, all, rc)
				}
			}
		}
	}
}

// What a hook finds below virtual hosts is followed as it changes, and let go with them.
//
// spec: VIEW-43, VHDS-2
func TestHooksBelowHosts(t *testing.T) {
	d := newDriver(t, []string{"rds", "r"}, []string{"composite"})
	d.core.hooks = newHooks(append(composite(), Hook{(*routev3.VirtualHost)(nil), func(m proto.Message, add func(Dependency)) {
		if strings.HasPrefix(m.(*routev3.VirtualHost).GetName(), "x") {
			add(Dependency{ecds.Type, "x", nil, Essential})
		}
	}}), "")
	for _, input := range []string{
		"start", "rds r 1 own.org=a vhds", "cds a 1 static:1.1.1.1", "synced vhds *",
		"vhost r/1 x1.org=a", "host x2.org", "vhds r/x2.org 1 x2.org=b", "ecds x 1 +c", "ecds x 2 +d", "vhost r/1 gone",
	} {
		d.run(input)
		d.checkHosts()
	}
	names := func() (all []string) {
		for c := range d.core.snapshot.Clusters() {
			all = append(all, c.Name+" "+strings.Join(c.ReferencedBy(), ","))
		}
		return all
	}
	if got, want := names(), []string{"a route", "b route", "d hook"}; !slices.Equal(got, want) {
		t.Errorf("clusters are %q, want %q", got, want)
	}
	d.run("unhost x2.org")
	d.checkHosts()
	if got, want := names(), []string{"a route"}; !slices.Equal(got, want) || d.watched["ecds x"].feed != nil {
		t.Errorf("clusters are %q, want %q; watched %v", got, want, slices.Sorted(maps.Keys(d.watched)))
	}
}

// A virtual host for which, or for whose clusters, there is no room comes when there is some.
//
// spec: VHDS-2
func TestHostsWithoutRoom(t *testing.T) {
	d := newDriver(t, []string{"rds", "r"}, []string{"names=4"})
	for _, input := range []string{"start", "rds r 1 own.org=a vhds", "cds a 1 static:1.1.1.1", "synced vhds *", "host b.org", "host c.org"} {
		d.run(input) // r, a, *, r/b.org
	}
	d.run("vhds r/b.org 1 b.org=b")
	s := d.core.snapshot
	if rc := s.Routes[0]; rc.Note == nil || len(rc.OnDemand()) != 1 || s.Len() != 1 {
		t.Errorf("without room: %v", show(s))
	}
	d.run("unhost b.org")
	if _, ok := d.watched["vhds r/c.org"]; !ok {
		t.Errorf("with room for one: %v", slices.Sorted(maps.Keys(d.watched)))
	}
	d.run("vhds r/c.org 1 c.org=a")
	d.checkHosts()
	s = d.core.snapshot
	if rc := s.Routes[0]; rc.Note != nil || len(rc.OnDemand()) != 1 || d.core.hungry() {
		t.Errorf("with room: %v", show(s))
	}
}
