package route

import (
	"errors"
	"math"
	"sort"
	"strconv"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
)

// clusters is where a route forwards to: one target, or several of which random chooses.
type clusters struct {
	one      target
	weighted []weighted
	random   headerName // the header that has the random number, if not empty
}

// target is a cluster, or the header that names it.
type target struct {
	name   string
	header headerName
}

type weighted struct {
	target
	entry *routev3.WeightedCluster_ClusterWeight
	until uint64 // sum of the weights up to here
}

// Choice is the cluster for one request.
type Choice struct {
	// Cluster is its name. It is empty if the route takes the name from a header that the request
	// does not have.
	Cluster string
	// ByHeader says that the name comes from the request (cluster_header), so that the cluster
	// may have to be found on demand.
	ByHeader bool
	// Entry is the entry of weighted_clusters that was chosen, or nil.
	Entry *routev3.WeightedCluster_ClusterWeight
}

func compileClusters(a *routev3.RouteAction, f *faults) (c clusters) {
	switch s := a.GetClusterSpecifier().(type) {
	case *routev3.RouteAction_Cluster:
		c.one.name = s.Cluster
		if s.Cluster == "" {
			f.addf("route.cluster", "empty")
		}
	case *routev3.RouteAction_ClusterHeader:
		c.one.header = newHeaderName(s.ClusterHeader)
		if s.ClusterHeader == "" {
			f.addf("route.cluster_header", "empty")
		}
	case *routev3.RouteAction_WeightedClusters:
		if err := c.compileWeighted(s.WeightedClusters); err != nil {
			f.add("route.weighted_clusters", err)
		}
	case nil:
		f.addf("route", "no cluster specifier")
	default:
		f.addf("route.cluster_specifier_plugin", "%w", errUnknown)
	}
	return c
}

func (c *clusters) compileWeighted(w *routev3.WeightedCluster) error {
	if name := w.GetHeaderName(); name != "" {
		c.random = newHeaderName(name)
	}
	var sum uint64
	for i, entry := range w.GetClusters() {
		t := weighted{entry: entry, target: target{name: entry.GetName()}}
		switch header := entry.GetClusterHeader(); {
		case (t.name == "") == (header == ""):
			return errors.New("entry " + strconv.Itoa(i) + " needs either a name or a cluster_header")
		case header != "":
			t.header = newHeaderName(header)
		}
		if entry.GetWeight().GetValue() == 0 {
			continue // never chosen
		}
		sum += uint64(entry.GetWeight().GetValue())
		t.until = sum
		c.weighted = append(c.weighted, t)
	}
	switch {
	case sum == 0:
		return errors.New("the sum of the weights is 0")
	case sum > math.MaxUint32:
		return errors.New("the sum of the weights is over 4294967295")
	}
	return nil
}

// Choose finds the cluster for a request. Each call chooses anew among weighted clusters, so a
// request that is retried on the same cluster keeps its choice. A route that does not forward has
// none.
func (c *Route) Choose(r *Request) Choice {
	if c.action != ActionForward {
		return Choice{}
	}
	if len(c.clusters.weighted) == 0 {
		return c.clusters.one.choice(r, nil)
	}
	all := c.clusters.weighted
	n := c.clusters.number(r) % all[len(all)-1].until
	i := sort.Search(len(all), func(i int) bool { return n < all[i].until })
	return all[i].choice(r, all[i].entry)
}

// number decides between weighted clusters. It does not follow use_hash_policy.
func (c *clusters) number(r *Request) uint64 {
	if c.random.lower != "" {
		value, _ := r.value(&c.random) // of several values none counts
		if n, err := strconv.ParseUint(value, 10, 64); err == nil {
			return n
		}
	}
	return r.random()
}

func (t *target) choice(r *Request, entry *routev3.WeightedCluster_ClusterWeight) Choice {
	if t.header.lower != "" {
		return Choice{Cluster: r.first(&t.header), ByHeader: true, Entry: entry}
	}
	return Choice{Cluster: t.name, Entry: entry}
}

// Clusters lists the clusters that the route names itself, each once, in their order: those of
// weight 0 and those that requests name in a header are not among them.
func (c *Route) Clusters() []string {
	var names []string
	seen := map[string]bool{"": true}
	add := func(name string) {
		if !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	}
	add(c.clusters.one.name)
	for _, w := range c.clusters.weighted {
		add(w.name)
	}
	return names
}
