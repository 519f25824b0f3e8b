package view

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource"
	"github.com/xdswatch/xdswatch/resource/cds"
)

// heard are names of clusters as a lazy watch reads them, and what else it got.
func heard(events chan string) func(client.Event[any]) {
	return func(ev client.Event[any]) {
		if ev.Kind != client.EventUpdated {
			return
		}
		l, ok := ev.Value.(*resource.Lazy[*clusterv3.Cluster])
		if !ok {
			events <- fmt.Sprintf("%T", ev.Value)
			return
		}
		c, err := l.Value()
		events <- fmt.Sprintf("%s %v %t", c.GetName(), err, len(l.Raw()) > 0)
	}
}

// A program watches clusters lazily, all or one, and has a view of a cluster on the same client,
// whichever it begins with: each gets its form, also of later changes.
//
// spec: U-19
func TestLazyBesideView(t *testing.T) {
	for _, variant := range []client.Variant{client.VariantSotW, client.VariantDelta} {
		for _, all := range []bool{true, false} {
			for _, viewFirst := range []bool{false, true} {
				t.Run(fmt.Sprintf("variant %d, all %t, view first %t", variant, all, viewFirst), func(t *testing.T) {
					testLazyBesideView(t, variant, all, viewFirst)
				})
			}
		}
	}
}

func testLazyBesideView(t *testing.T, variant client.Variant, all, viewFirst bool) {
	s := newSite(t, variant, false)
	s.set("1", "cds a static:1.1.1.1")
	events := make(chan string, 10)
	lazy := func() {
		t.Helper()
		var err error
		if all {
			_, err = s.c.WatchAll(t.Context(), resource.LazyOf(cds.Type), "*", func(b client.Batch[any]) {
				for _, ev := range b.Events {
					heard(events)(ev)
				}
			})
		} else {
			_, err = s.c.Watch(t.Context(), resource.LazyOf(cds.Type), "a", heard(events))
		}
		must(t, err)
		if got, want := <-events, "a <nil> true"; got != want {
			t.Errorf("the lazy watch has %s, want %s", got, want)
		}
	}
	var v *View
	view := func() {
		t.Helper()
		var err error
		v, err = New(t.Context(), s.c, Root{Type: RootCluster, Name: "a"}, Config{})
		must(t, err)
		must(t, v.Ready(t.Context()))
	}
	if viewFirst {
		view()
		lazy()
	} else {
		lazy()
		view()
	}
	address := func() string { return v.Snapshot().Cluster("a").Message.GetLoadAssignment().String() }
	if !strings.Contains(address(), "1.1.1.1") {
		t.Errorf("the view has %s", address())
	}
	s.set("2", "cds a static:2.2.2.2")
	for changed := v.Changed(); !strings.Contains(address(), "2.2.2.2"); changed = v.Changed() {
		<-changed
	}
	if got, want := <-events, "a <nil> true"; got != want {
		t.Errorf("the lazy watch has the change as %s, want %s", got, want)
	}
}

// A type that the program made itself for the URL is a conflict: of the root New says so.
func TestTypeConflict(t *testing.T) {
	s := newSite(t, client.VariantSotW, true)
	s.set("1", "cds a static:1.1.1.1", "rds r *=a")
	own := resource.With(cds.Type, func(*clusterv3.Cluster) error { return nil })
	_, err := s.c.WatchAll(t.Context(), own, "*", func(client.Batch[any]) {})
	must(t, err)

	v, err := New(t.Context(), s.c, Root{Type: RootCluster, Name: "a"}, Config{})
	if v != nil || !errors.Is(err, client.ErrTypeConflict) || !strings.Contains(err.Error(), "envoy.config.cluster.v3.Cluster") {
		t.Errorf("New of a cluster: %v, %v; want ErrTypeConflict with the type", v, err)
	}
	v, err = New(t.Context(), s.c, Root{Type: RootRoutes, Name: "r"}, Config{})
	must(t, err)
	must(t, v.Ready(t.Context()))
	if e := v.Snapshot().Cluster("a"); e == nil || !errors.Is(e.Err(), client.ErrTypeConflict) {
		t.Errorf("the cluster below routes: %+v; want ErrTypeConflict", e)
	}
}
