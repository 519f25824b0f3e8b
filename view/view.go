package view

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/internal/engine"
)

// Defaults of Config.
const (
	defaultMaxNames    = 100_000
	defaultIdle        = time.Minute
	defaultMaxOnDemand = 10_000
)

// Config configures a view. Its zero value works. A view calls its functions one at a time, and never in the
// goroutine in which the program calls this package: a caller may hold a lock that they take. One that panics, or ends
// its goroutine, ends the view.
type Config struct {
	// OnSnapshot is called with each published snapshot, in order. What the snapshot before it
	// needed and this one does not is unsubscribed when it has returned (make before break). It
	// must return, and not call Cluster, VirtualHost or Ready, which may wait for the next
	// snapshot. nil for none.
	OnSnapshot func(*Snapshot)
	// OnWaiting is called with what the view of a root waits for whenever that may have changed,
	// after OnSnapshot. It must not call what OnSnapshot must not. nil for none.
	OnWaiting func(Root, []Waiting)

	// DeletionGrace is how long the view keeps a deleted resource, other than the root, that the
	// published snapshot refers to. 0 means as long as something refers to it; negative not at
	// all. A resource whose time to live ran out is not kept.
	DeletionGrace time.Duration
	// FreshEndpoints is how long a cluster whose transport socket changed waits for a new
	// assignment; until then the snapshot has the old cluster. Envoy waits so, since an address
	// may mean another thing with another transport. Its absence and its refusal end the wait too. An
	// assignment that is sent again unchanged does not, since the client hears nothing new in it. 0 means that the held
	// assignment is good at once.
	FreshEndpoints time.Duration
	// MergeWindow collects changes of endpoints that alter only attributes (weight, health,
	// metadata) for that long; any other change is published at once, with them. 0 publishes
	// each at once.
	MergeWindow time.Duration
	// MaxNames is how many names the view watches at most. A cluster over it is an error of what
	// names it; it comes when there is room. Held clusters are not bounded. 0 means 100,000; negative no bound.
	MaxNames int
	// OnDemandIdle is how long a cluster of [View.Cluster] is kept after its last use. 0 means a
	// minute; negative not at all.
	OnDemandIdle time.Duration
	// MaxOnDemand is how many of them are kept at most, the longest idle leaving first; for one
	// more [View.Cluster] returns [client.ErrTooManyNames]. 0 means 10,000; negative no bound.
	MaxOnDemand int

	// Hooks find more resources that messages name; see [Hook]. They are added to those of
	// [Extensions].
	Hooks []Hook
	// Source says where to get a resource whose ConfigSource is neither ads nor self, which is where
	// the message came from that names it; see [bootstrap.Config.ConfigSource]. nil, or an error,
	// makes it an error of the resource: a
	// management server must not lead the program to other servers unless it trusts it so far.
	Source func(*corev3.ConfigSource) (bootstrap.Source, error)
	// Options are for each watch of the view: a scope, say.
	Options []client.WatchOption
}

// View follows the configuration below a root. Its methods are safe for concurrent use.
type View struct {
	client *client.Client
	root   Root
	config Config
	cancel context.CancelCauseFunc
	ctx    context.Context // of the view's life
	done   chan struct{}   // closed when the subscriptions have ended too

	current atomic.Pointer[Snapshot]
	changed atomic.Pointer[chan struct{}]

	turn chan struct{} // held while effects are done
	sets *sets         // owned by who has the turn
	fed  bool          // the events of the root come from elsewhere

	mu      sync.Mutex // guards the core and the fields below
	core    *core
	pending bool // the core has to step
	timer   *time.Timer
	wake    time.Time // when timer rings

	demand *demand
	calls  calls

	startup map[string]bootstrap.Source // by type URL
}

