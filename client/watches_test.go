package client_test

import (
	"cmp"
	"context"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/resource/eds"
)

func watchesOf(c *client.Client) []client.WatchState {
	return slices.SortedFunc(c.Watches(), func(a, b client.WatchState) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
}

// Watches says of each watch and set what it is of, and what it lacks.
func TestWatches(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		ctx := context.Background()
		_, err := r.c.WatchAll(ctx, cds.Type, "*", func(client.Batch[any]) {}) // first: it begins a stream
		must(t, err)
		one, _ := r.watch("a")
		set, err := r.c.NewSet(ctx, cds.Type, func(client.Batch[any]) {})
		must(t, err)
		must(t, set.Add("a", "b"))
		gone, cancel := context.WithCancel(ctx)
		go func() { _, _ = r.c.Get(gone, eds.Type, "e") }()
		synctest.Wait()

		url := cds.Type.TypeURL()
		want := []client.WatchState{
			{Kind: client.WatchCollection, Type: url, Name: "*", Names: 1, Unanswered: 1, Valueless: 1},
			{Kind: client.WatchGet, Type: eds.Type.TypeURL(), Name: "e", Names: 1},
			{Kind: client.WatchOne, Type: url, Name: "a", Names: 1, Unanswered: 1, Valueless: 1},
			{Kind: client.WatchSet, Type: url, Names: 2, Unanswered: 2, Valueless: 2},
		}
		same(t, "before an answer", watchesOf(r.c), want)

		st := r.accept()
		if h := r.c.Health(); len(h.Servers) != 1 || !h.Servers[0].Connected || len(h.Blocked) != 0 {
			t.Errorf("health: %+v", h)
		}
		r.clusters(st, "1", "n1", "a")
		synctest.Wait()
		same(t, "its value is there", watchesOf(r.c)[2].Valueless, 0)
		_, err = r.c.Watch(ctx, cds.Type, "z", func(client.Event[any]) {}, client.InScope("blue"))
		must(t, err)
		same(t, "scope", watchesOf(r.c)[3].Scope, "blue")
		one.Stop()
		cancel()
		same(t, "after Stop", len(watchesOf(r.c)), 4)
		r.c.Close()
		same(t, "after Close", len(watchesOf(r.c)), 0)
		same(t, "after Close", len(r.c.Health().Servers), 0)
	})
}
