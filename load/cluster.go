package load

import (
	"cmp"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	orcav3 "github.com/cncf/xds/go/xds/data/orca/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/proto"
)

// Cluster counts for a cluster until it is closed. A nil Cluster counts nothing: it is what a
// cluster has whose server asks for no reports. Its methods are safe for concurrent use.
type Cluster struct {
	entry  *entry
	closed atomic.Bool
}

// Close says that the program does not use the cluster any more. What was counted is still
// reported, and so are the requests that run on. A second call does nothing.
func (c *Cluster) Close() {
	if c != nil && !c.closed.Swap(true) {
		c.entry.release()
	}
}

// Drop counts a request that was dropped before an endpoint was chosen: by a category of the
// assignment's drop_overloads, or with "" by a limit of the cluster, such as max_requests.
func (c *Cluster) Drop(category string) {
	if c == nil {
		return
	}
	known, ok := c.entry.drops.Load(category)
	if !ok {
		known = c.entry.drop(category)
	}
	known.(*drop).n.Add(1)
}

// drop finds or makes what is counted of a category, which need not be UTF-8.
func (e *entry) drop(category string) any {
	category = strings.ToValidUTF8(category, "\uFFFD")
	if known, ok := e.drops.Load(category); ok {
		return known
	}
	if category != "" && e.categories.Add(1) > maxCategories {
		e.categories.Add(-1)
		category = ""
	}
	known, ok := e.drops.LoadOrStore(category, &drop{})
	if ok && category != "" { // another call has made it
		e.categories.Add(-1)
	}
	return known
}

// maxCategories is how many categories of drops are told apart.
const maxCategories = 1000

// Locality counts for the endpoints of one locality of the cluster's assignment, at one priority.
// It is a lookup without a lock; a program that wants Begin alone on the path of its requests
// keeps the result. The priority distinguishes parts of one locality.
func (c *Cluster) Locality(l *corev3.Locality, priority uint32) *Locality {
	if c == nil {
		return nil
	}
	at := place{l.GetRegion(), l.GetZone(), l.GetSubZone(), priority}
	if known, ok := c.entry.localities.Load(at); ok {
		if l := known.(*tally).handle.Load().Value(); l != nil {
			return l
		}
	}
	return c.entry.locality(at)
}

// Localities are those of an assignment, for programs that look them up by the endpoint's own.
func (c *Cluster) Localities(a *endpointv3.ClusterLoadAssignment) map[*endpointv3.LocalityLbEndpoints]*Locality {
	if c == nil {
		return nil // in which every lookup is a nil Locality
	}
	all := make(map[*endpointv3.LocalityLbEndpoints]*Locality, len(a.GetEndpoints()))
	for _, l := range a.GetEndpoints() {
		all[l] = c.Locality(l.GetLocality(), l.GetPriority())
	}
	return all
}

// Locality counts requests to endpoints of one locality. A nil Locality counts nothing. Its methods
// are safe for concurrent use.
type Locality struct{ tally *tally }

// Begin counts a request that is sent to an endpoint. The address is needed only if the server asks
// for reports by endpoint; nil leaves the request out of those. It takes no lock.
func (l *Locality) Begin(address *corev3.Address) Call {
	if l == nil {
		return Call{}
	}
	t := l.tally
	t.add(issued)
	c := Call{tally: t}
	// LRS-e: endpoints are counted while the server asks for them.
	if address != nil && t.entry.server.granular.Load() {
		c.endpoint = t.endpoint(address)
		c.endpoint.add(issued)
	}
	// Until here the locality is not forgotten; from here on a request is in progress.
	runtime.KeepAlive(l)
	return c
}

// Call is one request. The zero Call counts nothing.
type Call struct {
	tally    *tally
	endpoint *endpointTally // nil unless endpoints are counted
}

// Wants says whether the cluster asks for any metrics of its endpoints: a program may leave out the
// parsing of their reports otherwise.
func (c Call) Wants() bool { return c.tally != nil && c.tally.entry.filter.Load() != nil }

// Metrics counts what the endpoint said of itself with its response (ORCA, gRFC A51), as far as the
// cluster asks for it. It is called once, before End.
func (c Call) Metrics(r *orcav3.OrcaLoadReport) {
	if r == nil || !c.Wants() {
		return
	}
	f := c.tally.entry.filter.Load()
	c.tally.metrics.record(f, r)
	if c.endpoint != nil {
		c.endpoint.metrics.record(f, r)
	}
}

