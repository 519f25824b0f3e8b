package view

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/internal/domains"
	"github.com/xdswatch/xdswatch/internal/ondemand"
)

// OD-b: missFor is how long a cluster that does not exist counts as known, however often it is
// asked for: then it is subscribed to anew.
const missFor = 5 * time.Second

// demand are the clusters and virtual hosts that programs asked for; a hold of each is released.
type demand = ondemand.Pool[slotKey, func()]

// slotKey is the name of a cluster, or of a host.
type slotKey struct {
	host bool
	name string
}

// hostKey is what is waited for under a host name, or a domain that is none with an asterisk: without a port, whatever a
// route configuration says. Addresses of IPv6 may share one.
func hostKey(host string) slotKey {
	name, _, _ := strings.Cut(strings.ToLower(host), ":")
	return slotKey{true, name}
}

func newDemand(c Config) *demand {
	return ondemand.New[slotKey](ondemand.Config[func()]{
		Idle: c.OnDemandIdle, Miss: missFor, Most: c.MaxOnDemand, Release: func(release func()) { release() },
	})
}

// Cluster returns a cluster, also one that nothing names yet: then it is subscribed to, and kept
// for Config.OnDemandIdle after its last use. Callers for one name share the subscription. It
// blocks until the cluster is known, in a snapshot, or ctx ends; a lost connection does not end
// it. A cluster that does not exist is asked for anew some seconds later; of one whose endpoints or members
// were removed, these are waited for as long.
//
// Errors: the cluster's own, if it cannot be used; a [*NotReadyError] when ctx ends;
// [client.ErrTooManyNames]; that of the end of the view; and one that wraps a [*client.ResourceError] for a name that no snapshot has and
// that has a context parameter which is the client's to set.
func (v *View) Cluster(ctx context.Context, name string) (*Cluster, error) {
	var known *Cluster
	if s := v.Snapshot(); s != nil {
		known = s.Cluster(name)
	}
	switch {
	case known == nil: // no server has named it, as far as is known; a request may have
		if err := v.checkOwn(watch{nil, name}); err != nil {
			return nil, err
		}
	case known.status == StatusOK && known.refs&^refHold != 0:
		return known, nil // it is there without us
	}
	s, err := v.demand.Enter(slotKey{false, name}, func() (func(), error) { return v.Hold(name), nil }) // OD-a, ONDEMAND-1
	if err != nil {
		return nil, err
	}
	c, err := v.await(ctx, name)
	v.demand.Leave(s, c != nil && c.status == StatusError)
	if err == nil && c.status == StatusError {
		return nil, c.Err()
	}
	return c, err
}

// ONDEMAND-3: await blocks until a snapshot knows a cluster, or that there is none.
func (v *View) await(ctx context.Context, name string) (found *Cluster, err error) {
	key := slotKey{false, name}
	err = v.wait(ctx, key, func(s *Snapshot) (bool, []slotKey) {
		if s != nil {
			found = s.Cluster(name)
		}
		return found != nil && found.status != StatusWaiting, []slotKey{key}
	})
	if err != nil {
		return nil, err
	}
	return found, nil
}

// wait blocks until a snapshot has what look looks for: it looks at the newest, and again when there is news of what it
// says that it waits for.
func (v *View) wait(ctx context.Context, key slotKey, look func(*Snapshot) (found bool, on []slotKey)) error {
	for {
		s := v.Snapshot()
		found, on := look(s)
		if found {
			return nil
		}
		news := v.calls.enter(on)
		if v.Snapshot() != s {
			v.calls.leave(news, on)
			continue
		}
		var err error
		select {
		case <-news:
		case <-ctx.Done():
			err = v.notFound(ctx, key)
		case <-v.ctx.Done():
			err = v.Err()
		}
		if v.calls.leave(news, on); err != nil {
			return err
		}
	}
}

// calls are those who wait for clusters and virtual hosts.
type calls struct {
	mu sync.Mutex
	on map[slotKey]map[chan struct{}]bool
}

func (w *calls) enter(on []slotKey) (news chan struct{}) {
	news = make(chan struct{}, 1)
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, key := range on {
		if w.on[key] == nil {
			w.on[key] = map[chan struct{}]bool{}
		}
		w.on[key][news] = true
	}
	return news
}

func (w *calls) leave(news chan struct{}, on []slotKey) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, key := range on {
		if delete(w.on[key], news); len(w.on[key]) == 0 {
			delete(w.on, key)
		}
	}
}

// wake wakes those who wait for what a snapshot has news of.
func (w *calls) wake(n news) {
	w.mu.Lock()
	defer w.mu.Unlock()
	wake := func(key slotKey) {
		for news := range w.on[key] {
			select {
			case news <- struct{}{}:
			default:
			}
		}
	}
	for key := range n.of {
		wake(key)
	}
	if n.hosts {
		for key := range w.on {
			if key.host {
				wake(key)
			}
		}
	}
}

func (v *View) notFound(ctx context.Context, key slotKey) error {
	v.mu.Lock()
	waiting := v.core.waitingFor(key)
	v.mu.Unlock()
	return v.notReady(ctx, waiting)
}

