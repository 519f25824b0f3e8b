package view

import (
	"context"
	"errors"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/internal/ctxerr"
	"github.com/xdswatch/xdswatch/resource/lds"
)

// Listeners follows every listener, each by a view of its own, so that one that waits does not hold
// back another: those of the collection that the bootstrap names (Envoy's lds_resources_locator), or else
// of the wildcard. Its methods are safe for concurrent use.
type Listeners struct {
	client    *client.Client
	config    Config
	name      string // of the collection
	onRemoved func(string)
	watch     *client.Watch
	ctx       context.Context // of its views
	cancel    context.CancelCauseFunc
	synced    chan struct{}
	once      sync.Once

	mu      sync.Mutex
	views   map[string]*View
	touched map[*View]bool // that got events of the response at hand
	trouble error          // with the collection
}

// NewListeners starts to follow every listener. Config.OnSnapshot and OnWaiting are called for
// each of them; their roots tell which. One that panics, or ends its goroutine, ends the view of that
// listener alone. onRemoved is called when a listener was removed and its view stopped; nil for none. It is as a
// handler of a watch: a panic ends it all. For ctx and errors see [New].
func NewListeners(ctx context.Context, c *client.Client, config Config, onRemoved func(name string)) (*Listeners, error) {
	switch {
	case ctx == nil:
		return nil, client.ErrNilContext
	case c == nil:
		return nil, errors.New("xds: the client of a view is nil")
	}
	l := &Listeners{
		client: c, config: config, onRemoved: onRemoved, synced: make(chan struct{}),
		views: map[string]*View{}, touched: map[*View]bool{},
	}
	l.ctx, l.cancel = context.WithCancelCause(ctx)
	var opts []client.WatchOption
	l.name, opts = listenersOf(c.Bootstrap(), config.Options)
	w, err := c.WatchAll(ctx, lds.Type, l.name, l.take, opts...)
	if err != nil {
		l.cancel(err)
		return nil, err
	}
	l.watch = w
	go func() {
		<-w.Done()
		l.cancel(w.Err())
	}()
	return l, nil
}

// listenersOf is the collection that every listener is in, and how it is watched.
func listenersOf(boot *bootstrap.Config, opts []client.WatchOption) (name string, _ []client.WatchOption) {
	for _, s := range boot.Startup {
		if s.TypeURL == lds.Type.TypeURL() && s.Collection != wildcard {
			return s.Collection, append([]client.WatchOption{client.AtStartup(s)}, opts...)
		}
	}
	return wildcard, fromStartup(startupOf(boot), lds.Type.TypeURL(), opts)
}

const wildcard = "*"

// take hands events on to the views, each in a goroutine that a function of its Config may end, and waits for it.
func (l *Listeners) take(b client.Batch[any]) {
	for i := range b.Events {
		l.takeOne(&b.Events[i])
	}
	if !b.Last {
		return
	}
	l.mu.Lock()
	touched := slices.Collect(maps.Keys(l.touched))
	clear(l.touched)
	l.mu.Unlock()
	slices.SortFunc(touched, func(a, b *View) int { return strings.Compare(a.root.Name, b.root.Name) })
	for _, v := range touched {
		v.inHandler(func() { v.take(nil, true) })
	}
}

func (l *Listeners) takeOne(ev *client.Event[any]) {
	if ev.Name == l.name || ev.Asked == l.name {
		l.takeAll(ev)
		return
	}
	l.mu.Lock()
	v := l.views[ev.Name]
	if ev.Kind == client.EventDoesNotExist {
		delete(l.views, ev.Name)
		delete(l.touched, v)
		l.mu.Unlock()
		if v != nil {
			v.Stop()
			if l.onRemoved != nil {
				l.onRemoved(ev.Name)
			}
		}
		return
	}
	fresh := v == nil
	if fresh {
		var err error
		if v, err = newView(l.ctx, l.client, Root{Type: RootListener, Name: ev.Name}, l.config); err != nil {
			l.mu.Unlock()
			return // the client is closed
		}
		v.fed = true
		l.views[ev.Name] = v
	}
	l.touched[v] = true
	l.mu.Unlock()
	if fresh {
		v.start(v.inHandler)
	}
	v.inHandler(func() { v.take([]delivery{{watch{v.core.rootPart.feed, ev.Name}, ev}}, false) })
}

func (l *Listeners) takeAll(ev *client.Event[any]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch ev.Kind {
	case client.EventSynced:
		l.trouble = nil
		l.once.Do(func() { close(l.synced) })
	case client.EventRecovered:
		l.trouble = nil
	case client.EventDoesNotExist:
		l.trouble = absence(ev, l.client.NodeID())
	case client.EventFailed, client.EventAmbientError:
		l.trouble = bare(ev.Err)
	case client.EventUpdated:
	}
}

// View returns the view of a listener, nil if there is none.
func (l *Listeners) View(name string) *View {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.views[name]
}

// All yields the views by name, in order.
func (l *Listeners) All() iter.Seq2[string, *View] {
	l.mu.Lock()
	views := maps.Clone(l.views)
	l.mu.Unlock()
	return func(yield func(string, *View) bool) {
		for _, name := range slices.Sorted(maps.Keys(views)) {
			if !yield(name, views[name]) {
				return
			}
		}
	}
}

// Synced is closed when the first state of all listeners is there: each has a view, which may be in error.
func (l *Listeners) Synced() <-chan struct{} { return l.synced }

// Ready blocks until the first state of all listeners is there and each view is ready; see
// [View.Ready] and [Listeners.Synced].
func (l *Listeners) Ready(ctx context.Context) error {
	select {
	case <-l.synced:
	case <-l.watch.Done():
		return l.watch.Err()
	case <-ctx.Done():
		l.mu.Lock()
		defer l.mu.Unlock()
		return &NotReadyError{
			Root: Root{Type: RootListener, Name: l.name}, Err: ctxerr.Of(ctx), Fault: l.trouble, NodeID: l.client.NodeID(),
		}
	}
	for _, v := range l.All() {
		if err := v.Ready(ctx); err != nil && !errors.Is(err, client.ErrStopped) { // else it was removed
			return err
		}
	}
	return nil
}

// Stop ends it, and the views.
func (l *Listeners) Stop() {
	l.watch.Stop()
	l.cancel(client.ErrStopped)
}

// Done is closed when it has ended; see [client.Watch.Done].
func (l *Listeners) Done() <-chan struct{} { return l.watch.Done() }

// Err is nil while it lives; see [client.Watch.Err].
func (l *Listeners) Err() error { return l.watch.Err() }
