package client_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource/cds"
)

// A dump lists, and gauges count, nothing that was stopped before, however much was and however soon.
// spec: P-6
func TestDumpAfterStop(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		names := manyNames(1000)
		var watches []*client.Watch
		for _, name := range names {
			w, _ := r.watch(name)
			watches = append(watches, w)
		}
		set, err := r.c.NewSet(context.Background(), cds.Type, func(client.Batch[any]) {})
		must(t, err)
		must(t, set.Add(names...))
		r.clusters(r.accept(), "1", "n1", names...)
		set.Remove(names[1:]...)
		for i, w := range watches {
			if w.Stop(); i%100 == 0 {
				synctest.Wait() // until some of it was told to the server
			}
		}
		same(t, "counted", counts(r.c.Gauges()), []string{`"#old" cds acked 1`})
		same(t, "listed", keptNames(r.c), names[0])
		set.Stop()
		same(t, "counted", counts(r.c.Gauges()), nil)
		same(t, "listed", keptNames(r.c), "")
	})
}
