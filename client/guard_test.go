package client_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/testutil"
)

// spec: CFG-5
func TestReadyMadeGuards(t *testing.T) {
	for _, tt := range []struct {
		guard      client.Guard
		held, left int
		want       string
	}{
		{client.MinResources(2), 0, 2, ""},
		{client.MinResources(2), 5, 1, "the response would leave 1 resources, and at least 2 are wanted"},
		{client.MinResources(0), 5, 0, ""},
		{client.MaxShrink(0.5), 0, 0, ""},
		{client.MaxShrink(0.5), 4, 2, ""},
		{client.MaxShrink(0.5), 4, 9, ""},
		{client.MaxShrink(0.5), 4, 1, "the response would leave 1 of 4 resources, which is a loss of more than 50 %"},
		{client.MaxShrink(0), 4, 3, "the response would leave 3 of 4 resources, which is a loss of more than 0 %"},
		{client.MaxShrink(1), 4, 0, ""},
	} {
		got := ""
		if err := tt.guard(&client.Proposal{Held: tt.held, Left: tt.left}); err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("%d of %d: %q, want %q", tt.left, tt.held, got, tt.want)
		}
	}
}

// A guard sees the whole of what would happen, its error reaches server and watches, and
// types that have none are nobody's business.
//
// spec: CFG-5 ACK-3
func TestGuard(t *testing.T) {
	errNo := errors.New("not now")
	var seen []client.Proposal
	refuse := false
	guard := func(p *client.Proposal) error {
		seen = append(seen, *p)
		if refuse {
			return errNo
		}
		return nil
	}
	inBubble(t, func(t *testing.T, r *rig) {
		_, err := r.c.WatchAll(context.Background(), cds.Type, "*", func(client.Batch[any]) {})
		must(t, err)
		_, rec := r.watch("a") // after the wildcard, which would take a new stream if the name was sent
		st := r.accept()
		r.latest(st, "cds []")
		r.clusters(st, "1", "n1", "a", "b", "c")
		refuse = true
		r.send(st, testutil.SotW(cds.Type.TypeURL(), "2", "n2", cluster("a", "2"), cluster("d", "2"), invalid("b")))
		synctest.Wait()
		rec.heard(t, "updated a 1", "ambient error a rejected: not now")
		if !errors.Is(rec.last().Err, errNo) {
			t.Errorf("the watch's error is %v, which does not wrap the guard's", rec.last().Err)
		}
		r.latest(st, "cds [] v1 n2 error: not now")
		if len(seen) != 2 {
			t.Fatalf("the guard was asked %d times, want 2", len(seen))
		}
		p := seen[1]
		var changed []string
		for _, ch := range p.Changed {
			changed = append(changed, ch.Name+word(ch.New, " new"))
			if ch.Value == nil || len(ch.Raw) == 0 {
				t.Errorf("%s has no value", ch.Name)
			}
		}
		same(t, "changed", changed, []string{"a", "d new"})
		same(t, "removed", p.Removed, []string{"c"})
		same(t, "numbers", []int{p.Held, p.Left, p.Invalid}, []int{3, 3, 1})
		same(t, "whose", []string{p.Type, p.Server, p.Version}, []string{cds.Type.TypeURL(), r.srv.Target(), "2"})
	}, func(c *client.Config) {
		c.Guards = map[string][]client.Guard{cds.Type.TypeURL(): {nil, guard}, "type.googleapis.com/other": {client.MinResources(100)}}
	})
}

