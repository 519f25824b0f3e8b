package main

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/cmd/xdsctl/internal/report"
	"github.com/xdswatch/xdswatch/resource/lds"
	"github.com/xdswatch/xdswatch/view"
)

// resolver is a client, the views of its roots, and where their events go.
type resolver struct {
	*target
	client *client.Client
	output *output
	once   bool // end with the first complete value, or with an error
	settle bool // end when all of it is known, errors included
	all    bool // every listener
	begun  time.Time

	started chan struct{}       // closed when one and every are known
	one     *view.View          // nil with all
	every   *view.Listeners     // nil without
	holds   map[string][]func() // releases; owned by the goroutine that takes commands

	mu      sync.Mutex        // held while something is told, so that all agree on its order
	awaited []string          // clusters of --hold that no value has had yet: one without them is not printed
	synced  bool              // with all: the first state of all listeners is there
	printed map[string]bool   // by root: whether the value that was printed last was complete
	newest  *view.Snapshot    // that was printed
	failed  map[string]string // by root: its error, if that was printed last
	waits   []report.Wait     // printed last
	status  int               // with once
	trouble error             // with the list of listeners, with settle
}

// newResolver makes a resolver; held are the clusters that the view is to hold from its beginning.
func newResolver(t *target, p report.Printer, once bool, held ...string) *resolver {
	return &resolver{
		target: t, output: newOutput(p), once: once, begun: time.Now(), started: make(chan struct{}), awaited: held,
		holds: map[string][]func(){}, printed: map[string]bool{}, failed: map[string]string{},
	}
}

// start makes the client and the views.
func (r *resolver) start(ctx context.Context, root view.Root, all bool) (err error) {
	r.all = all
	if r.client, err = r.target.client(nil); err != nil {
		return err
	}
	config := view.Config{OnSnapshot: r.onSnapshot, OnWaiting: r.onWaiting}
	if all {
		r.every, err = view.NewListeners(ctx, r.client, config, r.onRemoved)
	} else {
		r.one, err = view.New(ctx, r.client, root, config)
	}
	if err == nil && all {
		err = r.watchAll(ctx)
	}
	if err != nil {
		r.closeClient(r.client)
		return err
	}
	close(r.started)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.endIfComplete()
	return nil
}

// watchAll tells of trouble with the list of listeners, which no view has, and looks out for its
// first state.
func (r *resolver) watchAll(ctx context.Context) error {
	r.onWaiting(view.Root{}, nil)
	everyone := r.plan.every(lds.Type.TypeURL())
	_, err := r.client.WatchAll(ctx, lds.Type, everyone.Name, func(b client.Batch[any]) {
		for _, ev := range b.Events {
			switch {
			case ev.Name != everyone.Name && ev.Asked != everyone.Name:
			case ev.Kind == client.EventDoesNotExist:
				absent := report.Absent{Reason: ev.Reason.String(), Instead: instead(ev)}
				r.onTrouble(&client.ResourceError{
					Kind: client.ErrorData, Type: ev.Type, Name: ev.Name, Server: ev.Server, NodeID: r.boot.Node.GetId(),
					Err: fmt.Errorf("%w (%s)", client.ErrDoesNotExist, absent.Why()),
				})
			case ev.Kind == client.EventFailed:
				r.onTrouble(ev.Err)
			}
		}
	}, r.plan.options(everyone)...)
	go func() {
		for _, known := range []<-chan struct{}{r.every.Synced(), r.started} { // else there are no views to look at
			select {
			case <-known:
			case <-ctx.Done():
				return
			}
		}
		r.onSynced()
	}()
	return err
}

// views are those that there are, once they are known.
func (r *resolver) views() iter.Seq[*view.View] {
	return func(yield func(*view.View) bool) {
		select {
		case <-r.started:
		default: // the first steps, before they are
			return
		}
		if r.one != nil {
			yield(r.one)
			return
		}
		for _, v := range r.every.All() {
			if !yield(v) {
				return
			}
		}
	}
}

func (r *resolver) onSnapshot(s *view.Snapshot) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tell(s)
}

// tell prints a value, or the error of a root. The caller holds mu, as that of all below.
func (r *resolver) tell(s *view.Snapshot) {
	if s.Err != nil {
		delete(r.printed, s.Root.Name)
		if text := s.Err.Error(); r.failed[s.Root.Name] != text { // a value beside an error may change, as what is held
			r.failed[s.Root.Name] = text
			r.fail(s.Root.Name, s.Err)
		}
		if r.settle {
			r.printed[s.Root.Name] = true
			r.endIfComplete()
		}
		return
	}
	if slices.ContainsFunc(r.awaited, func(name string) bool { return s.Cluster(name) == nil }) {
		return // the view made it before it was told of them; its next has them
	}
	r.awaited = nil
	if s == r.newest { // a release and the view may tell of it both
		return
	}
	r.newest = s
	value := configOf(s)
	delete(r.failed, s.Root.Name)
	r.printed[s.Root.Name] = s.Complete
	r.output.print(report.Config{Head: head(report.EventConfig), ConfigValue: value})
	if r.once && value.Bad() {
		r.end(statusBad)
	}
	r.endIfComplete()
}

