package client_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	xdscorev3 "github.com/cncf/xds/go/xds/core/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/testutil"
)

// spec: COLL-1 COLL-3 COLL-4 COLL-5
func TestList(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		url := dir("a", "list")
		w.a.put(at("a", "x"), cluster("x", ""), "1")
		w.b.mute(at("b", "y"))
		w.a.put(url, listing(member(at("a", "x")), inline("e", "5", cluster("e", "")), member(at("b", "y"))), "10")
		watch, rec := w.all(url)
		w.since(rec, "updated a//list#entry=e 5", "updated a/x 1")
		if e := notReady(t, within(time.Second, w.c.Ready), 1, url+" REQUESTED"); e.Lacking[0].Locator != at("b", "y") {
			t.Errorf("ready before all members: %v", e)
		}
		w.b.put(at("b", "y"), cluster("y", ""), "1")
		w.since(rec, "updated b/y 1", "synced a//list")
		must(t, w.c.Ready(t.Context()))
		for _, s := range w.c.Dump() {
			if v, err := s.Value(); err != nil || (v == nil) != (s.Name == url) {
				t.Errorf("the value of %s is %v, %v", s.Name, v, err)
			}
		}
		if v, err := (client.State{Raw: []byte{}}).Value(); v != nil || err != nil {
			t.Errorf("the value of a state of no client is %v, %v", v, err)
		}

		// A directory is one thing, its members are others.
		w.b.put(at("b", "y"), cluster("y", "2"), "2")
		w.since(rec, "updated b/y 2")
		w.a.put(url, listing(inline("e", "5", cluster("e", "")), member(at("c", "z")), member(at("a", "x"))), "11")
		w.since(rec, "does not exist b/y removed", "does not exist c/z removed")
		same(t, "subscribed at b", w.b.subscribed(), nil)
		w.a.put(url, listing(inline("e", "", cluster("e", "6")), member(at("a", "x"))), "12")
		w.since(rec, "updated a//list#entry=e 12")
		w.a.remove(at("a", "x"))
		w.since(rec, "does not exist a/x removed")

		w.a.remove(url)
		w.since(rec, "does not exist a//list#entry=e removed", "does not exist a//list removed")
		w.a.put(url, listing(member(at("b", "y"))), "13")
		w.since(rec, "updated b/y 2", "synced a//list")
		for _, ev := range rec.all() {
			if ev.Type != cds.Type.TypeURL() {
				t.Errorf("an event of type %s", ev.Type)
			}
		}
		watch.Stop()
		w.unwanted()
	})
}

// The last batch of a response says so, of a list as of other collections.
// spec: COLL-5
func TestListLast(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		url, last := dir("a", "list"), false
		w.a.put(url, listing(inline("e", "5", cluster("e", ""))), "10")
		_, err := w.c.WatchAll(t.Context(), cds.Type, url, func(b client.Batch[any]) { last = b.Last })
		must(t, err)
		must(t, w.c.Ready(t.Context()))
		if !last {
			t.Error("the batch that brought the list is not the last of its response")
		}
	})
}

// A list whose name is no URL is one where the program says so. Structured names, globs and the wildcard stay
// what they are.
//
// spec: LEDS-1 COLL-4
func TestListByName(t *testing.T) {
	known := func(c *client.Config) { c.Bootstrap.Authorities = map[string]bootstrap.Authority{"a": {}} }
	inBubble(t, func(t *testing.T, r *rig) {
		watch := func(name string) (*client.Watch, *record) {
			rec := &record{}
			w, err := r.c.WatchAll(t.Context(), cds.Type, name, func(b client.Batch[any]) {
				for _, ev := range b.Events {
					rec.hear(ev)
				}
			}, client.ListByName())
			must(t, err)
			return w, rec
		}
		list, rec := watch("list")
		st := r.accept()
		url := cds.Type.TypeURL() + "Collection"
		r.asked(st, url, "[list]")
		send := func(version string, entries ...*xdscorev3.CollectionEntry) {
			r.send(st, testutil.SotW(url, version, version, testutil.Wrapped("list", "", listing(entries...))))
		}
		send("1", inline("e", "", cluster("e", "")), inline("", "7", cluster("u", "")), member(at("a", "x")))
		r.asked(st, url, "[list] v1 1")
		r.request(st, "cds ["+at("a", "x")+"]")
		rec.heard(t, "updated list#entry=e 1", "updated list#1 7")
		send("2", inline("e", "", cluster("e", "2")))
		rec.heard(t, "updated list#entry=e 1", "updated list#1 7", "updated list#entry=e 2", "does not exist list#1 removed", "synced list")

		list.Stop()
		var want []string
		for _, name := range []string{"*", at("a", "*"), dir("a", "list")} {
			watch(name)
			want = append(want, shortNames.Replace(name))
		}
		watch("") // short for the wildcard
		for _, name := range []string{"some/*", "xdstp://a/other/x"} {
			if _, err := r.c.WatchAll(t.Context(), cds.Type, name, func(client.Batch[any]) {}, client.ListByName()); err == nil {
				t.Errorf("%q is a collection", name)
			}
		}
		synctest.Wait()
		var watched []string
		for _, s := range r.c.Dump() {
			if s.Watched {
				watched = append(watched, shortNames.Replace(s.Name))
			}
		}
		same(t, "watched", watched, want)
	}, known)
}

