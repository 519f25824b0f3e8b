package view

import (
	"errors"
	"fmt"
	"slices"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"github.com/tidwall/btree"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource"
)

// partState is the newest news of a resource.
type partState uint8

const (
	statePending partState = iota // nothing is known
	stateTrouble                  // the server could not be reached; it may yet come
	stateDoubt                    // the server removed it before a snapshot had it; see doubtFor
	stateHeld                     // there is a value
	stateAbsent                   // it does not exist
	stateFailed                   // there is no usable value
)

// open says that an answer is still to come.
func (s partState) open() bool { return s <= stateDoubt }

func (s partState) status() Status {
	switch s {
	case statePending, stateTrouble, stateDoubt:
		return StatusWaiting
	case stateHeld:
		return StatusOK
	case stateAbsent, stateFailed:
		return StatusError
	}
	return StatusError
}

// part is what all resources of a view have in common.
type part struct {
	name    string
	state   partState
	watched bool // the effects of a step had it
	queued  bool // it may be needed no more
	dirty   bool // of a cluster: its entry is to be made anew
	inTree  bool // of a cluster: it is in snapshots

	believing bool // an alarm is to end a doubt
}

// anyPart is a clusterPart, an endpointsPart or a resourcePart.
type anyPart interface {
	head() *part
	from() *feed

	faultsOf() *faults // to be read only
	ownFaults() *faults
	deletedAt() time.Time   // when its server deleted the value, which is kept; zero if it did not
	has() bool              // there is a value
	keeps(c *core) bool     // a value that is deleted may be kept
	published(c *core) bool // a snapshot has it, or tells its absence
	isNamed() bool          // a resource names it, and not the program alone

	update(c *core, ev *client.Event[any]) bool // takes a value; false if it is none of its type
	keep(c *core)                               // marks the value as deleted
	drop(c *core, s partState)                  // forgets the value
	changed(c *core)                            // has what is made of it be made anew
}

// faults are what is wrong with a part.
type faults struct {
	err     error // of stateTrouble, stateAbsent, stateFailed; or the absence that is kept
	ambient error
}

func (p *part) head() *part { return p }

// feed is where the resources of one type come from.
type feed struct {
	kind       resource.AnyType
	source     *corev3.ConfigSource // nil: the servers of the view
	startup    string               // not "": the bootstrap's source for what is watched of this type from the start
	fetch      time.Duration        // how long a first answer is waited for; 0: no config source says it
	key        string               // unique
	collection bool                 // names are those of collections
	endpoints  map[string]*endpointsPart
	resources  map[string]*resourcePart
}

// watch is a resource, or a collection, that has to be watched.
type watch struct {
	feed *feed
	name string
}

// resourcePart is a resource that is no cluster and no assignment, or a collection.
type resourcePart struct {
	part
	feed    *feed
	message proto.Message // nil if there is none
	origin  Origin
	faults
	deleted time.Time // the server deleted it, and the value is kept
	size    int       // of the bytes of the newest message
	read    any       // what message names: *listenerRead, *routesRead, *findings; nil until it was read
	leads   bool      // hooks found something in the message

	users    int // that need it
	shown    int // of them in the published snapshot
	blocking int // of them that wait for it
	clusters map[*clusterPart]int
	assigned map[*endpointsPart]int             // whose localities it is
	leaders  map[*virtualHost]*virtualHosts     // of VHDS, that lead to it
	answers  []hostName                         // that it is the virtual host of
	vhds     []*virtualHosts                    // of VHDS, of routes to which shapes lead
	members  *btree.Map[string, *resourceValue] // of a collection; never nil there
	entry    *Resource                          // in snapshots; nil if it is not shown there
}

// resourceValue is a member of a collection.
type resourceValue struct {
	message proto.Message
	origin  Origin
}

func (p *resourcePart) from() *feed { return p.feed }