// fail prints an error of a root; listener tells which where there are several.
func (r *resolver) fail(listener string, err error) {
	rec := report.RootError{Head: head(report.EventError), Error: report.ErrorOf(err)}
	if r.all {
		rec.Listener = listener
	}
	r.output.print(rec)
	if r.once {
		r.end(statusBad)
	}
}

func (r *resolver) onTrouble(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fail("", err)
	if r.settle {
		r.trouble = err
		r.end(statusFailed)
	}
}

func (r *resolver) onSynced() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.synced = true
	r.tellWaiting(r.waitingOfAll())
	r.endIfComplete()
}

func (r *resolver) onRemoved(listener string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.printed, listener)
	delete(r.failed, listener)
	r.output.print(report.Removed{Head: head(report.EventRemoved), Listener: listener})
	r.tellWaiting(r.waitingOfAll())
	r.endIfComplete()
}

func (r *resolver) onWaiting(_ view.Root, ws []view.Waiting) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.all {
		ws = r.waitingOfAll()
	}
	// A value may be complete now without being another, which no snapshot tells.
	for v := range r.views() {
		s := v.Snapshot()
		if s == nil || s.Err != nil || !s.Complete {
			continue
		}
		if complete, printed := r.printed[s.Root.Name]; printed && !complete {
			r.tell(s)
		}
	}
	r.tellWaiting(ws)
	if r.settle {
		r.endIfComplete()
	}
}

// tellWaiting prints what is waited for if it has changed.
func (r *resolver) tellWaiting(ws []view.Waiting) {
	waits := waitsOf(ws)
	same := slices.EqualFunc(waits, r.waits, func(a, b report.Wait) bool {
		a.Since, b.Since = report.Time{}, report.Time{}
		return a == b
	})
	if !same {
		r.waits = waits
		r.output.print(report.Waiting{Head: head(report.EventWaiting), For: waits})
	}
}

// waitingOfAll is what any of the views waits for, and the list of listeners.
func (r *resolver) waitingOfAll() (all []view.Waiting) {
	if !r.synced {
		all = append(all, view.Waiting{Type: lds.Type.TypeURL(), Name: "*", Since: r.begun, Reason: "no answer yet", Blocking: true})
	}
	for v := range r.views() {
		all = append(all, v.Waiting()...)
	}
	slices.SortStableFunc(all, func(a, b view.Waiting) int {
		return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.Name, b.Name), a.Since.Compare(b.Since))
	})
	return slices.CompactFunc(all, func(a, b view.Waiting) bool { return a.Type == b.Type && a.Name == b.Name })
}

// endIfComplete ends a run that is to end with complete values.
func (r *resolver) endIfComplete() {
	if r.all && !r.synced || !r.all && len(r.printed) == 0 {
		return
	}
	settled := map[string]bool{}
	for v := range r.views() {
		complete, printed := r.printed[v.Root().Name]
		if !printed { // it may be ready and its value not printed yet
			return
		}
		settled[v.Root().Name] = complete || r.settle && answered(v)
	}
	for root, complete := range r.printed {
		if !complete && !settled[root] {
			return
		}
	}
	r.end(statusOK)
}

// answered says that there is news of all that a view watches; it waits for servers that cannot be reached.
func answered(v *view.View) bool {
	return !slices.ContainsFunc(v.Dump().Watched, func(w view.Watched) bool { return w.Status == view.StatusWaiting && w.Err == nil })
}

// end ends a run that is to end by itself.
func (r *resolver) end(status int) {
	if (r.once || r.settle) && !r.output.ended() {
		r.status = status
		r.output.end(nil)
	}
}

// result is the outcome of a run that has ended by itself.
func (r *resolver) result() error {
	if err := r.output.fault(); err != nil {
		return err
	}
	time.Sleep(courtesy)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.status != statusOK {
		return &statusError{r.status, nil}
	}
	return nil
}

// hold adds a cluster to the configuration; holds are counted.
func (r *resolver) hold(name string) { r.holds[name] = append(r.holds[name], r.one.Hold(name)) }

func (r *resolver) release(name string) error {
	held := r.holds[name]
	if len(held) == 0 {
		return fmt.Errorf("%.100q is not held", name)
	}
	held[0]()
	r.holds[name] = held[1:]
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.holds[name]) == 0 && slices.Contains(r.awaited, name) {
		r.awaited = slices.DeleteFunc(r.awaited, func(of string) bool { return of == name })
		if s := r.one.Snapshot(); s != nil {
			r.tell(s) // what was not printed for want of it
		}
	}
	return nil
}

// dump prints the state of each view. Without any, as with all before the first listener, a state
// without a value says what is waited for.
func (r *resolver) dump() {
	n, none := newestOf(r.client), true
	for v := range r.views() {
		r.output.print(dumpOf(v.Dump(), n))
		none = false
	}
	if none {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.output.print(dumpOf(view.State{Waiting: r.waitingOfAll()}, n))
	}
}

func (r *resolver) close() {
	r.output.end(nil)
	if r.one != nil {
		r.one.Stop()
	} else {
		r.every.Stop()
	}
	r.closeClient(r.client)
}