// An empty list is complete at once, and so is one that comes late.
// spec: COLL-5
func TestEmptyList(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		url := dir("a", "list")
		_, late := w.all(url)
		w.since(late, "does not exist a//list removed")
		must(t, w.c.Ready(t.Context()))
		w.a.put(url, listing(), "1")
		w.since(late, "synced a//list")
		_, second := w.all(url)
		w.since(second, "synced a//list")
		w.a.put(url, listing(inline("e", "", cluster("e", ""))), "2")
		w.since(second, "updated a//list#entry=e 2")
		w.since(late, "updated a//list#entry=e 2")
	})
}

// A list that was lost is synced again when it is back, though it is empty: until then its
// last word stays that it does not exist or has failed.
// spec: COLL-5
func TestListComesBack(t *testing.T) {
	for name, lose := range map[string]func(w *world, url string) (told string){
		"removed": func(w *world, url string) string {
			w.a.remove(url)
			return "does not exist a//list removed"
		},
		"refused": func(w *world, url string) string {
			w.a.put(url, &anypb.Any{TypeUrl: resource.TypePrefix + clusterName + "Collection", Value: []byte{0xff}}, "bad")
			return "failed a//list rejected: not a list collection: the bytes end inside a field"
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				url := dir("a", "list")
				w.a.put(url, listing(inline("e", "", cluster("e", ""))), "1")
				_, rec := w.all(url)
				w.since(rec, "updated a//list#entry=e 1", "synced a//list")
				w.since(rec, "does not exist a//list#entry=e removed", lose(w, url))
				w.a.put(url, listing(), "2")
				w.since(rec, "synced a//list")
				w.a.put(url, listing(), "3")
				w.since(rec)

				// With members it waits for them, as the first time.
				lose(w, url)
				w.b.mute(at("b", "y"))
				w.a.put(url, listing(member(at("b", "y"))), "4")
				rec.events = nil
				w.b.put(at("b", "y"), cluster("y", ""), "1")
				w.since(rec, "updated b/y 1", "synced a//list")
			}, failOnDataErrors)
		})
	}
}

