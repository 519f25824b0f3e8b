package route

import (
	"errors"
	"slices"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/proto"

	"github.com/xdswatch/xdswatch/internal/domains"
)

// Table is a compiled RouteConfiguration. It is immutable and safe for concurrent use.
type Table struct {
	proto   *routev3.RouteConfiguration
	vhds    []*routev3.VirtualHost
	hosts   []*VirtualHost
	domains *domains.Table[*VirtualHost]
	header  headerName // in place of the host, if not empty
	named   bool       // there is a domain other than *
	err     error
}

// Compile compiles a RouteConfiguration and the virtual hosts that came by VHDS, which take
// precedence over its own. Virtual hosts that are equal to those of old, which may be nil, are
// taken from there and not compiled again; of the same messages the table is old itself. The
// messages are kept and must not change afterwards.
//
// Compile always returns a table. What is wrong with the configuration stands in [Table.Err], and
// concerns only the requests that need the part that is in fault.
func Compile(rc *routev3.RouteConfiguration, old *Table, vhds ...*routev3.VirtualHost) *Table {
	if old != nil && old.proto == rc && slices.Equal(old.vhds, vhds) {
		return old
	}
	t := &Table{proto: rc, vhds: vhds, domains: domains.New[*VirtualHost](rc.GetIgnorePortInHostMatching())}
	if name := rc.GetVhostHeader(); name != "" {
		t.header = newHeaderName(name)
	}
	known, left, as := old.byName(), room{steps: maxSteps}, settingsOf(rc)
	var errs []error
	for _, hosts := range [][]*routev3.VirtualHost{vhds, rc.GetVirtualHosts()} {
		for _, vh := range hosts {
			h := known[vh.GetName()]
			if h.is(vh, as) && left.has(h.took) {
				left.steps -= h.took.steps
			} else {
				h = compileHost(vh, as, &left)
			}
			t.hosts = append(t.hosts, h)
			errs = append(errs, h.err, t.enter(h))
		}
	}
	t.err = errors.Join(errs...)
	return t
}

// enter adds the domains of a virtual host. The first virtual host of a domain keeps it.
func (t *Table) enter(h *VirtualHost) error {
	f := faults{host: h.proto.GetName(), route: -1}
	if len(h.proto.GetDomains()) == 0 {
		f.addf("domains", "empty, so that no request matches")
	}
	for _, domain := range h.proto.GetDomains() {
		taken := false
		if !t.domains.Change(domain, func(first *VirtualHost, has bool) (*VirtualHost, bool) {
			if taken = has; taken {
				return first, true
			}
			return h, true
		}) {
			f.addf("domains", "%q is neither a name, *suffix, prefix* nor *", domain)
		} else if taken {
			f.addf("domains", "%q is a domain of a virtual host before it", domains.Lower(domain))
		}
		t.named = t.named || domain != "*"
	}
	return errors.Join(f.all...)
}

// byName has the virtual hosts of a table; where names repeat, the last.
func (t *Table) byName() map[string]*VirtualHost {
	if t == nil {
		return nil
	}
	hosts := make(map[string]*VirtualHost, len(t.hosts))
	for _, h := range t.hosts {
		hosts[h.proto.GetName()] = h
	}
	return hosts
}

// is whether the host was compiled of an equal message, in the same way.
func (h *VirtualHost) is(vh *routev3.VirtualHost, as settings) bool {
	return h != nil && h.settings.equal(as) && (h.proto == vh || proto.Equal(h.proto, vh))
}

// Proto is the RouteConfiguration that the table was compiled of. It must not be changed.
func (t *Table) Proto() *routev3.RouteConfiguration { return t.proto }

// VirtualHosts lists the virtual hosts: those of VHDS, then the configuration's own. The slice
// must not be changed.
func (t *Table) VirtualHosts() []*VirtualHost { return t.hosts }

// Err joins all faults of the configuration, each a *[Fault], or is nil.
func (t *Table) Err() error { return t.err }

// VirtualHost finds the virtual host of an authority, or nil. Domains match without regard to
// case: first the exact ones, then *suffix, then prefix*, then *; of a kind the longest wins. The port
// of the authority counts, unless the configuration says ignore_port_in_host_matching.
func (t *Table) VirtualHost(authority string) *VirtualHost {
	h, _, _ := t.domains.Find(authority)
	return h
}

// Match finds the route of a request. Its error is [ErrNoVirtualHost], [ErrNoRoute], or the
// *[Fault] of the route that the request reached. The first value of the vhost_header stands for the
// authority; gRPC does not know that field. A request without such a header has a virtual host only where all
// domains are *, as in Envoy.
func (t *Table) Match(r *Request) (*Route, error) {
	host := r.Host
	if t.header.lower != "" && !r.GRPC {
		if _, ok := r.value(&t.header); !ok && t.named {
			return nil, ErrNoVirtualHost
		}
		host = r.first(&t.header)
	}
	h := t.VirtualHost(host)
	if h == nil {
		return nil, ErrNoVirtualHost
	}
	return h.Match(r)
}