// stateOf is the state that an event brings; ok is false if it is only about trouble.
func stateOf(ev *client.Event[any]) (s partState, ok bool) {
	switch ev.Kind {
	case client.EventUpdated:
		return stateHeld, true
	case client.EventDoesNotExist:
		return stateAbsent, true
	case client.EventFailed:
		if unreachable(ev.Err) {
			return stateTrouble, true // WARM-f
		}
		return stateFailed, true
	case client.EventAmbientError, client.EventRecovered, client.EventSynced:
	}
	return 0, false
}

// unreachable says whether an error is about the way to a server.
func unreachable(err error) bool {
	re, is := errors.AsType[*client.ResourceError](err)
	return is && (re.Kind == client.ErrorConnection || re.Kind == client.ErrorStream)
}

// refused says whether an error is about what a server sent.
func refused(err error) bool {
	re, is := errors.AsType[*client.ResourceError](err)
	return is && (re.Kind == client.ErrorRejected || re.Kind == client.ErrorData)
}

// VIEW-28: bare is an error without a gRPC status: a picker that returned one with a status would also end those RPCs
// of the data plane that wait for ready.
func bare(err error) error {
	if _, has := status.FromError(err); has && err != nil {
		return statusless{err}
	}
	return err
}

type statusless struct{ error }

func (e statusless) Unwrap() error { return e.error }

// GRPCStatus stands before that of the error in it.
func (statusless) GRPCStatus() *status.Status { return nil }

func (c *core) absence(ev *client.Event[any]) error { return absence(ev, c.config.node()) }

// absence is the error of an event that there is no resource.
func absence(ev *client.Event[any], nodeID string) error {
	err := fmt.Errorf("%w (%v)", client.ErrDoesNotExist, ev.Reason)
	if ev.Reason == client.ReasonTimeout {
		err = fmt.Errorf("%w (the server did not answer in time; %v)", client.ErrDoesNotExist, ev.Instead)
	}
	return bare(&client.ResourceError{
		Kind: client.ErrorData, Type: ev.Type, Name: ev.Name, Server: ev.Server, NodeID: nodeID, Err: err,
	})
}

// fault is the error of a resource that the view cannot use.
func (c *core) fault(typeURL, name string, o Origin, err error) error {
	re := &client.ResourceError{Kind: client.ErrorData, Type: typeURL, Name: name, NodeID: c.config.node(), Version: o.Version, Err: err}
	if o.Server != nil {
		re.Server = o.Server.URI
	}
	return bare(re)
}

func (c *core) origin(ev *client.Event[any]) Origin {
	key := Server{URI: ev.Server, Features: ev.Features} // VIEW-65
	s := c.servers[key]
	if s == nil {
		s = &key
		c.servers[key] = s
	}
	return Origin{ev.Version, s, ev.Stale}
}

// feedOf finds where resources come from. Ads is the view's own servers, self is what the message
// came from that names them, by; nil if none does. A new feed is not kept before there is a resource of it.
func (c *core) feedOf(kind resource.AnyType, source *corev3.ConfigSource, collection bool, by *feed) *feed {
	key, startup := kind.TypeURL(), ""
	if by == nil && c.config.startup[key] {
		startup = key
	}
	// DNE-10: ads and self may say how long to wait; the others are followed by Config.Source. 0s, for ever,
	// is as if they said nothing, since a server that is silent about one name would hold back all snapshots (VIEW-20).
	var fetch time.Duration
	if source.GetAds() != nil || source.GetSelf() != nil {
		fetch = max(source.GetInitialFetchTimeout().AsDuration(), 0)
	}
	if source.GetSelf() != nil && by != nil {
		source, startup = by.source, by.startup
	}
	if startup != "" {
		key += " of " + startup
	}
	if fetch > 0 {
		key += " within " + fetch.String()
	}
	// ADS-3: these are what the client's bootstrap says; others need Config.Source.
	if source.GetAds() != nil || source.GetSelf() != nil || source.GetConfigSourceSpecifier() == nil {
		source = nil
	} else if b, err := (proto.MarshalOptions{Deterministic: true}).Marshal(source); err == nil {
		key += " " + string(b)
	}
	if collection {
		key += " *"
	}
	f := c.feeds[key]
	if f == nil {
		f = &feed{
			kind: kind, source: source, startup: startup, fetch: fetch, key: key, collection: collection,
			endpoints: map[string]*endpointsPart{}, resources: map[string]*resourcePart{},
		}
	}
	return f
}

