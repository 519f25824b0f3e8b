// Package circuit limits how many requests a cluster has at a time: the circuit breakers of its
// configuration (max_requests; gRFC A32). Packages grpcresolver and httptransport use it, and a program
// that sends requests itself may:
//
//	limit := breakers.Of(cluster)
//	if !limit.Enter() {
//		return errors.New("too many requests")
//	}
//	defer limit.Leave()
package circuit

import (
	"math"
	"sync"
	"sync/atomic"
	"weak"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
)

// Breakers counts the requests of clusters. Who shares one, such as several channels, shares the
// limits of their clusters. Its zero value is ready for use, and it is safe for concurrent use.
type Breakers struct {
	mu    sync.Mutex
	all   map[key]weak.Pointer[count]
	sweep int // when there are so many, those that nobody uses are dropped
}

// key is what has a count of its own. Clusters of one name may follow each other with different
// endpoints.
type key struct{ cluster, service string }

// Limit is that of one version of a cluster. Versions of one cluster share the count. A nil Limit
// has no bound. It is safe for concurrent use.
type Limit struct {
	active *count
	most   int64
}

// count is how many requests run. It has a size of its own, since memory of less than 16 bytes is
// shared, and freed with that of others.
type count struct {
	atomic.Int64
	_ int64
}

// Of is the limit of a cluster as it is configured now. An aggregate's does not count: take those
// of its leaves (gRFC A75).
func (b *Breakers) Of(c *clusterv3.Cluster) *Limit {
	k := key{c.GetName(), c.GetEdsClusterConfig().GetServiceName()}
	b.mu.Lock()
	defer b.mu.Unlock()
	active := b.all[k].Value()
	if active == nil {
		active = new(count)
		if b.all == nil || len(b.all) >= b.sweep {
			b.clean()
		}
		b.all[k] = weak.Make(active)
	}
	return &Limit{active, maxRequests(c)}
}

// clean drops the counts that nobody has. The caller has mu.
func (b *Breakers) clean() {
	if b.all == nil {
		b.all = map[key]weak.Pointer[count]{}
	}
	for k, p := range b.all {
		if p.Value() == nil {
			delete(b.all, k)
		}
	}
	b.sweep = max(2*len(b.all), 64)
}

// defaultMaxRequests is Envoy's and gRPC's.
const defaultMaxRequests = 1024

// VIEW-66: the first thresholds of the DEFAULT priority say it.
func maxRequests(c *clusterv3.Cluster) int64 {
	for _, t := range c.GetCircuitBreakers().GetThresholds() {
		if t.GetPriority() != corev3.RoutingPriority_DEFAULT {
			continue
		}
		if t.GetMaxRequests() == nil {
			break
		}
		return int64(t.GetMaxRequests().GetValue())
	}
	return defaultMaxRequests
}

// Max is how many requests there may be at a time; [math.MaxInt64] without a bound.
func (l *Limit) Max() int64 {
	if l == nil {
		return math.MaxInt64
	}
	return l.most
}

// Enter begins a request, unless there are too many. Each that began is to be ended by Leave.
func (l *Limit) Enter() bool {
	if l == nil || l.active.Add(1) <= l.most {
		return true
	}
	l.active.Add(-1)
	return false
}

// Leave ends a request.
func (l *Limit) Leave() {
	if l != nil {
		l.active.Add(-1)
	}
}