// New starts to follow a root. It does no network I/O. Listeners and clusters come from the sources
// that the bootstrap has for them alone ([bootstrap.Config.Startup]), if it has some. The view ends with ctx, with [View.Stop],
// and with the client. Errors: a root that cannot be (no type, no name, a host for a cluster, or a [*client.ResourceError]
// for a context parameter that is the client's to set), or
// what [client.Client.NewSet] returns: [client.ErrTypeConflict] if the program has used the
// root's type with a resource type of its own. Of another type below the root it is the error of
// that part in the snapshot. A lazy watch (resource.LazyOf) is no conflict.
func New(ctx context.Context, c *client.Client, root Root, config Config) (*View, error) {
	v, err := newView(ctx, c, root, config)
	if err != nil {
		return nil, err
	}
	if err := v.checkOwn(v.rootWatch()); err != nil {
		v.cancel(err)
		return nil, err
	}
	if _, err := v.sets.set(v.rootWatch()); err != nil {
		v.cancel(err)
		return nil, err
	}
	v.start(v.apart)
	return v, nil
}

func newView(ctx context.Context, c *client.Client, root Root, config Config) (*View, error) {
	switch {
	case ctx == nil:
		return nil, client.ErrNilContext
	case c == nil:
		return nil, errors.New("xds: the client of a view is nil")
	case root.Type < RootListener || root.Type > RootCluster: // VIEW-1
		return nil, fmt.Errorf("xds: %d is no type of a root; want RootListener, RootRoutes or RootCluster", root.Type)
	case root.Name == "":
		return nil, errors.New("xds: the root of a view has no name")
	case root.Type == RootCluster && root.Host != "":
		return nil, errors.New("xds: a host cannot be looked up in a cluster")
	}
	select {
	case <-c.Done():
		return nil, client.ErrClosed
	default:
	}
	v := &View{
		client: c, root: root, config: config.withDefaults(), turn: make(chan struct{}, 1), done: make(chan struct{}),
		pending: true,
	}
	v.turn <- struct{}{} // for start
	v.ctx, v.cancel = context.WithCancelCause(ctx)
	ch := make(chan struct{})
	v.changed.Store(&ch)
	v.sets = newSets(v)
	v.demand, v.calls.on = newDemand(v.config), map[slotKey]map[chan struct{}]bool{}
	boot := c.Bootstrap()
	v.startup = startupOf(boot)
	own := map[string]bool{}
	for typeURL := range v.startup {
		own[typeURL] = true
	}
	v.core = newCore(root, coreConfig{
		startup: own, grace: v.config.DeletionGrace, fresh: v.config.FreshEndpoints, merge: v.config.MergeWindow,
		maxNames: v.config.MaxNames, node: v.client.NodeID,
	}, append(Extensions(), v.config.Hooks...), time.Now())
	return v, nil
}

func (c Config) withDefaults() Config {
	if c.MaxNames == 0 {
		c.MaxNames = defaultMaxNames
	}
	if c.OnDemandIdle == 0 {
		c.OnDemandIdle = defaultIdle
	}
	if c.MaxOnDemand == 0 {
		c.MaxOnDemand = defaultMaxOnDemand
	}
	return c
}

// startupOf are the sources that a bootstrap has for a type alone (Envoy's lds_config and cds_config).
func startupOf(boot *bootstrap.Config) map[string]bootstrap.Source {
	all := map[string]bootstrap.Source{}
	for _, s := range boot.Startup {
		if s.Source != nil {
			all[s.TypeURL] = *s.Source
		}
	}
	return all
}

// start has the root watched. The first steps are made here, so that the root is subscribed to when New returns.
// Functions of Config are called in another goroutine, by apart, which is handed the turn: the caller of New may hold a
// lock that they take. What a step unsubscribes goes before the next one.
func (v *View) start(apart func(func())) {
	go v.live()
	var all []made
	for v.owed() {
		m := v.step()
		if all = append(all, m); len(m.unwatch)+len(m.ended) > 0 {
			break
		}
	}
	apart(func() {
		v.run(func() {
			for _, m := range all {
				v.finish(m)
			}
		})
		v.settle()
	})
}