// MetricsHeader is the header or trailer of a response in which an endpoint says something of
// itself, as an encoded OrcaLoadReport (gRFC A51); over HTTP in base64.
const MetricsHeader = "endpoint-load-metrics-bin"

// EncodedMetrics is Metrics of an encoded report. One that cannot be read is ignored.
func (c Call) EncodedMetrics(b []byte) {
	if len(b) == 0 || !c.Wants() {
		return
	}
	r := &orcav3.OrcaLoadReport{}
	if proto.Unmarshal(b, r) == nil {
		c.Metrics(r)
	}
}

// End counts the end of the request. It must be called once: until then the request is in
// progress.
func (c Call) End(ok bool) {
	if c.tally == nil {
		return
	}
	kind := failed
	if ok {
		kind = succeeded
	}
	c.tally.add(kind)
	if c.endpoint != nil {
		c.endpoint.add(kind)
	}
}

// key is a cluster among those of a server.
type key struct{ cluster, service string }

// entry is what is counted of a cluster, whoever uses it.
type entry struct {
	key
	server     *server
	filter     atomic.Pointer[filter]
	localities sync.Map // place → *tally
	making     sync.Mutex
	drops      sync.Map // category → *drop
	categories atomic.Int32

	refs int // guarded by the reporter

	// Owned by the goroutine of the server.
	since time.Time // of the last report
	busy  bool      // the last report said something
}

type drop struct {
	n             atomic.Uint64
	sent, sending uint64
}

// place is a locality at a priority.
type place struct {
	region, zone, subZone string
	priority              uint32
}

func (p place) compare(o place) int {
	return cmp.Or(cmp.Compare(p.priority, o.priority), cmp.Compare(p.region, o.region),
		cmp.Compare(p.zone, o.zone), cmp.Compare(p.subZone, o.subZone))
}

// stat is what is counted at one place, with what was reported of it.
type stat struct {
	counter
	metrics       metrics
	sent, sending totals // owned by the goroutine of the server
}

// tally is what is counted of a locality. It is forgotten when nobody can count in it any more.
type tally struct {
	stat
	entry     *entry
	place     place
	handle    atomic.Pointer[weak.Pointer[Locality]]
	endpoints sync.Map // endpointKey → *endpointTally
	// leaving are those of the last report that are not found any more: a request may have found one before.
	// Owned by the goroutine of the server.
	leaving []*endpointTally
}

// endpointKey is an address: that of a socket, a path, or the name of an internal listener with an endpoint's ID.
type endpointKey struct {
	address, id string
	port        uint32
	internal    bool
}

func (k endpointKey) compare(o endpointKey) int {
	return cmp.Or(cmp.Compare(k.address, o.address), cmp.Compare(k.port, o.port), cmp.Compare(k.id, o.id))
}

type endpointTally struct {
	stat
	at      endpointKey
	address *corev3.Address
	idle    bool // the last report said nothing; owned by the goroutine of the server
}

// locality finds or makes the tally of a place, and its handle.
func (e *entry) locality(at place) *Locality {
	e.making.Lock()
	defer e.making.Unlock()
	known, ok := e.localities.Load(at)
	t, _ := known.(*tally)
	if ok {
		if l := t.handle.Load().Value(); l != nil {
			return l
		}
	} else {
		t = &tally{entry: e, place: at}
	}
	l := &Locality{t}
	handle := weak.Make(l)
	t.handle.Store(&handle)
	e.localities.Store(at, t)
	return l
}

func (t *tally) endpoint(a *corev3.Address) *endpointTally {
	var at endpointKey
	switch a := a.GetAddress().(type) {
	case *corev3.Address_SocketAddress:
		at.address, at.port = a.SocketAddress.GetAddress(), a.SocketAddress.GetPortValue()
	case *corev3.Address_Pipe:
		at.address = a.Pipe.GetPath()
	case *corev3.Address_EnvoyInternalAddress:
		at.address, at.id, at.internal = a.EnvoyInternalAddress.GetServerListenerName(), a.EnvoyInternalAddress.GetEndpointId(), true
	}
	known, ok := t.endpoints.Load(at)
	if !ok {
		known, _ = t.endpoints.LoadOrStore(at, &endpointTally{at: at, address: a})
	}
	return known.(*endpointTally)
}
