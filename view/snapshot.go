package view

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"github.com/tidwall/btree"
	"google.golang.org/protobuf/proto"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/view/route"
)

// RootType says what a [Root] is.
type RootType uint8

// The types of roots.
const (
	// RootListener is a Listener. With Root.Host it is a client's: it has an API listener, and
	// one virtual host is chosen, as gRPC does (gRFC A27). Without Root.Host all virtual hosts
	// of its API listener and of its filter chains belong to the view.
	RootListener RootType = iota + 1
	// RootRoutes is a RouteConfiguration, with one virtual host if Root.Host is set.
	RootRoutes
	// RootCluster is a Cluster.
	RootCluster
)

// Root is what a view begins with.
type Root struct {
	Type RootType
	Name string // of the resource
	// Host is the data plane's authority, by which the view chooses one virtual host; "" takes
	// all. It must be empty for RootCluster.
	Host string
}

// Snapshot is the configuration below a root at one moment. It is immutable, and so are the
// messages in it; snapshots share what did not change.
type Snapshot struct {
	Root Root
	// Serial counts the snapshots of a view, from 1.
	Serial uint64
	// Err is an error of the root, which replaces everything else: the snapshot has no listener,
	// no routes, and only those clusters that are held. It wraps a [*client.ResourceError]; of a
	// resource that does not exist it wraps [client.ErrDoesNotExist].
	Err error
	// Complete says that nothing is waited for; see [View.Waiting]. If nothing but Complete
	// changes, View.Snapshot has it and OnSnapshot is not called.
	Complete bool
	// NodeID is that of the client.
	NodeID string
	// Listener is nil if the root is none.
	Listener *Listener
	// Routes are the route configurations, in the order in which the listener names them, each
	// once.
	Routes []*RouteConfig
	// Scopes are the resources that tell which request gets which of Routes (SRDS), by name; those
	// that the listener contains are in it.
	Scopes []*routev3.ScopedRouteConfiguration
	// VirtualHost is the chosen one if Root.Host is set.
	VirtualHost *routev3.VirtualHost

	clusters  *btree.Map[string, *Cluster]
	resources *btree.Map[string, *Resource] // by type URL and name
}

// Cluster returns a cluster of the snapshot, or nil if it has none of the name. It takes no lock
// and allocates nothing.
func (s *Snapshot) Cluster(name string) *Cluster {
	c, _ := s.clusters.Get(name)
	return c
}

// Clusters yields the clusters by name, in order: those that routes and filters name, the members
// of aggregates, those that are held ([View.Hold]) and those of [View.Cluster].
func (s *Snapshot) Clusters() iter.Seq[*Cluster] {
	return func(yield func(*Cluster) bool) {
		s.clusters.Scan(func(_ string, c *Cluster) bool { return yield(c) })
	}
}

// Len is how many clusters there are.
func (s *Snapshot) Len() int { return s.clusters.Len() }

// VirtualHosts yields the virtual hosts that belong to the view, with their route configuration:
// the chosen one, or all, those that were found on demand included.
func (s *Snapshot) VirtualHosts() iter.Seq2[*RouteConfig, *routev3.VirtualHost] {
	return func(yield func(*RouteConfig, *routev3.VirtualHost) bool) {
		for _, rc := range s.Routes {
			if s.VirtualHost != nil {
				yield(rc, s.VirtualHost) // a client has one route configuration
				return
			}
			for _, vh := range rc.all() {
				if !yield(rc, vh) {
					return
				}
			}
		}
	}
}

// Note says what is wrong with a cluster although it can be used, and with the listener and the
// routes that lead to it: their ambient errors, joined (gRFC A88). nil if nothing is.
func (s *Snapshot) Note(c *Cluster) error { // VIEW-26
	var notes []error
	if s.Listener != nil {
		notes = append(notes, s.Listener.Note)
	}
	for _, rc := range s.Routes {
		notes = append(notes, rc.Note)
	}
	if c != nil {
		notes = append(notes, c.Note())
	}
	return errors.Join(notes...)
}

// Why is the error of a request for which a cluster has no endpoint: the cluster's own, or else the
// reason with what the management server has said (Note), or with the node ID if that has said
// nothing (VIEW-26). Without a reason the cluster has no assignment.
func (s *Snapshot) Why(c *Cluster, reason string) error {
	note := s.Note(c)
	switch _, told := errors.AsType[*client.ResourceError](note); {
	case c.Err() != nil:
		return c.Err()
	case told && reason == "":
		return fmt.Errorf("cluster %q: %w", c.Name, note)
	case told:
		return fmt.Errorf("cluster %q: %s: %w", c.Name, reason, note)
	default:
		return fmt.Errorf("cluster %q: %s (node %q)", c.Name, cmp.Or(reason, "it has no endpoints"), s.NodeID)
	}
}