// What is wrong with one member is told of it, and to the server, and hides nobody else.
// spec: ACK-6 COLL-4 COLL-5
func TestListOfBadMembers(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		url := dir("a", "list")
		for _, id := range []string{"good", "twice"} {
			w.a.put(at("a", id), cluster(id, ""), "1")
		}
		unparsed := &xdscorev3.CollectionEntry{ResourceSpecifier: &xdscorev3.CollectionEntry_Locator{
			Locator: &xdscorev3.ResourceLocator{Id: "no-type"},
		}}
		w.a.put(url, listing(
			member(at("a", "twice")), inline("two", "", cluster("1", "")), inline("none", "", nil), // 0 to 2
			member(url), member(dir("a", "other")), member(at("a", "glob/*")), // 3 to 5
			member("xdstp://a/envoy.config.listener.v3.Listener/l"), member(at("nowhere", "n")), member("http://a/"+clusterName+"/h"), // 6 to 8
			unparsed, &xdscorev3.CollectionEntry{}, inline("wrong", "", redirect("http://a/"+clusterName+"/h")), // 9 to 11
			inline("type", "", &anypb.Any{TypeUrl: "type.googleapis.com/other"}), inline("a b", "", cluster("a", "")), // 12, 13
			inline("invalid", "", cluster("", "")), inline("", "", cluster("unnamed", "")), // 14, 15
			member(at("a", "twice")), inline("two", "", cluster("2", "")), inline("good", "", cluster("good", "")), member(at("a", "good")),
		), "1")
		_, rec := w.all(url)
		synctest.Wait()
		got := map[string]string{}
		for _, ev := range rec.all() {
			line := ev.Kind.String()
			var re *client.ResourceError
			if errors.As(ev.Err, &re) {
				line += fmt.Sprint(" ", re.Kind, ": ", re.Err)
				if re.Name != ev.Name || re.Server != w.a.srv.Target() {
					t.Errorf("error %v of %q", re, ev.Name)
				}
			}
			name := shortNames.Replace(ev.Name)
			if got[name] != "" {
				t.Errorf("%s: %s, then %s", name, got[name], line)
			}
			got[name] = shortNames.Replace(line)
		}
		want := map[string]string{
			"a/twice":            "failed rejected: the collection lists it more than once",
			"a//list#entry=two":  "failed rejected: the collection lists it more than once",
			"a//list#entry=none": `failed rejected: the inline entry "none": it holds no resource`,
			"a//list#3":          "it is a list collection",
			"a//other":           "it is a list collection",
			"a/glob/*":           "which stands for a collection",
			"xdstp://a/envoy.config.listener.v3.Listener/l": "its type segment is another type",
			"xdstp://nowhere/" + clusterName + "/n":         `failed config: the member cannot be followed: resource name "xdstp://nowhere/` + clusterName + `/n": authority "nowhere" is not in the bootstrap`,
			"http://a/" + clusterName + "/h":                "only locators of the scheme xdstp are followed",
			"a//list#9":                                     "its locator: xdstp:",
			"a//list#10":                                    "failed rejected: it holds neither a locator nor an inline entry",
			"a//list#entry=wrong":                           "only locators of the scheme xdstp are followed",
			"a//list#entry=type":                            `failed rejected: the inline entry "type": type URL "type.googleapis.com/other" is not`,
			"a//list#entry=a b":                             `failed rejected: the inline entry "a b": its name has a character`,
			"a//list#entry=invalid":                         "not a valid",
			"a//list#15":                                    "updated",
			"a//list#entry=good":                            "updated",
			"a/good":                                        "updated",
			"a//list":                                       "synced",
		}
		for name, line := range want {
			if !strings.Contains(got[name], line) {
				t.Errorf("%s: %s, want %s", name, got[name], line)
			}
			delete(got, name)
		}
		if len(got) > 0 {
			t.Errorf("also: %v", got)
		}
		refusals := w.a.refusals()
		for i, bad := range []bool{2: true, 3: true, 4: true, 5: true, 6: true, 8: true, 9: true, 10: true, 11: true, 12: true, 13: true, 14: true, 16: true, 17: true, 19: false} {
			if len(refusals) != 1 || strings.Contains(refusals[0], fmt.Sprintf("a//list: entry %d: ", i)) != bad {
				t.Errorf("entry %d is bad: %v; refused %q", i, bad, refusals)
			}
		}
		same(t, "subscribed", w.a.subscribed(), []string{"a//list", "a/good"})

		// The same again is no news, and what is repaired is.
		rec.events = nil
		entries := []*xdscorev3.CollectionEntry{
			member(at("a", "twice")), inline("two", "", cluster("1", "")), inline("good", "", cluster("good", "")), member(at("a", "good")),
			member(at("a", "good")), inline("good", "", cluster("gooder", "")), member(at("nowhere", "n")),
		}
		w.a.put(url, listing(entries...), "2")
		var told []string
		for _, line := range lines(rec.all()) {
			if !strings.HasPrefix(line, "does not exist") {
				told = append(told, shortNames.Replace(line))
			}
		}
		same(t, "told", told, []string{
			"updated a//list#entry=two 2", "ambient error a//list#entry=good rejected: the collection lists it more than once",
			"ambient error a/good rejected: the collection lists it more than once", "updated a/twice 1",
		})
		rec.events = nil
		w.a.put(url, listing(entries[:4]...), "3")
		w.since(rec, "recovered a//list#entry=good", "recovered a/good", "does not exist xdstp://nowhere/"+clusterName+"/n removed")
	})
}

