package view

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"github.com/xdswatch/xdswatch/client"
)

// OD-b: missFor is how long a cluster that does not exist counts as known, however often it is
// asked for: then it is subscribed to anew.
const missFor = 5 * time.Second

// demand are the clusters and virtual hosts that programs asked for.
type demand struct {
	view *View

	mu    sync.Mutex
	slots map[slotKey]*slot
	idle  list.List // of *slot that nobody waits for, the longest idle first
	ended bool
}

// slotKey is the name of a cluster, or of a host.
type slotKey struct {
	host bool
	name string
}

// slot is one of them, held until it was idle for a while.
type slot struct {
	key     slotKey
	release func()
	waiting int
	used    time.Time
	missed  time.Time     // when it was first known not to exist; zero if it may
	idle    *list.Element // nil while somebody waits
	timer   *time.Timer
}

func (d *demand) init(v *View) { d.view, d.slots = v, map[slotKey]*slot{} }

func (d *demand) stop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ended = true
	for _, s := range d.slots {
		s.timer.Stop()
	}
}

// Cluster returns a cluster, also one that nothing names yet: then it is subscribed to, and kept
// for Config.OnDemandIdle after its last use. Callers for one name share the subscription. It
// blocks until the cluster is known, in a snapshot, or ctx ends; a lost connection does not end
// it. A cluster that does not exist is asked for anew some seconds later.
//
// Errors: the cluster's own, if it cannot be used; a [*NotReadyError] when ctx ends;
// [client.ErrTooManyNames]; and that of the end of the view.
func (v *View) Cluster(ctx context.Context, name string) (*Cluster, error) {
	if s := v.Snapshot(); s != nil {
		if c := s.Cluster(name); c != nil && c.status == StatusOK && c.refs&^refHold != 0 {
			return c, nil // it is there without us
		}
	}
	s, err := v.demand.enter(slotKey{false, name}, func() func() { return v.Hold(name) }) // OD-a, ONDEMAND-1
	if err != nil {
		return nil, err
	}
	c, err := v.await(ctx, name)
	v.demand.leave(s, c != nil && c.status == StatusError)
	if err == nil && c.status == StatusError {
		return nil, c.Err()
	}
	return c, err
}

