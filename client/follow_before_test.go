package client_test

import (
	"context"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/testutil"
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

// So does the value of a wildcard's member. A watch that begins after the redirect was told of none.
// spec: REDIR-2 ERR-2
func TestMemberBeforeRedirect(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		say := func(st *testutil.Stream, version string, r proto.Message) {
			members := testutil.Delta(cds.Type.TypeURL(), version, nil)
			members.Resources = append(members.Resources, testutil.Wrapped(at("a", "x"), version, r))
			w.send(st, members)
		}
		_, rec := w.all("*")
		st := w.accept()
		say(st, "1", cluster("x", "1"))
		w.since(rec, "updated a/x 1", "synced *")
		w.b.down()
		say(st, "2", redirect(at("b", "y")))
		time.Sleep(5 * time.Second)
		w.since(rec, "ambient error a/x connection")
		_, late := w.all("*")
		w.since(late, "failed a/x connection via b/y", "synced *")
		say(st, "3", cluster("x", "3"))
		w.since(rec, "updated a/x 3")
		w.since(late, "updated a/x 3")
		say(st, "4", redirect(at("b", "y")))
		time.Sleep(5 * time.Second)
		w.since(rec, "ambient error a/x connection")
		w.since(late, "ambient error a/x connection")
	})
}