// A guard that panics refuses, as does one whose error says nothing, and one that is slow holds up events and answers
// but nothing else.
func TestGuardMisbehaves(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.watch("a")
		st := r.accept()
		r.clusters(st, "1", "n1", "a")
		r.latest(st, "cds [a] n1 error: the response is refused")
	}, func(c *client.Config) {
		c.Guards = map[string][]client.Guard{cds.Type.TypeURL(): {func(*client.Proposal) error { return errors.New("") }}}
	})
	inBubble(t, func(t *testing.T, r *rig) {
		r.watch("a")
		st := r.accept()
		r.clusters(st, "1", "n1", "a")
		r.latest(st, "cds [a] n1 error: the guard panicked: no")
		r.log.holds(t, "a guard panicked")
	}, func(c *client.Config) {
		c.Guards = map[string][]client.Guard{cds.Type.TypeURL(): {func(*client.Proposal) error { panic("no") }}}
	})
	var hold chan struct{}
	inBubble(t, func(t *testing.T, r *rig) {
		hold = make(chan struct{})
		_, rec := r.watch("a")
		st := r.accept()
		r.clusters(st, "1", "n1", "a")
		r.quiet(st, 1)
		rec.heard(t)
		same(t, "dump", len(r.c.Dump()), 1)
		close(hold)
		rec.heard(t, "updated a 1")
		r.latest(st, "cds [a] v1 n1")
	}, func(c *client.Config) {
		c.Guards = map[string][]client.Guard{cds.Type.TypeURL(): {func(*client.Proposal) error { <-hold; return nil }}}
	})
}

// A guard of a large response is asked once, when all of it is decoded.
//
// spec: CFG-5
func TestGuardOfManyChunks(t *testing.T) {
	asked := 0
	inBubble(t, func(t *testing.T, r *rig) {
		asked = 0
		updates := 0
		_, err := r.c.WatchAll(context.Background(), cds.Type, "*", func(b client.Batch[any]) {
			for range b.Changed() {
				updates++
			}
		})
		must(t, err)
		st := r.accept()
		var names []string
		for i := range 2000 {
			names = append(names, strings.Repeat("x", i%7)+string(rune('a'+i%26))+string(rune('0'+i/26)))
		}
		r.clusters(st, "1", "n1", names...)
		r.latest(st, "cds [] v1 n1")
		if asked != 1 || updates != 2000 {
			t.Errorf("asked %d times, %d updates", asked, updates)
		}
	}, func(c *client.Config) {
		c.Guards = map[string][]client.Guard{cds.Type.TypeURL(): {func(p *client.Proposal) error {
			asked++
			return client.MinResources(2000)(p)
		}}}
	})
}

// A deletion that a guard refuses is told: the watch hears of it, and the dump and the gauges
// say that the server's word was refused, until it takes it back.
//
// spec: U-2
func TestGuardKeepsWhatIsDeleted(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		_, err := r.c.WatchAll(context.Background(), cds.Type, "*", func(client.Batch[any]) {})
		must(t, err)
		_, rec := r.watch("b") // after the wildcard, which would take a new stream if the name was sent
		st := r.accept()
		r.clusters(st, "1", "n1", "a", "b")
		r.send(st, testutil.SotW(cds.Type.TypeURL(), "2", "n2", cluster("a", "1")))
		synctest.Wait()
		rec.heard(t, "updated b 1", "ambient error b rejected: "+lost)
		if re, ok := rec.last().Err.(*client.ResourceError); !ok || re.Kind != client.ErrorRejected || re.Version != "2" {
			t.Errorf("the error is %v", rec.last().Err)
		}
		states := func() (nacked []string) {
			for _, s := range r.c.Dump() {
				if s.Status == "NACKED" {
					nacked = append(nacked, s.Name)
				}
			}
			for _, n := range r.c.Gauges().Resources {
				if n.State == client.CacheNackedCached {
					nacked = append(nacked, string(n.State))
				}
			}
			return nacked
		}
		same(t, "refused", states(), []string{"b", "nacked_but_cached"})
		r.send(st, testutil.SotW(cds.Type.TypeURL(), "3", "n3", cluster("a", "1"), cluster("b", "1")))
		synctest.Wait()
		rec.heard(t, "updated b 1", "ambient error b rejected: "+lost, "recovered b")
		same(t, "refused in the end", states(), nil)
	}, func(c *client.Config) {
		c.Guards = map[string][]client.Guard{cds.Type.TypeURL(): {client.MaxShrink(0)}}
	})
}

const lost = "the response would leave 1 of 2 resources, which is a loss of more than 0 %"
