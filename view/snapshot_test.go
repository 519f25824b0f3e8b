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
