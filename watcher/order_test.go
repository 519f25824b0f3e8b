package watcher

import (
	"testing"

	"github.com/xdswatch/xdswatch/client"
)

// Who waited for the first state finds all of its batch in the store, and Changed is then closed by
// the next batch and not by that one.
func TestSyncedIsLast(t *testing.T) {
	for range 2000 {
		s := &Store[string]{asked: "*", synced: make(chan struct{})}
		first := make(chan struct{})
		s.changed.Store(&first)
		done := make(chan struct{})
		go func() {
			defer close(done)
			s.take(Batch[string]{Events: []Event[string]{
				{Kind: client.EventUpdated, Name: "a", Asked: "a", Value: "1"},
				{Kind: client.EventSynced, Name: "*", Asked: "*"},
				{Kind: client.EventUpdated, Name: "b", Asked: "b", Value: "2"},
			}})
		}()
		<-s.synced
		changed, n := s.Changed(), s.Len()
		<-done
		select {
		case <-changed:
			t.Fatal("the batch of the first state closed Changed after Synced")
		default:
		}
		if n != 2 {
			t.Fatalf("the first state has %d values, want 2", n)
		}
	}
}
