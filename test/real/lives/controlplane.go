package lives

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"sync"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"github.com/envoyproxy/go-control-plane/pkg/server/config"
	"github.com/envoyproxy/go-control-plane/pkg/server/delta/v3"
	"github.com/envoyproxy/go-control-plane/pkg/server/sotw/v3"
	"google.golang.org/grpc"
)

// controlPlane is go-control-plane's server with one of its caches.
type controlPlane struct {
	cache  cache.Cache
	opts   []config.XDSOption
	ctx    context.Context
	cancel context.CancelFunc
}

func newControlPlane(c cache.Cache, opts ...config.XDSOption) controlPlane {
	cp := controlPlane{cache: c, opts: opts}
	cp.ctx, cp.cancel = context.WithCancel(context.Background())
	return cp
}

func (cp *controlPlane) stop() { cp.cancel() }

func (cp *controlPlane) mute(typ, string) bool { return false }

type (
	sotwStream  = grpc.GenericServerStream[discoveryv3.DiscoveryRequest, discoveryv3.DiscoveryResponse]
	deltaStream = grpc.GenericServerStream[discoveryv3.DeltaDiscoveryRequest, discoveryv3.DeltaDiscoveryResponse]
)

func (cp *controlPlane) register(g *grpc.Server) {
	whole := sotw.NewServer(cp.ctx, cp.cache, nil, cp.opts...)
	parts := delta.NewServer(cp.ctx, cp.cache, nil)
	for _, s := range []struct{ name, methods, url string }{
		{"discovery.v3.AggregatedDiscoveryService", "AggregatedResources", resource.AnyType},
		{"cluster.v3.ClusterDiscoveryService", "Clusters", resource.ClusterType},
		{"endpoint.v3.EndpointDiscoveryService", "Endpoints", resource.EndpointType},
	} {
		g.RegisterService(&grpc.ServiceDesc{ServiceName: "envoy.service." + s.name, Streams: []grpc.StreamDesc{
			{StreamName: "Stream" + s.methods, ServerStreams: true, ClientStreams: true, Handler: func(_ any, gs grpc.ServerStream) error {
				return whole.StreamHandler(&sotwStream{ServerStream: gs}, s.url)
			}},
			{StreamName: "Delta" + s.methods, ServerStreams: true, ClientStreams: true, Handler: func(_ any, gs grpc.ServerStream) error {
				return parts.DeltaStreamHandler(&deltaStream{ServerStream: gs}, s.url)
			}},
		}}, nil)
	}
}

// anyNode gives all nodes one snapshot.
type anyNode struct{}

func (anyNode) ID(*corev3.Node) string { return "any" }

// snapshots is the server with the snapshot cache, whose versions count from 1.
type snapshots struct {
	controlPlane
	truth   *truth
	cache   cache.SnapshotCache
	watched *watched
	version int
}

func snapshot(t *truth) server        { return newSnapshots(t, false) }
func snapshotADS(t *truth) server     { return newSnapshots(t, true) }
func snapshotOrdered(t *truth) server { return newSnapshots(t, true, sotw.WithOrderedADS()) }

func newSnapshots(t *truth, ads bool, opts ...config.XDSOption) server {
	s := &snapshots{truth: t, cache: cache.NewSnapshotCache(ads, anyNode{}, nil)}
	s.watched = &watched{SnapshotCache: s.cache, ads: ads, asked: map[string][]string{}, muted: map[string]bool{}, held: map[string][]string{}}
	s.controlPlane = newControlPlane(s.watched, opts...)
	s.set()
	return s
}

func (s *snapshots) change(typ, content) { s.set() }

func (s *snapshots) mute(k typ, _ string) bool {
	s.watched.mu.Lock()
	defer s.watched.mu.Unlock()
	return s.watched.muted[k.url()]
}

// set makes a snapshot of what there is.
func (s *snapshots) set() {
	s.version++
	all, held := map[resource.Type][]types.Resource{}, map[string][]string{}
	for _, k := range []typ{clusters, endpoints} {
		all[k.url()] = []types.Resource{}
		for name, m := range s.truth.messages(k) {
			all[k.url()] = append(all[k.url()], m)
			held[k.url()] = append(held[k.url()], name)
		}
	}
	next, err := cache.NewSnapshot(strconv.Itoa(s.version), all)
	if err != nil {
		panic(err)
	}
	s.watched.set(s.ctx, next, held)
}

// watched is the snapshot cache, and knows where its ADS mode is silent: it answers names only
// if they are all that there is, and forgets a request that it does not answer.
type watched struct {
	cache.SnapshotCache
	ads bool

	mu    sync.Mutex          // over the cache's work
	asked map[string][]string // by URL: the newest request's names
	held  map[string][]string // by URL: the snapshot's names
	muted map[string]bool     // by URL: what was asked for last is forgotten
}

func (w *watched) set(ctx context.Context, s *cache.Snapshot, held map[string][]string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.held = held
	for url := range w.asked {
		w.hush(url)
	}
	// The streams of a server that stops take no response, and nobody misses it.
	_ = w.SetSnapshot(ctx, "any", s)
}

func (w *watched) hush(url string) {
	if asked := w.asked[url]; w.ads && len(asked) > 0 {
		lacks := slices.ContainsFunc(w.held[url], func(name string) bool { return !slices.Contains(asked, name) })
		w.muted[url] = w.muted[url] || lacks
	}
}

func (w *watched) CreateWatch(r *cache.Request, sub cache.Subscription, out chan cache.Response) (func(), error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked[r.GetTypeUrl()] = r.GetResourceNames()
	w.muted[r.GetTypeUrl()] = false
	w.hush(r.GetTypeUrl())
	return w.SnapshotCache.CreateWatch(r, sub, out)
}

// linears is the server with linear caches.
type linears struct {
	controlPlane
	caches map[typ]*cache.LinearCache
}

func newLinear(t *truth, k typ) *cache.LinearCache {
	return cache.NewLinearCache(k.url(), cache.WithInitialResources(maps.Clone(resources(t.messages(k)))))
}

func resources[M types.Resource](ms map[string]M) map[string]types.Resource {
	all := make(map[string]types.Resource, len(ms))
	for name, m := range ms {
		all[name] = m
	}
	return all
}

// linear serves clusters alone.
func linear(t *truth) server {
	l := newLinear(t, clusters)
	return &linears{newControlPlane(l), map[typ]*cache.LinearCache{clusters: l}}
}

func mux(t *truth) server {
	s := &linears{caches: map[typ]*cache.LinearCache{}}
	all := map[string]cache.Cache{}
	for _, k := range []typ{clusters, endpoints} {
		s.caches[k] = newLinear(t, k)
		all[k.url()] = s.caches[k]
	}
	s.controlPlane = newControlPlane(&cache.MuxCache{
		Classify:      (*cache.Request).GetTypeUrl,
		ClassifyDelta: (*cache.DeltaRequest).GetTypeUrl,
		Caches:        all,
	})
	return s
}

func (s *linears) change(k typ, changes content) {
	set, gone := map[string]types.Resource{}, []string{}
	for name, text := range changes {
		if text == "" {
			gone = append(gone, name)
		} else {
			set[name] = k.message(name, text)
		}
	}
	if err := s.caches[k].UpdateResources(set, gone); err != nil {
		panic(err)
	}
}
