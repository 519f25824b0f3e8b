package watcher_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/testutil"
	"github.com/xdswatch/xdswatch/watcher"
)

// refused is a response whose only cluster is invalid.
func refused(name string) []byte {
	m := testutil.SotW(cds.Type.TypeURL(), "bad", "nbad", &cluster{Name: name})
	m.Resources[0].Value = append(m.Resources[0].Value, 0x10, 0x63) // type: 99
	b, err := proto.Marshal(m)
	if err != nil {
		panic(err)
	}
	return b
}

type result struct {
	value *cluster
	err   error
}

func (r *rig) get(ctx context.Context, name string) <-chan result {
	done := make(chan result, 1)
	go func() {
		v, err := watcher.Get(ctx, r.c, cds.Type, name)
		done <- result{v, err}
	}()
	return done
}

// Callers of one name share a subscription, and what is held is given at once.
// spec: ONDEMAND-1 ONDEMAND-4
func TestGetShares(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		var waiting []<-chan result
		for range 100 {
			waiting = append(waiting, r.get(background(), "a"))
		}
		st := r.accept()
		same(t, "names", names(st), []string{"a"})
		r.send(st, "1", "a")
		for _, done := range waiting {
			if got := <-done; got.err != nil || got.value.Name != "a" {
				t.Errorf("Get gave %v, %v", got.value, got.err)
			}
		}
		if n := len(st.Requests()); n != 2 {
			t.Errorf("%d requests, want one and an ACK", n)
		}
		start := time.Now()
		r.srv.SetRefuse(true)
		r.srv.DropConnections() // it is held all the same
		synctest.Wait()
		if v, err := watcher.Get(background(), r.c, cds.Type, "a"); err != nil || v.Name != "a" || time.Since(start) != 0 {
			t.Errorf("a held value: %v, %v after %v", v, err, time.Since(start))
		}
	})
}

// What a watch holds is given without asking for it.
func TestGetHeldByWatch(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		_, err := watcher.WatchAll(background(), r.c, cds.Type, "*", func(batch) {})
		must(t, err)
		st := r.accept()
		r.send(st, "1", "a", "b")
		v, err := watcher.Get(background(), r.c, cds.Type, "b")
		if err != nil || v.Name != "b" {
			t.Errorf("Get gave %v, %v", v, err)
		}
		synctest.Wait()
		if n := len(st.Requests()); n != 2 {
			t.Errorf("%d requests", n)
		}
	})
}

// An absence is an answer, which a later push replaces.
// spec: ONDEMAND-3
func TestGetAbsent(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		done := r.get(background(), "a")
		st := r.accept()
		start := time.Now()
		got := <-done
		if !errors.Is(got.err, client.ErrDoesNotExist) || time.Since(start) != 15*time.Second {
			t.Errorf("after %v Get gave %v", time.Since(start), got.err)
		}
		for _, part := range []string{`"a"`, "node-1", "timeout", r.srv.Target(), "envoy.config.cluster.v3.Cluster"} {
			if !strings.Contains(got.err.Error(), part) {
				t.Errorf("%q is not in %q", part, got.err)
			}
		}
		if _, err := watcher.Get(background(), r.c, cds.Type, "a"); !errors.Is(err, client.ErrDoesNotExist) {
			t.Errorf("known absence: %v", err)
		}
		r.send(st, "1", "a")
		if v, err := watcher.Get(background(), r.c, cds.Type, "a"); err != nil || v.Name != "a" {
			t.Errorf("after the push Get gave %v, %v", v, err)
		}
	})
}

func TestGetRefused(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		done := r.get(background(), "a")
		st := r.accept()
		must(t, st.SendBytes(refused("a")))
		got := <-done
		var re *client.ResourceError
		if !errors.As(got.err, &re) || re.Kind != client.ErrorRejected || re.Version != "bad" {
			t.Errorf("Get of what is refused gave %v", got.err)
		}
	})
}

// A lost connection does not end the waiting; the end of the context names what stood in
// the way.
func TestGetThroughTrouble(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.srv.SetRefuse(true)
		ctx, cancel := context.WithTimeout(background(), time.Minute)
		defer cancel()
		first, patient := r.get(ctx, "a"), r.get(background(), "a")
		got := <-first
		var re *client.ResourceError
		if !errors.Is(got.err, context.DeadlineExceeded) || !errors.As(got.err, &re) || re.Kind != client.ErrorConnection {
			t.Errorf("the end of the context gave %v, want the trouble too", got.err)
		}
		r.srv.SetRefuse(false)
		st := r.accept()
		st.End(nil)
		r.send(r.accept(), "1", "a")
		if got := <-patient; got.err != nil || got.value.Name != "a" {
			t.Errorf("the patient one got %v, %v", got.value, got.err)
		}
	})
}

// A name goes a minute after its last use, not sooner.
// spec: ONDEMAND-4
func TestGetIdle(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		done := r.get(background(), "a")
		st := r.accept()
		r.send(st, "1", "a")
		<-done
		kept := func(want int) {
			t.Helper()
			synctest.Wait()
			if n := len(r.c.Dump()); n != want {
				t.Errorf("%d names are kept, want %d", n, want)
			}
		}
		for range 5 {
			time.Sleep(50 * time.Second)
			if _, err := watcher.Get(background(), r.c, cds.Type, "a"); err != nil {
				t.Errorf("Get: %v", err)
			}
		}
		time.Sleep(time.Minute - time.Millisecond)
		kept(1)
		time.Sleep(time.Second)
		kept(0)
		if n := len(r.srv.Streams()); n != 1 {
			t.Errorf("%d streams for one name in use", n)
		}
	})
}

// Someone who waits keeps a name however long it takes.
func TestGetWaitingIsUse(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.srv.SetRefuse(true)
		short, cancel := context.WithTimeout(background(), time.Second)
		defer cancel()
		first, long := r.get(short, "a"), r.get(background(), "a")
		<-first
		time.Sleep(time.Hour)
		r.srv.SetRefuse(false)
		r.send(r.accept(), "1", "a")
		if got := <-long; got.err != nil {
			t.Errorf("Get: %v", got.err)
		}
	})
}

// A value of no substance is one.
func TestGetNil(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		kind := resource.Custom("type.googleapis.com/test.Any", resource.Options{NameField: 1}, func(resource.Source, []byte) (any, error) { return nil, nil })
		done := make(chan error)
		go func() {
			_, err := watcher.Get(background(), r.c, kind, "a")
			done <- err
		}()
		st := r.accept()
		m := testutil.SotW(kind.TypeURL(), "1", "n1", &cluster{Name: "a"})
		m.Resources[0].TypeUrl = kind.TypeURL()
		must(t, st.Send(m))
		if err := <-done; err != nil {
			t.Errorf("Get of a nil value: %v", err)
		}
	})
}