// VirtualHost returns the virtual host of a host name. Where no route configuration of the view has
// one, it asks for it on demand (VHDS) if they say so, in delta alone, and keeps it as [View.Cluster]
// keeps a cluster. It blocks until the virtual host is in a snapshot, its clusters are known, and
// ctx has not ended. Neither it nor its clusters hold back a snapshot. If there is none the error is
// [client.ErrDoesNotExist]; if it was refused, or the server states an error for it, the error is that of the resource; for
// others see [View.Cluster]. In a view with Root.Host there is
// nothing on demand: it returns the chosen one, whatever the host.
func (v *View) VirtualHost(ctx context.Context, host string) (*routev3.VirtualHost, error) {
	if s := v.Snapshot(); s != nil && s.Err == nil {
		if vh, own := s.hostOf(host); vh != nil && own {
			return vh, nil // it is there without us
		}
	}
	s, err := v.demand.Enter(slotKey{true, host}, func() (func(), error) { return v.holdHost(host), nil }) // VHDS-1
	if err != nil {
		return nil, err
	}
	vh, lack, err := v.awaitHost(ctx, host)
	v.demand.Leave(s, lack != nil)
	return vh, cmp.Or(err, lack)
}

func (v *View) holdHost(host string) (release func()) {
	v.change(func(c *core, now time.Time) { c.holdHost(now, host) })
	return func() { v.change(func(c *core, now time.Time) { c.releaseHost(now, host) }) }
}

// awaitHost blocks until a snapshot has a virtual host, or knows that there is none; lack says why.
func (v *View) awaitHost(ctx context.Context, host string) (found *routev3.VirtualHost, lack, err error) {
	key := slotKey{true, host}
	err = v.wait(ctx, key, func(s *Snapshot) (bool, []slotKey) {
		on := []slotKey{hostKey(host)}
		if s == nil || s.Err != nil {
			return false, on
		}
		if found, _ = s.hostOf(host); found != nil {
			on = append(on, s.unknown(found)...)
			if len(on) == 1 {
				return true, nil
			}
		}
		why, lacks := s.lacks(host)
		if lacks {
			found, lack = nil, fmt.Errorf("xds: the view of %q: a virtual host for %q: %w", v.root.Name, host, why)
		}
		return lacks, on
	})
	if cmp.Or(err, lack) != nil {
		return nil, lack, err
	}
	return found, nil, nil
}

// hostOf finds the virtual host of a host name, and says whether it is there without being asked
// for: a route configuration's own, or one that the server sends by itself.
func (s *Snapshot) hostOf(host string) (vh *routev3.VirtualHost, own bool) {
	if s.Root.Host != "" {
		return s.VirtualHost, true
	}
	for _, rc := range s.Routes {
		if vh, own := rc.find(host); vh != nil {
			return vh, own
		}
	}
	return nil, false
}

// publishedHosts is what one snapshot has of VHDS. Lists are made when a program asks for them.
type publishedHosts struct {
	hostsTable
	once     sync.Once
	onDemand []*routev3.VirtualHost
	without  []string
}

func (v *publishedHosts) lists() ([]*routev3.VirtualHost, []string) {
	if v == nil {
		return nil, nil
	}
	v.once.Do(func() {
		for _, h := range v.found.Values() {
			v.onDemand = append(v.onDemand, h.message)
		}
		v.missing.Scan(func(host string, why error) bool {
			if absent(why) {
				v.without = append(v.without, host)
			}
			return true
		})
	})
	return v.onDemand, v.without
}

// finder finds the virtual hosts of a route configuration's own, in all snapshots that have the message. Whoever needs
// it first makes it ready.
type finder struct {
	once    sync.Once
	domains *domains.Table[*routev3.VirtualHost]
}

// find finds a virtual host, and says whether it is there without being asked for. Those of VHDS come before others
// with as good a domain.
func (rc *RouteConfig) find(host string) (vh *routev3.VirtualHost, own bool) {
	if rc.finder == nil {
		return nil, false
	}
	rc.finder.once.Do(func() { rc.finder.domains = domainsOf(rc.Message) })
	vh, match, _ := rc.finder.domains.Find(host)
	if rc.vhds != nil {
		if all, m, ok := rc.vhds.domains.Find(host); ok && (vh == nil || m >= match) {
			return all[0].message, !all[0].onDemand
		}
	}
	return vh, true
}

// unknown are the clusters of a virtual host that are waited for.
func (s *Snapshot) unknown(vh *routev3.VirtualHost) (all []slotKey) {
	var r routesRead
	r.virtualHost(vh)
	for _, n := range r.names {
		if c := s.Cluster(n.name); n.refs&static != 0 && (c == nil || c.status == StatusWaiting) {
			all = append(all, slotKey{false, n.name})
		}
	}
	return all
}

// lacks says whether no route configuration may yet get a virtual host, and why if that is known.
func (s *Snapshot) lacks(host string) (why error, lacks bool) {
	none := client.ErrDoesNotExist
	for _, rc := range s.Routes {
		if rc.Message.GetVhds() != nil {
			switch reason := rc.misses(host); {
			case reason == nil:
				return nil, false
			case !absent(reason):
				why = join(why, reason)
			}
		}
		none = join(none, rc.unserved)
	}
	return cmp.Or(why, none), true
}

func absent(err error) bool { return errors.Is(err, client.ErrDoesNotExist) }

// misses is why there is no virtual host on demand; nil if that is not known.
func (rc *RouteConfig) misses(host string) error {
	switch {
	case rc.vhds != nil:
	case rc.from == nil && rc.unserved != nil: // none can be had
		return client.ErrDoesNotExist
	default:
		return nil
	}
	why, _ := rc.vhds.missing.Get(host)
	return why
}