// keepFeed keeps a feed, of which there is a resource now: feedOf finds it again.
func (c *core) keepFeed(f *feed) { c.feeds[f.key] = f }

// endFeed forgets a feed with a source or a time of its own when there is no resource of it any more.
func (c *core) endFeed(f *feed) {
	if (f.source != nil || f.fetch > 0) && len(f.endpoints)+len(f.resources) == 0 {
		delete(c.feeds, f.key)
	}
}

// resource finds or makes a part; nil if there are too many names.
func (c *core) resource(f *feed, name string) *resourcePart {
	p := f.resources[name]
	if p == nil && c.room() {
		p = &resourcePart{part: part{name: name}, feed: f}
		if f.collection {
			p.members = &btree.Map[string, *resourceValue]{}
		}
		f.resources[name] = p
		c.keepFeed(f)
		c.begin(p)
	}
	return p
}

// begin notes a new part.
func (c *core) begin(p anyPart) {
	c.quota.count++
	c.due.fresh = append(c.due.fresh, p)
	c.become(p, statePending)
	c.enqueue(p)
}

// become changes the state of a part.
func (c *core) become(p anyPart, s partState) {
	h := p.head()
	_, was := c.wait.open[p]
	switch {
	case s.open() && (!was || s == stateDoubt):
		if c.wait.open == nil {
			c.wait.open = map[anyPart]time.Time{}
		}
		c.wait.open[p] = c.now
		c.wait.changed = true
	case !s.open() && was:
		c.close(p)
	case h.state != s:
		c.wait.changed = true
	}
	h.state = s
}

// close takes a part off those that are waited for.
func (c *core) close(p anyPart) {
	if _, ok := c.wait.open[p]; ok {
		c.wait.changed = true
		if delete(c.wait.open, p); len(c.wait.open) == 0 {
			c.wait.open = nil // a map keeps its room
		}
	}
}

// enqueue has the end of the step look at whether a part is needed.
func (c *core) enqueue(p anyPart) {
	if h := p.head(); !h.queued {
		h.queued = true
		c.due.queue = append(c.due.queue, p)
	}
}

// answered says whether a part need not be waited for. Trouble with the way to the server
// counts only before the first snapshot (VIEW-20): later the old configuration is better.
func (c *core) answered(s partState) bool {
	// WARM-2, WARM-3: it has an answer, or there is nothing better.
	return !s.open() || s != statePending && c.hurry()
}

// answeredFor is answered for a part that a cluster needs, or the cluster itself: what is merely held never holds back
// a snapshot, so that trouble is no answer for it, nor for who waits in Cluster.
func (c *core) answeredFor(p *clusterPart, s partState) bool {
	return !s.open() || p.blocks() && c.answered(s)
}

// doubtFor is how long the removal of what is named by a resource and not yet in use is not believed, while there
// is a good snapshot: who asks for what one push names may be answered from the next, whose other resources
// are still to come.
const doubtFor = 5 * time.Second

// takePart takes an event of a part that is no collection.
func (c *core) takePart(p anyPart, ev *client.Event[any]) {
	s, ok := stateOf(ev)
	switch {
	case !ok:
		if ev.Kind == client.EventAmbientError || p.faultsOf().ambient != nil {
			p.ownFaults().ambient = ev.Err // VIEW-23
		}
	case s == stateHeld && p.update(c, ev):
	case s == stateAbsent && c.keeps(ev) && p.keeps(c):
		p.ownFaults().err = c.absence(ev)
		p.keep(c)
		c.alarm(c.config.grace, func() { c.expire(p) })
	case s == stateTrouble && p.has(), s == stateFailed && !p.deletedAt().IsZero():
		p.ownFaults().ambient = ev.Err
	default: // VIEW-24
		if p.ownFaults().err = ev.Err; s == stateAbsent {
			p.ownFaults().err = c.absence(ev)
		}
		if c.doubtful(p, s, ev) {
			c.doubt(p)
		} else {
			p.drop(c, s)
		}
	}
	p.changed(c)
}

