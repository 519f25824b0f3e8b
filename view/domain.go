package view

import (
	"cmp"
	"slices"
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"github.com/tidwall/btree"

	"github.com/xdswatch/xdswatch/view/route"
)

// domains find virtual hosts by their domains, as [route.Table] does. A copy shares what does not change.
type domains struct {
	exact, suffixes, prefixes *btree.Map[string, []claim] // by the domain without its asterisk; "" is that of any host
	ignorePort                bool
}

// claim is a virtual host that has a domain. The first of a domain keeps it, by rank and by name.
type claim struct {
	rank int
	host *hostRead
}

func (c claim) compare(o claim) int {
	return cmp.Or(c.rank-o.rank, strings.Compare(c.host.host.GetName(), o.host.host.GetName()))
}

func newDomains(ignorePort bool) *domains {
	return &domains{
		btree.NewMap[string, []claim](degree), btree.NewMap[string, []claim](degree), btree.NewMap[string, []claim](degree), ignorePort,
	}
}

// domainsOf has the virtual hosts of a route configuration, in their order.
func domainsOf(rc *routev3.RouteConfiguration) *domains {
	d := newDomains(rc.GetIgnorePortInHostMatching())
	for i, vh := range rc.GetVirtualHosts() {
		d.enter(claim{i, &hostRead{host: vh}}, true)
	}
	return d
}

func (d *domains) copy() *domains {
	return &domains{d.exact.Copy(), d.suffixes.Copy(), d.prefixes.Copy(), d.ignorePort}
}

// enter adds the domains of a virtual host, or takes them out.
func (d *domains) enter(c claim, in bool) {
	for _, domain := range c.host.host.GetDomains() {
		tree, domain := d.kind(strings.ToLower(domain))
		if tree == nil {
			continue
		}
		all, _ := tree.Get(domain)
		i, has := slices.BinarySearchFunc(all, c, claim.compare)
		if has == in { // the host names it twice
			continue
		}
		if all = slices.Clone(all); in {
			all = slices.Insert(all, i, c)
		} else {
			all = slices.Delete(all, i, i+1)
		}
		if len(all) > 0 {
			tree.Set(domain, all)
		} else {
			tree.Delete(domain)
		}
	}
}

// kind is nil for a malformed domain, which matches nothing (VIEW-60).
func (d *domains) kind(domain string) (tree *btree.Map[string, []claim], affix string) {
	switch before, after, wild := strings.Cut(domain, "*"); {
	case domain == "" || strings.Contains(after, "*") || before != "" && after != "":
		return nil, ""
	case !wild:
		return d.exact, domain
	case after != "":
		return d.suffixes, after
	default:
		return d.prefixes, before
	}
}

// match says how well a domain matches: kinds of domains have more than the longest of the kinds below.
type match int

const (
	matchPrefix match = 1 << 20
	matchSuffix match = 2 << 20
	matchExact  match = 3 << 20
)

// VIEW-60: find looks for exact domains, suffixes, prefixes, and any; of a kind the longest. It is nil if there is none.
func (d *domains) find(host string) (*hostRead, match) {
	if d.ignorePort {
		host = route.WithoutPort(host)
	}
	host = strings.ToLower(host)
	if h := first(d.exact, host); h != nil {
		return h, matchExact
	}
	// An asterisk stands for at least one character.
	for i := 1; i < len(host) && d.suffixes.Len() > 0; i++ {
		if h := first(d.suffixes, host[i:]); h != nil {
			return h, matchSuffix - match(i)
		}
	}
	for i := len(host) - 1; i > 0 && d.prefixes.Len() > 0; i-- {
		if h := first(d.prefixes, host[:i]); h != nil {
			return h, matchPrefix + match(i)
		}
	}
	return first(d.prefixes, ""), 0
}

func first(tree *btree.Map[string, []claim], domain string) *hostRead {
	if all, _ := tree.Get(domain); len(all) > 0 {
		return all[0].host
	}
	return nil
}

// matchHost chooses the virtual host of a host name, or nil.
func matchHost(rc *routev3.RouteConfiguration, host string) *routev3.VirtualHost {
	if h, _ := domainsOf(rc).find(host); h != nil {
		return h.host
	}
	return nil
}
