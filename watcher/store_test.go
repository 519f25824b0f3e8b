package watcher_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/watcher"
)

func contents(s *watcher.Store[*cluster]) (texts []string) {
	for name, c := range s.All() {
		texts = append(texts, name+"="+c.AltStatName)
	}
	slices.Sort(texts)
	return texts
}

// A store has what the server has, says when it is complete and when it changes, and is read
// while it does.
func TestStore(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		s, err := watcher.NewStore(background(), r.c, cds.Type, "*")
		must(t, err)
		synced := make(chan error, 1)
		go func() { synced <- s.Synced(background()) }()
		st := r.accept()
		same(t, "at first", contents(s), nil)
		first := s.Changed()
		r.send(st, "1", "a", "b")
		<-first
		must(t, <-synced)
		must(t, s.Synced(background()))
		same(t, "all", contents(s), []string{"a=1", "b=1"})
		var readers sync.WaitGroup
		for range 4 {
			readers.Go(func() {
				for range 100 {
					if c, ok := s.Get("b"); !ok || c.Name != "b" || s.Len() < 2 {
						t.Error("b is not there")
					}
				}
			})
		}
		r.send(st, "2", "b", "c")
		readers.Wait()
		same(t, "all", contents(s), []string{"b=2", "c=2"})
		if _, ok := s.Get("a"); ok || s.Len() != 2 || s.Err() != nil {
			t.Errorf("a is there: %v, of %d; %v", ok, s.Len(), s.Err())
		}
		must(t, st.SendBytes(refused("d"))) // and nothing else
		synctest.Wait()
		if s.Len() != 0 {
			t.Errorf("there are %d", s.Len())
		}
		r.send(st, "4", "b", "c")
		r.srv.SetRefuse(true)
		r.srv.DropConnections()
		time.Sleep(time.Minute)
		synctest.Wait()
		var re *client.ResourceError
		if err := s.Err(); !errors.As(err, &re) || re.Kind != client.ErrorConnection || s.Len() != 2 {
			t.Errorf("the trouble is %v, of %d", err, s.Len())
		}
		r.srv.SetRefuse(false)
		r.send(r.accept(), "4", "b", "c")
		if s.Err() != nil {
			t.Errorf("the trouble that is over is %v", s.Err())
		}
		s.Stop()
		<-s.Done()
		if !errors.Is(s.Err(), client.ErrStopped) || s.Len() != 2 {
			t.Errorf("it ended with %v", s.Err())
		}
	})
}

// A loop over changes begins with the first state, misses none, takes those together that come while its
// body runs, and ends with the store, its context or a break.
func TestStoreChanges(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		s, err := watcher.NewStore(background(), r.c, cds.Type, "*")
		must(t, err)
		ctx, cancel := context.WithCancel(background())
		defer cancel()
		var none context.Context
		without := func() {
			for range s.Changes(none) {
				t.Error("a loop begins without a context")
			}
			if err := s.Synced(none); err != client.ErrNilContext {
				t.Errorf("Synced without a context: %v", err)
			}
		}
		without()
		var told [3][]string
		var loops sync.WaitGroup
		for i, within := range []context.Context{background(), ctx, background()} {
			loops.Go(func() {
				for range s.Changes(within) {
					told[i] = append(told[i], contents(s)...)
					if told[i] = append(told[i], "."); i == 2 {
						break
					}
					time.Sleep(time.Second)
				}
			})
		}
		st := r.accept()
		synctest.Wait()
		same(t, "before the first state", told[0], nil)
		r.send(st, "1", "a", "b")
		r.send(st, "2", "a", "b")
		r.send(st, "3", "a")
		time.Sleep(time.Minute)
		without()
		cancel()
		synctest.Wait()
		r.send(st, "4", "a")
		time.Sleep(time.Minute)
		s.Stop()
		loops.Wait()
		same(t, "all", told[0], []string{"a=1", "b=1", ".", "a=3", ".", "a=4", "."})
		same(t, "until its context ended", told[1], []string{"a=1", "b=1", ".", "a=3", "."})
		same(t, "until it broke off", told[2], []string{"a=1", "b=1", "."})
		for range s.Changes(ctx) {
			t.Error("a loop begins after its context")
		}
	})
}

// Who waits for a collection that does not come reads why.
func TestStoreOfNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		s, err := watcher.NewStore(background(), r.c, cds.Type, "*")
		must(t, err)
		why := errors.New("the program has to go")
		wait := func(d time.Duration) error {
			ctx, cancel := context.WithTimeoutCause(background(), d, why)
			defer cancel()
			err := s.Synced(ctx)
			if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, why) {
				t.Errorf("the error is %v", err)
			}
			return err
		}
		if err := wait(time.Second); !strings.Contains(err.Error(), `"*" of server`) {
			t.Errorf("the error is %v", err)
		}
		if err := wait(time.Minute); !errors.Is(err, client.ErrDoesNotExist) || !errors.Is(s.Err(), client.ErrDoesNotExist) {
			t.Errorf("the error is %v, and the store's %v", err, s.Err())
		}
		wait(time.Second) // it is not complete, though there was a batch
		if r.send(r.accept(), "1"); s.Err() != nil {
			t.Errorf("the error of an empty collection is %v", s.Err())
		}
		if _, err := watcher.NewStore(background(), r.c, cds.Type, "some"); !errors.Is(err, client.ErrCollection) {
			t.Errorf("a store of what is no collection: %v", err)
		}
	})
}

// Batches come one by one, each; leaving the loop ends the watch, also while one waits.
func TestBatches(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		var rec record
		done := make(chan struct{})
		go func() {
			defer close(done)
			turns := 0
			for b, err := range watcher.Batches(background(), r.c, cds.Type, "*") {
				if err != nil {
					t.Errorf("the error is %v", err)
				}
				rec.hearAll(b)
				if turns++; turns == 2 {
					time.Sleep(time.Second) // the next one waits
					return
				}
			}
		}()
		st := r.accept()
		r.send(st, "1", "a", "b")
		r.send(st, "2", "b")
		r.send(st, "3", "c")
		<-done
		rec.heard(t, "updated a a=1", "updated b b=1", "synced *", ".", "updated b b=2", "does not exist a absent", ".")
		time.Sleep(time.Minute)
		if d := r.c.Dump(); len(d) != 0 {
			t.Errorf("the watch goes on: %+v", d)
		}
	})
}

// The end of a watch is the last that a loop gets, and the fault of its name the only one.
func TestBatchesEnd(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		ctx, cancel := context.WithCancel(background())
		var errs []error
		done := make(chan struct{})
		go func() {
			defer close(done)
			for _, err := range watcher.Batches(ctx, r.c, cds.Type, "*") {
				errs = append(errs, err)
			}
			for _, err := range watcher.Batches(background(), r.c, cds.Type, "some") {
				errs = append(errs, err)
			}
		}()
		r.send(r.accept(), "1", "a")
		cancel()
		<-done
		if len(errs) != 3 || errs[0] != nil || !errors.Is(errs[1], context.Canceled) || !errors.Is(errs[2], client.ErrCollection) {
			t.Errorf("the loop got %v", errs)
		}
	})
}
