package view

import (
	"slices"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
)

// Status says whether a resource can be used.
type Status uint8

// The statuses. Their texts are stable.
const (
	// StatusWaiting, "waiting", means that nothing is known yet. Of the clusters of a snapshot
	// only those that do not hold it back have it: held ones, those of [View.Cluster], and
	// mirrors.
	StatusWaiting Status = iota
	StatusOK             // "ok": there is a resource; a cluster is perhaps without endpoints
	StatusError          // "error": there is none, or it cannot be used
)

func (s Status) String() string {
	switch s {
	case StatusWaiting:
		return "waiting"
	case StatusOK:
		return "ok"
	case StatusError:
		return "error"
	}
	return "unknown"
}

// Kind is how the endpoints of a cluster are found. Its texts are stable.
type Kind uint8

// The kinds.
const (
	KindUnknown   Kind = iota // "": there is no cluster
	KindEDS                   // "eds": the endpoints are a resource of their own
	KindStatic                // "static": the cluster contains them
	KindDNS                   // "dns": the cluster contains the host names to resolve
	KindAggregate             // "aggregate": those of other clusters, in order
	KindOther                 // "other": the program knows (ORIGINAL_DST, another cluster_type)
)

func (k Kind) String() string {
	switch k {
	case KindUnknown:
		return ""
	case KindEDS:
		return "eds"
	case KindStatic:
		return "static"
	case KindDNS:
		return "dns"
	case KindAggregate:
		return "aggregate"
	case KindOther:
		return "other"
	}
	return "unknown"
}

// Cluster is one cluster of a [Snapshot].
type Cluster struct {
	Origin
	Name string
	// Message is the cluster as its server sent it; nil if there is none. An aggregate whose
	// Status is StatusError may have one.
	Message *clusterv3.Cluster
	// Endpoints are those of a cluster of kind EDS, static or DNS; nil if there are none (yet).
	// A DNS cluster has host names in them, which the view does not resolve.
	Endpoints *Endpoints

	status Status
	kind   Kind
	refs   refs
	more   *clusterMore // nil of most
}

// clusterMore is what few clusters have. It is immutable.
type clusterMore struct {
	err     error
	note    error
	deleted time.Time
	leaves  []string
	parents []string // aggregates that name it, in order
}

// rare is never nil.
func (c *Cluster) rare() *clusterMore {
	if c.more == nil {
		return &noMore
	}
	return c.more
}

var noMore clusterMore

// Status says whether the cluster can be used.
func (c *Cluster) Status() Status { return c.status }

// Kind says how its endpoints are found.
func (c *Cluster) Kind() Kind { return c.kind }

// Err says why the cluster cannot be used; nil unless Status is StatusError. It wraps a
// [*client.ResourceError]; of a cluster that does not exist it wraps [client.ErrDoesNotExist].
func (c *Cluster) Err() error { return c.rare().err }

// Note says what is wrong although the cluster can be used: its ambient errors, those of its
// endpoints, and why there are no endpoints. nil if nothing is. [Snapshot.Note] adds the trouble
// of the resources that lead to the cluster.
func (c *Cluster) Note() error { return c.rare().note }

// Deleted is when the server deleted the cluster; zero if it did not. The view keeps a deleted
// cluster as long as something refers to it; see Config.DeletionGrace.
func (c *Cluster) Deleted() time.Time { return c.rare().deleted }

// Leaves are the names of an aggregate's leaf clusters in order of priority: its members, depth
// first, each at its first place (gRFC A37). A member that is missing or refused keeps its
// place; the snapshot has its error. The caller must not change it.
func (c *Cluster) Leaves() []string { return c.rare().leaves }

// ReferencedBy says who names the cluster, in order: "root", "listener" (a TCP proxy), "route",
// "mirror", "hook", "aggregate:NAME", "hold". "hold" is for [View.Hold] and [View.Cluster].
func (c *Cluster) ReferencedBy() []string { return c.refs.names(c.rare().parents) }

// same says whether a program can tell two entries apart: their versions and who refers to them
// do not count.
func (c *Cluster) same(o *Cluster) bool {
	a, b := c.rare(), o.rare()
	return c.status == o.status && c.Message == o.Message && c.Endpoints.same(o.Endpoints) &&
		sameError(a.err, b.err) && sameError(a.note, b.note) && a.deleted.Equal(b.deleted) && slices.Equal(a.leaves, b.leaves)
}

// Endpoints are the endpoints of a cluster.
type Endpoints struct {
	Origin
	// Message is the assignment as its server sent it, or as the cluster contains it.
	Message *endpointv3.ClusterLoadAssignment

	more *endpointsMore // nil of most
}

// endpointsMore is what few assignments have. It is immutable.
type endpointsMore struct {
	filled  *endpointv3.ClusterLoadAssignment // with collections; nil if there are none
	deleted time.Time
	note    error
}

var noEndpointsMore endpointsMore

func (e *Endpoints) rare() *endpointsMore {
	if e == nil || e.more == nil {
		return &noEndpointsMore
	}
	return e.more
}

// Assignment is Message with the endpoints of each locality that are a collection (LEDS) filled
// in; Message itself if there is none.
func (e *Endpoints) Assignment() *endpointv3.ClusterLoadAssignment {
	if filled := e.rare().filled; filled != nil {
		return filled
	}
	return e.Message
}

// Priorities are the localities of Assignment by priority, from 0; a priority without locality is
// empty. Localities keep their order. It is made anew by each call.
func (e *Endpoints) Priorities() (all [][]*endpointv3.LocalityLbEndpoints) {
	for _, l := range e.Assignment().GetEndpoints() {
		p := int(min(l.GetPriority(), maxPriority))
		for len(all) <= p {
			all = append(all, nil)
		}
		all[p] = append(all[p], l)
	}
	return all
}

// maxPriority is the last that the API allows.
const maxPriority = 128

// Deleted is when the server deleted the assignment, and the view kept it; zero if it did not.
func (e *Endpoints) Deleted() time.Time { return e.rare().deleted }

func (e *Endpoints) same(o *Endpoints) bool {
	if e == nil || o == nil {
		return e == o
	}
	a, b := e.rare(), o.rare()
	return e.Message == o.Message && a.filled == b.filled && a.deleted.Equal(b.deleted) && sameError(a.note, b.note)
}

// sameError compares what errors say.
func sameError(a, b error) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a == b || a.Error() == b.Error()
}