// live waits for the end of the view.
func (v *View) live() {
	defer close(v.done)
	select {
	case <-v.ctx.Done():
	case <-v.client.Done():
		v.cancel(client.ErrClosed)
	}
	v.turn <- struct{}{} // for good: nothing is done any more
	v.mu.Lock()
	if v.timer != nil {
		v.timer.Stop()
	}
	v.mu.Unlock()
	v.demand.Close()
	v.sets.stop()
}

// change changes what the core knows, for the program. As in start, functions of Config are called in another
// goroutine.
func (v *View) change(f func(c *core, now time.Time)) {
	owes := false
	v.locked(func() {
		f(v.core, time.Now())
		owes = v.core.owes()
		v.pending = v.pending || owes
	})
	if owes {
		v.apart(v.settle)
	}
}

// locked calls a function with the core to itself. A hook that panics there leaves nothing locked.
func (v *View) locked(f func()) {
	v.mu.Lock()
	defer v.mu.Unlock()
	f()
}

// apart calls a function in a goroutine of its own. A function of Config that panics there, or ends the goroutine, ends
// nothing but the view.
func (v *View) apart(f func()) { engine.Go(f, v.complain) }

// inHandler is apart for the handler of another watch, which waits for it.
func (v *View) inHandler(f func()) { engine.ApartInHandler(f, v.complain) }

// complain logs that a function of Config did not return, given what was recovered.
func (v *View) complain(p any) {
	err := exited(p)
	slog.Error("a function of a view panicked or ended its goroutine; the view is over", "root", v.root.Name,
		"error", engine.Cut(err.Error(), engine.MaxLogged), "stack", engine.Stack(debug.Stack()))
}

// exited is the error of a function that did not return, given what was recovered: nil if it ended its goroutine.
func exited(p any) error {
	if p == nil {
		return client.ErrHandlerExited
	}
	return &client.PanicError{Value: p, Stack: debug.Stack()}
}

// again makes a step although nothing happened.
func (v *View) again() {
	v.locked(func() { v.pending = true })
	v.settle()
}

// settle has the effects done: by the caller, or by who has the turn.
func (v *View) settle() {
	for v.owed() {
		select {
		case v.turn <- struct{}{}:
			v.run(func() {})
		default: // its holder looks again
			return
		}
	}
}

func (v *View) owed() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.pending && v.ctx.Err() == nil
}

// run calls a function and does what is owed, and gives the turn back. What comes to be owed then is its caller's.
func (v *View) run(first func()) {
	returned := false
	defer func() {
		if returned {
			<-v.turn
			return
		}
		p := recover()
		v.cancel(exited(p))
		<-v.turn
		if p != nil {
			panic(p) // whose goroutine it is says that it panicked
		}
	}()
	first()
	for v.owed() {
		v.finish(v.step())
	}
	returned = true
}

// made is a step whose resources are watched. The program has not been told of it.
type made struct {
	effects
	waits []Waiting // after it; for OnWaiting
}

// step makes a step and has watched what it needs. The other effects are for finish, in the same turn.
func (v *View) step() made {
	var m made
	v.locked(func() {
		v.pending = false
		m.effects = v.core.step(time.Now())
		v.current.Store(v.core.snapshot)
		v.rewind()
	})
	v.calls.wake(m.news)

	refused := v.sets.watch(m.watch)
	v.locked(func() {
		now := time.Now()
		for _, r := range refused {
			v.core.take(now, r.watch, &r.event)
		}
		v.pending = v.pending || m.again || len(refused) > 0
		if m.waiting && v.config.OnWaiting != nil {
			m.waits = v.core.waiting()
		}
	})
	return m
}

// finish tells the program of a step, and ends the subscriptions that it needs no more.
func (v *View) finish(m made) {
	if m.snapshot != nil {
		next := make(chan struct{})
		close(*v.changed.Swap(&next))
		if v.config.OnSnapshot != nil && v.ctx.Err() == nil {
			v.config.OnSnapshot(m.snapshot) // VIEW-44
		}
	}
	if m.waiting && v.config.OnWaiting != nil && v.ctx.Err() == nil {
		v.config.OnWaiting(v.root, m.waits)
	}
	v.sets.unwatch(m.unwatch)
	v.sets.end(m.ended)
}

