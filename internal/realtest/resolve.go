package realtest

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/view"
	"github.com/xdswatch/xdswatch/view/endpoint"
	"github.com/xdswatch/xdswatch/view/route"
)

// Hosts are the addresses of the endpoints that requests for a host reach, sorted, by host.
type Hosts map[string][]string

// Resolver follows the whole configuration of a server, from its listeners to their endpoints.
type Resolver struct {
	t         testing.TB
	listeners *view.Listeners
}

// Resolve begins to follow everything that a server has.
func Resolve(t testing.TB, c *client.Client) *Resolver {
	t.Helper()
	r := &Resolver{t: t}
	l, err := view.NewListeners(t.Context(), c, view.Config{OnSnapshot: r.check}, nil)
	Must(t, err)
	t.Cleanup(func() {
		l.Stop()
		<-l.Done()
	})
	r.listeners = l
	return r
}

// check looks at each snapshot: whatever a route names can be used.
func (r *Resolver) check(s *view.Snapshot) {
	if s.Err != nil {
		r.t.Errorf("listener %q, snapshot %d: %v", s.Root.Name, s.Serial, s.Err)
	}
	for c := range s.Clusters() {
		if c.Status() != view.StatusOK {
			r.t.Errorf("listener %q, snapshot %d: cluster %q is %v: %v", s.Root.Name, s.Serial, c.Name, c.Status(), c.Err())
		}
	}
}

// Await waits until a listener gives what is wanted for the hosts that end in a suffix, and nothing is
// waited for. It returns the names of all clusters of all listeners, sorted.
func (r *Resolver) Await(listener, suffix string, want Hosts) []string {
	r.t.Helper()
	var got Hosts
	for deadline := time.Now().Add(Patience); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if v := r.listeners.View(listener); v != nil && v.Snapshot() != nil {
			if got = hosts(v.Snapshot(), suffix); cmp.Equal(want, got) && r.complete() {
				return r.clusters()
			}
		}
	}
	r.t.Fatalf("listener %q does not come to be so (-want +got):\n%s%s", listener, cmp.Diff(want, got), r.waiting())
	return nil
}

func (r *Resolver) complete() bool {
	for _, v := range r.listeners.All() {
		if s := v.Snapshot(); s == nil || !s.Complete {
			return false
		}
	}
	return true
}

func (r *Resolver) clusters() []string {
	names := map[string]bool{}
	for _, v := range r.listeners.All() {
		for c := range v.Snapshot().Clusters() {
			names[c.Name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

func (r *Resolver) waiting() string {
	var b strings.Builder
	for name, v := range r.listeners.All() {
		for _, w := range v.Waiting() {
			b.WriteString("listener " + name + " waits for " + w.Type + " " + w.Name + ": " + w.Reason + "\n")
		}
	}
	return b.String()
}

// hosts routes a request for each domain of a snapshot that ends in a suffix.
func hosts(s *view.Snapshot, suffix string) Hosts {
	found := Hosts{}
	for _, rc := range s.Routes {
		table := route.Compile(rc.Message, nil)
		for _, vh := range table.VirtualHosts() {
			for _, host := range vh.Proto().GetDomains() {
				if strings.HasSuffix(host, suffix) {
					found[host] = addresses(s, table, host)
				}
			}
		}
	}
	return found
}

func addresses(s *view.Snapshot, table *route.Table, host string) (all []string) {
	r := &route.Request{Method: "GET", Scheme: "http", Host: host, Path: "/"}
	found, err := table.Match(r)
	if err != nil || found.Action() != route.ActionForward {
		return nil
	}
	c := s.Cluster(found.Choose(r).Cluster)
	if c == nil || c.Endpoints == nil {
		return nil
	}
	for _, e := range endpoint.New(c.Endpoints.Assignment(), endpoint.Config{}).Endpoints() {
		all = append(all, e.Address.Addr)
	}
	slices.Sort(all)
	return all
}