// A directory that does not parse is refused, and takes no good one away.
// spec: COLL-2
func TestBadDirectory(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		url := dir("a", "list")
		bad := func(value ...byte) *anypb.Any {
			return &anypb.Any{TypeUrl: resource.TypePrefix + clusterName + "Collection", Value: value}
		}
		w.a.put(url, bad(0x0a, 9, 1), "1")
		_, rec := w.all(url)
		synctest.Wait()
		if ev := rec.last(); ev.Kind != client.EventFailed || ev.Name != url || !strings.Contains(ev.Err.Error(), "not a list collection") {
			t.Errorf("heard %v", lines(rec.all()))
		}
		rec.events = nil
		w.a.put(url, listing(inline("e", "", cluster("e", ""))), "2")
		w.since(rec, "updated a//list#entry=e 2", "synced a//list")
		for _, value := range [][]byte{{0x08, 1}, {0x0a, 1, 0xff}, {0x0a, 3, 0x12, 1, 0xff}, {0x0a, 5, 0x12, 3, 0x1a, 1, 0xff}, {0xff}} {
			w.a.put(url, bad(value...), "3")
			if ev := rec.last(); ev.Kind != client.EventAmbientError || ev.Name != url || ev.Err == nil {
				t.Errorf("%x: heard %v", value, lines(rec.all()))
			}
		}
		if n := len(w.a.refusals()); n != 6 {
			t.Errorf("%d refusals", n)
		}
	})
}

// The published ClusterCollection has one entry, and xRFC TP1 has texts for locators, which are read as messages
// are: the last value of a repeated context parameter holds.
// spec: COLL-2 XDSTP-5
func TestListForms(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.a.put(at("a", "x"), cluster("x", ""), "1")
		w.a.put(dir("a", "one"), &clusterv3.ClusterCollection{Entries: member(at("a", "x"))}, "1")
		first, one := w.all(dir("a", "one"))
		w.since(one, "updated a/x 1", "synced a//one")
		first.Stop() // so that nothing of the next list is held
		same(t, "subscribed", w.a.subscribed(), nil)

		nested := func(num protowire.Number, b []byte) []byte {
			return protowire.AppendBytes(protowire.AppendTag(nil, num, protowire.BytesType), b)
		}
		bare, message := nested(1, []byte(at("a", "x"))), nested(1, nested(1, []byte(at("a", "y"))))
		w.a.put(dir("a", "texts"), &anypb.Any{
			TypeUrl: resource.TypePrefix + clusterName + "Collection", Value: slices.Concat(nested(1, bare), nested(1, message), []byte{0x10, 7}),
		}, "1")
		_, texts := w.all(dir("a", "texts"))
		w.since(texts, "updated a/x 1", "does not exist a/y removed", "synced a//texts")

		w.a.put(at("a", "x")+"?k=2", cluster("x", ""), "2")
		w.a.put(dir("a", "twice"), &anypb.Any{
			TypeUrl: resource.TypePrefix + clusterName + "Collection", Value: nested(1, nested(1, []byte(at("a", "x")+"?k=1&k=2"))),
		}, "2")
		_, twice := w.all(dir("a", "twice"))
		w.since(twice, "updated a/x?k=2 2", "synced a//twice")
	})
}

// Lists and their members may be redirected, have alternatives, and be entries of lists.
// spec: REDIR-2 ALT-1 ENTRY-1
func TestListFollows(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.a.put(dir("a", "list"), redirect(dir("b", "list")), "1")
		w.c2.srv.SetRefuse(true)
		w.b.put(dir("b", "list"), listing(
			member(at("a", "x")), member(withAlt(at("c", "z"), at("b", "y"))), inline("i", "", redirect(at("b", "y"))),
			member(dir("b", "other")+"#entry=o"),
		), "2")
		w.a.put(at("a", "x"), redirect(at("b", "y")), "3")
		w.b.put(at("b", "y"), cluster("y", ""), "4")
		w.b.put(dir("b", "other"), listing(inline("o", "", cluster("o", ""))), "5")
		watch, rec := w.all(dir("a", "list"))
		synctest.Wait()
		var got []string
		for _, line := range lines(rec.all()) {
			got = append(got, shortNames.Replace(line))
		}
		slices.Sort(got)
		same(t, "heard", got, []string{
			"ambient error c/z#alt=b/y connection via b/y", "synced a//list via b//list",
			"updated a//list#entry=i 4 via b/y", "updated a/x 4 via b/y", "updated b//other#entry=o 5", "updated c/z#alt=b/y 4 via b/y",
		})
		rec.events = nil
		w.b.put(dir("b", "list"), listing(inline("i", "", cluster("i", ""))), "6")
		w.since(rec, "updated a//list#entry=i 6", "does not exist a/x removed", "does not exist b//other#entry=o removed",
			"does not exist c/z#alt=b/y removed")
		w.b.remove(dir("b", "list"))
		w.since(rec, "does not exist a//list#entry=i removed", "does not exist a//list removed via b//list")
		watch.Stop()
		w.unwanted()
	})
}