// rewind has the timer ring at the deadline of the core.
func (v *View) rewind() {
	at := v.core.deadline()
	if at.IsZero() || at.Equal(v.wake) {
		return
	}
	v.wake = at
	if v.timer == nil {
		v.timer = time.AfterFunc(time.Until(at), v.ring)
		return
	}
	v.timer.Reset(time.Until(at))
}

func (v *View) ring() {
	v.locked(func() { v.wake = time.Time{} })
	v.apart(v.again)
}

// take takes events of the client. It waits for its turn, so that a handler that blocks holds up
// the client and nothing grows.
func (v *View) take(events []delivery, last bool) {
	select {
	case v.turn <- struct{}{}:
	case <-v.ctx.Done():
		return
	}
	v.run(func() {
		v.locked(func() {
			now := time.Now()
			for i := range events {
				v.core.take(now, events[i].watch, events[i].event)
			}
			v.pending = v.pending || last
		})
	})
	v.settle()
}

// Root is what the view begins with.
func (v *View) Root() Root { return v.root }

// Snapshot returns the newest snapshot; nil before the first. It takes no lock. Compared with the
// one that Config.OnSnapshot had last it may have newer versions of equal content.
func (v *View) Snapshot() *Snapshot { return v.current.Load() }

// Changed is closed when the next snapshot is published: call it first, then read the snapshot,
// then wait for it.
func (v *View) Changed() <-chan struct{} { return *v.changed.Load() }

// Snapshots yields the newest snapshot and then each newer one; a slow loop misses those between.
// It ends with ctx and with the view.
func (v *View) Snapshots(ctx context.Context) iter.Seq[*Snapshot] {
	return func(yield func(*Snapshot) bool) {
		var serial uint64
		for {
			changed := v.Changed()
			if s := v.Snapshot(); s != nil && s.Serial != serial {
				if serial = s.Serial; !yield(s) {
					return
				}
			}
			select {
			case <-changed:
			case <-ctx.Done():
				return
			case <-v.ctx.Done():
				return
			}
		}
	}
}

// Waiting lists what is waited for: first that which holds back the next snapshot, by type and
// name.
func (v *View) Waiting() []Waiting {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.core.waiting()
}

// Hold adds a cluster to the view until release is called, as work in flight does for its cluster
// (gRFC A74): it stays, with its endpoints, when routes do not name it any more. It never holds
// back a snapshot. Holds are counted; a second call of release does nothing. If the cluster is in
// no snapshot yet it comes in a later one. Neither blocks.
func (v *View) Hold(name string) (release func()) { // VIEW-13, VIEW-14
	v.change(func(c *core, now time.Time) { c.hold(now, name) })
	var once sync.Once
	return func() {
		once.Do(func() { v.change(func(c *core, now time.Time) { c.release(now, name) }) })
	}
}

// State is what a view has at a moment, for tools.
type State struct {
	Snapshot *Snapshot // the newest; nil before the first
	Waiting  []Waiting
	Watched  []Watched // by type and name
}

// Dump returns the state of the view. It takes time in proportion to what is watched.
func (v *View) Dump() State {
	v.mu.Lock()
	defer v.mu.Unlock()
	return State{v.core.snapshot, v.core.waiting(), v.core.watched()}
}

// Stop ends the view. After it returns OnSnapshot and OnWaiting are not called any more, unless
// they run. The last snapshot stays.
func (v *View) Stop() { v.cancel(client.ErrStopped) }

// Done is closed when the view has ended, and its subscriptions with it. OnSnapshot and OnWaiting
// must not wait for it.
func (v *View) Done() <-chan struct{} { return v.done }

// Err is nil while the view lives, then says why it ended: [client.ErrStopped],
// [client.ErrClosed], the cause of its context's end, a [*client.PanicError] if a function of Config panicked, or
// [client.ErrHandlerExited] if one ended its goroutine. These two are logged: to the client's logger where the client
// called the function, and to slog.Default at its beginning, after a timer or a hold, and in [Listeners].
func (v *View) Err() error { return context.Cause(v.ctx) }