// keeps says whether a deletion is one that may be kept: not that of a time to live.
func (c *core) keeps(ev *client.Event[any]) bool {
	return c.config.grace >= 0 && ev.Reason != client.ReasonTTL
}

// expire ends the use of a deleted part.
func (c *core) expire(p anyPart) {
	if at := p.deletedAt(); c.lives(p) && !at.IsZero() && !c.now.Before(at.Add(c.config.grace)) {
		p.drop(c, stateAbsent)
		p.changed(c)
	}
}

// doubtful says whether an event is a removal that is not believed at once. What the program alone asks for is known to
// be gone.
func (c *core) doubtful(p anyPart, s partState, ev *client.Event[any]) bool {
	return s == stateAbsent && c.keeps(ev) && !(c.hurry() && c.blocks(p)) && !p.published(c) && p.isNamed() &&
		(ev.Reason != client.ReasonTimeout || c.namersAway(p))
}

// doubt believes a removal later, unless there is other news by then.
func (c *core) doubt(p anyPart) {
	p.drop(c, stateDoubt)
	if h := p.head(); !h.believing {
		h.believing = true
		c.alarm(doubtFor, func() { c.believe(p) })
	}
}

// believe ends a doubt when what leads to the part could be reached for a while.
func (c *core) believe(p anyPart) {
	since := c.wait.open[p]
	if since.Before(c.recovered) {
		since = c.recovered
	}
	h := p.head()
	h.believing = h.state == stateDoubt && c.lives(p)
	switch wait := doubtFor - c.now.Sub(since); {
	case !h.believing:
	case wait > 0:
		c.alarm(wait, func() { c.believe(p) })
	case c.namersAway(p):
		c.alarm(doubtFor, func() { c.believe(p) })
	default:
		h.believing = false
		p.drop(c, stateAbsent)
		p.changed(c)
	}
}

// namersAway says that the server of a resource that leads to a part cannot be reached: what would not lead to it
// any more cannot come.
func (c *core) namersAway(p anyPart) bool {
	if c.routesAway() {
		return true
	}
	seen := map[anyPart]bool{p: true}
	var all []anyPart
	add := func(p anyPart) {
		if !seen[p] {
			seen[p] = true
			all = append(all, p)
		}
	}
	c.eachNamer(p, add)
	for i := 0; i < len(all); i++ {
		if isAway(all[i]) {
			return true
		}
		c.eachNamer(all[i], add)
	}
	return false
}

// routesAway says so of the root, and of the routes and scopes of the shape in making. Many removed parts ask at one time.
func (c *core) routesAway() bool {
	if c.rootPart != nil && isAway(c.rootPart) {
		return true
	}
	return c.next != nil && slices.ContainsFunc(c.next.needs, func(n need) bool {
		kind := n.part.feed.kind
		return (kind == rdsKind || kind == srdsKind) && isAway(n.part)
	})
}

// isAway says that the server of a part cannot be reached.
func isAway(p anyPart) bool {
	return p.head().state == stateTrouble || unreachable(p.faultsOf().ambient)
}

// eachNamer calls a function for each cluster or assignment that names a part.
func (c *core) eachNamer(p anyPart, f func(anyPart)) {
	switch p := p.(type) {
	case *clusterPart:
		if n := c.links.nodes[p.name]; n != nil {
			for _, l := range n.by {
				if from := c.clusters[l.from.name]; from != nil {
					f(from)
				}
			}
		}
	case *endpointsPart:
		for u := range p.usedBy() {
			f(u)
		}
	case *resourcePart:
		for u := range p.clusters {
			f(u)
		}
		for a := range p.assigned {
			f(a)
		}
	}
}

// hurry says whether there is nothing good to fall back on.
func (c *core) hurry() bool { return c.shown == nil }