// Trouble of a server is told of the collection and of its members there, and keeps
// nothing from being complete.
// spec: COLL-5 ERR-1
func TestListTrouble(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		url := dir("a", "list")
		w.b.srv.SetRefuse(true)
		w.a.put(url, listing(member(at("b", "y")), inline("e", "", cluster("e", ""))), "1")
		_, rec := w.all(url)
		w.since(rec, "updated a//list#entry=e 1", "failed b/y connection", "synced a//list")
		must(t, w.c.Ready(t.Context()))
		w.a.down()
		time.Sleep(5 * time.Second)
		w.since(rec, "ambient error a//list connection")
		w.a.srv.SetRefuse(false)
		time.Sleep(time.Minute)
		synctest.Wait()
		if ev := rec.last(); ev.Name != at("b", "y") && ev.Err != nil {
			t.Errorf("heard %v", lines(rec.all()))
		}
	})
}

// What is wrong with the list while its members are sought is told after it is synced, also
// to who comes later.
// spec: COLL-5 ERR-1
func TestListTroubleWaits(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		url := dir("a", "list")
		w.b.mute(at("b", "y"))
		w.a.put(url, listing(member(at("b", "y"))), "1")
		_, rec := w.all(url)
		w.since(rec)
		w.a.down()
		time.Sleep(5 * time.Second)
		_, late := w.all(url)
		w.since(rec)
		w.b.put(at("b", "y"), cluster("y", ""), "1")
		w.since(rec, "updated b/y 1", "synced a//list", "ambient error a//list connection")
		w.since(late, "updated b/y 1", "synced a//list", "ambient error a//list connection")
	})
}

// Ten thousand members cost a few requests, and a change of one costs one.
func TestListOfMany(t *testing.T) {
	if testing.Short() {
		t.Skip("long: a long list")
	}
	inWorld(t, func(t *testing.T, w *world) {
		const n = 10_000
		var entries []*xdscorev3.CollectionEntry
		w.b.srv.SetHoldDial(true)
		for i := range n {
			w.b.held[at("b", fmt.Sprint(i))] = wrapped(at("b", fmt.Sprint(i)))
			entries = append(entries, member(at("b", fmt.Sprint(i))))
		}
		for i := range n {
			entries = append(entries, inline(fmt.Sprint(i), "1", cluster("i", "")))
		}
		url := dir("a", "many")
		w.a.put(url, listing(entries...), "1")
		updated := map[string]bool{}
		synced := 0
		watch, err := w.c.WatchAll(context.Background(), cds.Type, url, func(b client.Batch[any]) {
			for ev := range b.Changed() {
				updated[ev.Name] = true
			}
			if b.Synced() {
				synced = len(updated)
			}
		})
		must(t, err)
		synctest.Wait()
		w.b.srv.SetHoldDial(false)
		must(t, w.c.Ready(t.Context()))
		if synced != 2*n {
			t.Errorf("synced after %d members, want %d", synced, 2*n)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		before := len(w.b.srv.Requests()) // with the last ACK
		if before > 5 {
			t.Errorf("%d requests for the members", before)
		}
		w.a.put(url, listing(entries[1:]...), "2")
		time.Sleep(time.Second)
		synctest.Wait()
		if got := len(w.b.srv.Requests()) - before; got != 1 {
			t.Errorf("%d requests for one that is gone", got)
		}
		watch.Stop()
		w.unwanted()
	})
}
