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
