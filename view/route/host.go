package route

import (
	"errors"
	"slices"
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
)

// VirtualHost is a compiled virtual host. It is immutable and safe for concurrent use; tables of
// later versions share it while it stays the same.
type VirtualHost struct {
	proto    *routev3.VirtualHost
	routes   []*Route
	settings settings
	took     room // of what its table has
	err      error
	tree     error // not nil if a match tree, which is not known, stands in place of routes
}

// settings are what a RouteConfiguration says for the routes of all its virtual hosts.
type settings struct {
	ignoreParams bool     // in paths
	optional     []string // names of cluster specifier plugins, none of which is known, that gRPC may do without
}

func settingsOf(rc *routev3.RouteConfiguration) settings {
	as := settings{ignoreParams: rc.GetIgnorePathParametersInPathMatching()}
	for _, p := range rc.GetClusterSpecifierPlugins() {
		if p.GetIsOptional() {
			as.optional = append(as.optional, p.GetExtension().GetName())
		}
	}
	return as
}

func (as settings) equal(other settings) bool {
	return as.ignoreParams == other.ignoreParams && slices.Equal(as.optional, other.optional)
}

func compileHost(vh *routev3.VirtualHost, as settings, left *room) *VirtualHost {
	before := left.steps
	h := &VirtualHost{proto: vh, settings: as}
	var errs []error
	if vh.GetMatcher() != nil {
		h.tree = &Fault{vh.GetName(), -1, "", "matcher", errUnknown}
		errs = append(errs, h.tree)
	}
	for i, r := range vh.GetRoutes() {
		f := &faults{host: vh.GetName(), route: i, name: r.GetName(), room: left}
		c := compileRoute(r, h, f)
		c.err, c.errInGRPC = f.first()
		errs = append(errs, f.all...)
		h.routes = append(h.routes, c)
	}
	h.err = errors.Join(errs...)
	h.took, left.lacking = room{before - left.steps, left.lacking}, false
	return h
}

// Proto is the virtual host's message. It must not be changed.
func (h *VirtualHost) Proto() *routev3.VirtualHost { return h.proto }

// Routes lists the routes in their order. The slice must not be changed.
func (h *VirtualHost) Routes() []*Route { return h.routes }

// Err joins the faults of the virtual host and its routes, each a *[Fault], or is nil. Domains that
// are malformed or taken stand in [Table.Err] alone.
func (h *VirtualHost) Err() error { return h.err }

// Match finds the first route that matches a request, whose host has been looked at before. Its
// error is [ErrNoRoute], or the *[Fault] of the route that the request reached.
func (h *VirtualHost) Match(r *Request) (*Route, error) {
	if h.tree != nil {
		return nil, h.tree
	}
	path := r.Path
	if h.settings.ignoreParams {
		path, _, _ = strings.Cut(path, ";")
	}
	for _, c := range h.routes {
		switch {
		case r.GRPC && c.notGRPC || !c.match.holds(r, path):
		case r.GRPC:
			return c, c.errInGRPC
		default:
			return c, c.err
		}
	}
	return nil, ErrNoRoute
}
