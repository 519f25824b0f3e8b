package client_test

import (
	"context"
	"testing"
	"time"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource/cds"
)

// A value that was told before a redirect came stays good until what takes its place has answered, as one
// that another redirect led to; a watch and a set are told alike.
// spec: REDIR-2 ERR-2
func TestValueBeforeRedirect(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.a.put(at("a", "x"), cluster("x", "1"), "1")
		_, one := w.watch(at("a", "x"))
		member := &record{}
		set, err := w.c.NewSet(t.Context(), cds.Type, func(b client.Batch[any]) {
			for _, ev := range b.Events {
				member.hear(ev)
			}
		})
		must(t, err)
		must(t, set.Add(at("a", "x")))
		since := func(want ...string) {
			t.Helper()
			w.since(one, want...)
			w.since(member, want...)
		}
		since("updated a/x 1")

		w.b.down()
		w.a.put(at("a", "x"), redirect(at("b", "y")), "2")
		time.Sleep(5 * time.Second)
		since("ambient error a/x connection")
		must(t, within(time.Second, w.c.ReadyWithValues))
		w.a.put(at("a", "x"), cluster("x", "1"), "3")
		since("updated a/x 3")
		w.a.put(at("a", "x"), redirect(at("b", "y")), "4")
		time.Sleep(5 * time.Second)
		since("ambient error a/x connection")
		w.a.remove(at("a", "x"))
		since("does not exist a/x removed")
	})
}

// So does a name's first answer, if it was a value: no wait for the first fetch begins where a redirect leads.
// spec: DNE-10
func TestFetchTimeoutAfterValue(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.b.mute(at("b", "y"))
		w.a.put(at("a", "x"), cluster("x", "1"), "1")
		rec := &record{}
		_, err := w.c.Watch(context.Background(), cds.Type, at("a", "x"), rec.hear, client.InitialFetchTimeout(5*time.Second))
		must(t, err)
		w.since(rec, "updated a/x 1")
		w.a.put(at("a", "x"), redirect(at("b", "y")), "2")
		time.Sleep(10 * time.Second)
		w.since(rec)
		time.Sleep(10 * time.Second)
		w.since(rec, "does not exist a/x timeout via b/y")
	})
}