// Resource returns a resource that a hook found, nil if there was no answer yet; see [Hook]. Of several
// sources it is that of the view's own servers, if it is one of them.
func (s *Snapshot) Resource(typeURL, name string) *Resource {
	var found *Resource
	s.resources.Ascend(resourceKey(typeURL, name), func(_ string, r *Resource) bool {
		if r.Type == typeURL && r.Name == name {
			found = r
		}
		return false
	})
	return found
}

// Resources yields the resources that hooks found, by type URL and name, in order: those with an
// answer, of the next snapshot too.
func (s *Snapshot) Resources() iter.Seq[*Resource] {
	return func(yield func(*Resource) bool) {
		s.resources.Scan(func(_ string, r *Resource) bool { return yield(r) })
	}
}

// resourceKey is before the keys of all resources of a type and name.
func resourceKey(typeURL, name string) string { return typeURL + " " + name + "\x00" }

// key is that of a resource in snapshots.
func (p *resourcePart) key() string {
	return resourceKey(p.feed.kind.TypeURL(), p.name) + strings.TrimPrefix(p.feed.key, p.feed.kind.TypeURL())
}

// Server is the management server that sent a resource. It is shared by all its resources.
type Server struct {
	URI string
	// Features are those of its entry in the bootstrap, or in the source that a watch brought along:
	// two servers may have one URI. Whether a server is trusted decides what its resources may do
	// (gRFC A81).
	Features bootstrap.Features
}

// Origin says where a part of a snapshot comes from.
type Origin struct {
	Version string
	Server  *Server // nil if no server sent it
	// Stale says that it is from the store of the client, and that no server has spoken of it yet. A snapshot in which that
	// alone has changed is not published; [View.Snapshot] has it.
	Stale bool
}

// AutoHost is the hostname of an endpoint, if a route of this origin with auto_host_rewrite may have
// it as the host of requests: if its server is trusted. Else it is "" (gRFC A81).
func (o Origin) AutoHost(hostname string) string { // VIEW-65
	if o.Server == nil || !o.Server.Features.TrustedXDSServer {
		return ""
	}
	return hostname
}

// Listener is the root of a view, as its server sent it.
type Listener struct {
	Origin
	Name    string
	Message *listenerv3.Listener
	// Note is an ambient error: something is wrong, but the listener is good (gRFC A88); or what
	// of the listener cannot be read.
	Note error
}

// RouteConfig is a route configuration.
type RouteConfig struct {
	Origin
	Name string
	// Inline says that the listener contains it; its Origin is the listener's.
	Inline  bool
	Message *routev3.RouteConfiguration // nil if Err is not
	// Normalization is what the HttpConnectionManager that names the routes does to requests before
	// they are routed. The zero value if the root is no listener.
	Normalization route.Normalization
	// Err says why there is none, if other route configurations of the listener can be used.
	Err error
	// Note is an ambient error, what of the routes cannot be followed, or why virtual hosts on
	// demand cannot be had.
	Note error
	// Deleted is when the server deleted it, and the view kept it; zero if it did not.
	Deleted time.Time

	unserved error           // why virtual hosts on demand cannot be had, or not all
	from     *virtualHosts   // nil if there are none
	vhds     *publishedHosts // of a published one that has from
	finder   *finder         // of Message; nil if that is
}

// OnDemand are the virtual hosts of VHDS, by name: those that the server sends by itself, and those
// that [View.VirtualHost] found. The list is made by the first call; the caller must not change it.
func (rc *RouteConfig) OnDemand() []*routev3.VirtualHost {
	all, _ := rc.vhds.lists()
	return all
}

// Missing are the host names that [View.VirtualHost] asked for and that have no virtual host, or whose
// answer is one without them. The list is made by the first call; the caller must not change it.
func (rc *RouteConfig) Missing() []string {
	_, missing := rc.vhds.lists()
	return missing
}

func (rc *RouteConfig) all() []*routev3.VirtualHost {
	return append(slices.Clip(rc.Message.GetVirtualHosts()), rc.OnDemand()...)
}

// Resource is what a [Hook] found: an extension's configuration, a secret.
type Resource struct {
	Origin
	Type, Name string
	Message    proto.Message // nil if there is none
	// Err says why there is none.
	Err error
	// Note is an ambient error, or what the message names and is not followed.
	Note error
	// Deleted is when the server deleted it, and the view kept it; zero if it did not.
	Deleted time.Time
}
