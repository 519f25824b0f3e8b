package view

import (
	"errors"
	"testing"
)

// The note of a cluster joins that of the listener and of the routes with its own.
//
// spec: VIEW-26
func TestNote(t *testing.T) {
	l, r, c := errors.New("listener"), errors.New("routes"), errors.New("cluster")
	s := &Snapshot{Listener: &Listener{Note: l}, Routes: []*RouteConfig{{Note: r}}}
	note := s.Note(&Cluster{more: &clusterMore{note: c}})
	for _, want := range []error{l, r, c} {
		if !errors.Is(note, want) {
			t.Errorf("%q lacks %q", note, want)
		}
	}
	if err := (&Snapshot{}).Note(&Cluster{}); err != nil {
		t.Errorf("without trouble: %v", err)
	}
}

// A cluster that was deleted, kept, and sent again as it was has no error left.
func TestWatchedAfterDeletion(t *testing.T) {
	d := newDriver(t, []string{"rds", "r"}, nil)
	for _, step := range []string{"start", "rds r 1 *=a", "cds a 1 static:1.1.1.1", "gone cds a", "cds a 2 static:1.1.1.1"} {
		d.run(step)
	}
	for _, w := range d.core.watched() {
		if w.Err != nil || w.Status != StatusOK {
			t.Errorf("%s %q is %v with the error %v", w.Type, w.Name, w.Status, w.Err)
		}
	}
}

// Why a cluster has no endpoint for a request: its own error, else the reason with the trouble that is
// told of it, or with the node ID.
//
// spec: VIEW-26
func TestWhy(t *testing.T) {
	d := newDriver(t, []string{"lds", "l"}, nil)
	why := func(want string, inputs ...string) {
		t.Helper()
		for _, input := range inputs {
			d.run(input)
		}
		if got := d.core.snapshot.Why(d.core.snapshot.Cluster("a"), "none is healthy").Error(); got != want {
			t.Errorf("after %q: %s, want %s", inputs, got, want)
		}
	}
	why(`cluster "a": none is healthy (node "n")`, "start", "lds l 1 rds:r", "rds r 1 *=a", "cds a 1 eds", "eds a 1 1.1.1.1")
	why(`cluster "a": none is healthy (node "n")`, "eds a 2") // the reason says that there are no localities
	why(`cluster "a": none is healthy: xds: envoy.config.endpoint.v3.ClusterLoadAssignment "a" for node "n": rejected: no such thing
the assignment has no localities`, "refused eds a")
	why(`xds: envoy.config.cluster.v3.Cluster "a" for node "n": rejected: no such thing`, "bad cds a")
	if got := d.core.snapshot.Why(&Cluster{Name: "b"}, "").Error(); got != `cluster "b": it has no endpoints (node "n")` {
		t.Error(got)
	}
}
