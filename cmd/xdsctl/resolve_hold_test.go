package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/xdswatch/xdswatch/cmd/xdsctl/internal/report"
	"github.com/xdswatch/xdswatch/view"
)

// A view may be complete before it is told what --hold names; that value is not the first.
func TestResolveHeldLate(t *testing.T) {
	t.Parallel()
	m := managed(t, shop()...)
	for _, tt := range []struct {
		name string
		then func(*resolver) error
	}{
		{"held", func(r *resolver) error { r.hold("frontend"); return nil }},
		{"released", func(r *resolver) error {
			r.holds["frontend"] = []func(){func() {}}
			return r.release("frontend")
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := resolverOf(t, m, "frontend")
			if err := r.start(t.Context(), view.Root{Type: view.RootCluster, Name: "backend"}, false); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(r.close)
			if err := r.one.Ready(patient(t)); err != nil {
				t.Fatal(err)
			}
			r.onSnapshot(r.one.Snapshot())
			if r.output.ended() {
				t.Fatal("it ends with a value that lacks what is held")
			}
			if err := tt.then(r); err != nil {
				t.Fatal(err)
			}
			select {
			case <-r.output.done:
			case <-patient(t).Done():
				t.Error("it does not end with what is held")
			}
		})
	}
}

// Of two holds of a cluster the release of one is none, and what it is told of is printed once.
func TestResolveReleased(t *testing.T) {
	t.Parallel()
	r := resolverOf(t, managed(t, shop()...), "frontend", "frontend")
	r.once = false
	printed := make(counting, 10)
	r.output = newOutput(printed)
	if err := r.start(t.Context(), view.Root{Type: view.RootCluster, Name: "backend"}, false); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.close)
	if err := r.one.Ready(patient(t)); err != nil {
		t.Fatal(err)
	}
	r.holds["frontend"] = []func(){func() {}, func() {}}
	for i, want := range []int{0, 1} {
		if err := r.release("frontend"); err != nil {
			t.Fatal(err)
		}
		r.onSnapshot(r.one.Snapshot())
		if n := len(printed); n != want {
			t.Errorf("after %d releases %d values are printed, want %d", i+1, n, want)
		}
	}
}

// counting is a printer that counts values.
type counting chan report.Record

func (c counting) Print(r report.Record) error {
	if _, is := r.(report.Config); is {
		c <- r
	}
	return nil
}

// Holds are counted, hold nothing back, and show in a dump.
//
// spec: VIEW-13 VIEW-21
func TestResolveHolds(t *testing.T) {
	t.Parallel()
	m := managed(t, edsCluster("a"), edsCluster("b"), assignment("a", "10.0.0.1"), assignment("b", "10.0.0.2"))
	p := startResolve(t, m.Addr(), "--stdin", "--hold", "never", "--resource-timeout", never, "cds:a")
	ev := p.await("config")
	if ev.names() != "a=ok never=waiting" || ev.Complete {
		t.Fatalf("%+v", ev)
	}
	p.enter("hold b")
	p.enter("hold b")
	for ev.names() != "a=ok b=ok never=waiting" {
		ev = p.await("config")
	}
	if got := ev.Clusters["b"].ReferencedBy; !slices.Equal(got, []string{"hold"}) {
		t.Errorf("referenced by %q", got)
	}
	references := func() string {
		p.enter("dump")
		d := p.await("dump")
		var all []string
		for _, w := range d.Watched {
			if w.Type == clusters {
				all = append(all, fmt.Sprint(w.Name, "=", w.References))
			}
		}
		if d.Config == nil || len(d.Waiting) != 1 || d.Waiting[0].Name != "never" || d.Waiting[0].Blocking {
			t.Errorf("%+v", d)
		}
		return strings.Join(all, " ")
	}
	if got := references(); got != "a=1 b=2 never=1" {
		t.Errorf("references %s", got)
	}
	p.enter("release b")
	if got := references(); got != "a=1 b=1 never=1" {
		t.Errorf("references %s", got)
	}
	p.enter("release b")
	p.enter("release b")
	p.complains(`standard input: "b" is not held`)
	for ev = p.await("config"); ev.names() != "a=ok never=waiting"; {
		ev = p.await("config")
	}
	p.enter("release never")
	for ev = p.await("config"); ev.names() != "a=ok" || !ev.Complete; {
		ev = p.await("config")
	}
	p.enter("hold")
	p.complains(`unknown command "hold"`)
	p.enter("quit")
	p.ends(0)
}