// ONDEMAND-3: await blocks until a snapshot knows a cluster, or that there is none.
func (v *View) await(ctx context.Context, name string) (*Cluster, error) {
	for {
		changed := v.Changed()
		if s := v.Snapshot(); s != nil {
			if c := s.Cluster(name); c != nil && c.status != StatusWaiting {
				return c, nil
			}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, v.notFound(ctx, slotKey{false, name})
		case <-v.ctx.Done():
			return nil, v.Err()
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
// [client.ErrDoesNotExist]; for others see [View.Cluster]. In a view with Root.Host there is
// nothing on demand.
func (v *View) VirtualHost(ctx context.Context, host string) (*routev3.VirtualHost, error) {
	if s := v.Snapshot(); s != nil && s.Err == nil {
		if vh, own := s.hostOf(host); vh != nil && own {
			return vh, nil // it is there without us
		}
	}
	s, err := v.demand.enter(slotKey{true, host}, func() func() { return v.holdHost(host) }) // VHDS-1
	if err != nil {
		return nil, err
	}
	vh, err := v.awaitHost(ctx, host)
	v.demand.leave(s, errors.Is(err, client.ErrDoesNotExist))
	return vh, err
}

func (v *View) holdHost(host string) (release func()) {
	v.change(func(c *core, now time.Time) { c.holdHost(now, host) })
	return func() { v.change(func(c *core, now time.Time) { c.releaseHost(now, host) }) }
}

func (v *View) awaitHost(ctx context.Context, host string) (*routev3.VirtualHost, error) {
	for {
		changed := v.Changed()
		if s := v.Snapshot(); s != nil && s.Err == nil {
			if vh, _ := s.hostOf(host); vh != nil && s.knows(vh) {
				return vh, nil
			}
			if why, lacks := s.lacks(host); lacks {
				return nil, join(fmt.Errorf("xds: the view of %q: %w: a virtual host for %q", v.root.Name, client.ErrDoesNotExist, host), why)
			}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, v.notFound(ctx, slotKey{true, host})
		case <-v.ctx.Done():
			return nil, v.Err()
		}
	}
}

// hostOf finds the virtual host of a host name, and says whether it is there without being asked
// for: a route configuration's own, or one that the server sends by itself.
func (s *Snapshot) hostOf(host string) (vh *routev3.VirtualHost, own bool) {
	if s.Root.Host != "" {
		return s.VirtualHost, true
	}
	for _, rc := range s.Routes {
		if vh, own := rc.finder.find(host); vh != nil {
			return vh, own
		}
	}
	return nil, false
}

// finder finds the virtual hosts of a route configuration. Whoever needs it first makes it ready, for
// all who wait for one snapshot.
type finder struct {
	rc    *RouteConfig
	once  sync.Once
	hosts *hostTable
	asked map[*routev3.VirtualHost]bool
}

func (f *finder) find(host string) (vh *routev3.VirtualHost, own bool) {
	f.once.Do(func() {
		f.hosts, f.asked = newHostTable(f.rc.Message, f.rc.OnDemand), map[*routev3.VirtualHost]bool{}
		for _, vh := range f.rc.asked {
			f.asked[vh] = true
		}
	})
	vh = f.hosts.find(host)
	return vh, !f.asked[vh]
}

// knows says whether no cluster of a virtual host is waited for.
func (s *Snapshot) knows(vh *routev3.VirtualHost) bool {
	var r routesRead
	r.virtualHost(vh)
	for _, n := range r.names {
		if c := s.Cluster(n.name); n.refs&static != 0 && (c == nil || c.status == StatusWaiting) {
			return false
		}
	}
	return true
}

// lacks says whether no route configuration may yet get a virtual host, and why if that is known.
func (s *Snapshot) lacks(host string) (why error, lacks bool) {
	for _, rc := range s.Routes {
		if rc.Message.GetVhds() != nil && !rc.misses(host) {
			return nil, false
		}
		why = join(why, rc.unserved)
	}
	return why, true
}

func (rc *RouteConfig) misses(host string) bool {
	_, found := slices.BinarySearch(rc.Missing, host)
	return found
}

// enter holds what is asked for, or joins who does.
func (d *demand) enter(key slotKey, hold func() (release func())) (*slot, error) {
	if s := d.join(key); s != nil {
		return s, nil
	}
	release := hold() // ONDEMAND-2: names do not wait for answers of others
	s, evicted, err := d.add(key, release)
	for _, release := range evicted {
		release()
	}
	return s, err
}

func (d *demand) join(key slotKey) *slot {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.slots[key]
	if s != nil {
		d.use(s)
	}
	return s
}

func (d *demand) use(s *slot) {
	s.waiting++
	if s.idle != nil {
		d.idle.Remove(s.idle)
		s.idle = nil
	}
}

// add makes a slot, unless there is one by now or no room. What is to be released is returned.
func (d *demand) add(key slotKey, release func()) (s *slot, evicted []func(), err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s := d.slots[key]; s != nil {
		d.use(s)
		return s, []func(){release}, nil
	}
	if most := d.view.config.MaxOnDemand; most > 0 && len(d.slots) >= most {
		first := d.idle.Front()
		if first == nil {
			return nil, []func(){release}, client.ErrTooManyNames
		}
		old := first.Value.(*slot)
		d.drop(old)
		evicted = append(evicted, old.release)
	}
	s = &slot{key: key, release: release, waiting: 1}
	s.timer = time.AfterFunc(max(d.view.config.OnDemandIdle, time.Second), func() { d.ring(s) })
	d.slots[key] = s
	return s, evicted, nil
}

// ONDEMAND-4: leave ends one use of a slot, which stays for a while.
func (d *demand) leave(s *slot, missed bool) {
	d.mu.Lock()
	s.waiting--
	s.used = time.Now()
	switch {
	case !missed:
		s.missed = time.Time{}
	case s.missed.IsZero():
		s.missed = s.used
		s.timer.Reset(max(min(missFor, d.view.config.OnDemandIdle), 0))
	}
	if s.waiting == 0 {
		s.idle = d.idle.PushBack(s)
	}
	gone := s.waiting == 0 && d.view.config.OnDemandIdle < 0 && d.drop(s)
	d.mu.Unlock()
	if gone {
		s.release()
	}
}

// ring looks whether a slot is idle.
func (d *demand) ring(s *slot) {
	d.mu.Lock()
	due := s.used.Add(d.view.config.OnDemandIdle)
	if !s.missed.IsZero() && s.missed.Add(missFor).Before(due) {
		due = s.missed.Add(missFor)
	}
	gone := false
	switch now := time.Now(); {
	case d.ended:
	case s.waiting > 0:
		s.timer.Reset(time.Second)
	case now.Before(due):
		s.timer.Reset(due.Sub(now))
	default:
		gone = d.drop(s)
	}
	d.mu.Unlock()
	if gone {
		s.release()
	}
}

// drop takes a slot off the books; its release follows.
func (d *demand) drop(s *slot) bool {
	if d.slots[s.key] != s {
		return false
	}
	delete(d.slots, s.key)
	s.timer.Stop()
	if s.idle != nil {
		d.idle.Remove(s.idle)
		s.idle = nil
	}
	return true
}
