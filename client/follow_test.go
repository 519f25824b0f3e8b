package client_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	xdscorev3 "github.com/cncf/xds/go/xds/core/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/testutil"
)

// A name that had its first answer has no initial fetch timeout any more, wherever it is redirected.
// spec: DNE-10
func TestFetchTimeoutBeforeRedirect(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.b.mute(at("b", "y"))
		w.a.put(at("a", "x"), redirect(at("b", "y")), "r1")
		rec := &record{}
		_, err := w.c.Watch(t.Context(), cds.Type, at("a", "x"), rec.hear, client.InitialFetchTimeout(5*time.Second))
		must(t, err)
		time.Sleep(10 * time.Second)
		w.since(rec, "failed a/x timeout via b/y")
		w.b.put(at("b", "y"), cluster("y", "1"), "1")
		w.since(rec, "updated a/x 1 via b/y")
		w.c2.mute(at("c", "z"))
		w.a.put(at("a", "x"), redirect(at("c", "z")), "r2")
		time.Sleep(10 * time.Second)
		w.since(rec)
		time.Sleep(10 * time.Second)
		w.since(rec, "does not exist a/x timeout via c/z")
	})
}

// spec: REDIR-1 REDIR-2 REDIR-3
func TestRedirect(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.a.put(at("a", "x"), redirect(at("b", "y")), "r1")
		w.b.put(at("b", "y"), cluster("y", "1"), "1")
		watch, rec := w.watch(at("a", "x"))
		w.since(rec, "updated a/x 1 via b/y")
		w.b.put(at("b", "y"), cluster("y", "2"), "2")
		w.since(rec, "updated a/x 2 via b/y")
		var dump []string
		for _, s := range w.c.Dump() {
			dump = append(dump, shortNames.Replace(s.Name+" "+s.Redirect))
			if v, err := s.Value(); err != nil || (v == nil) != (s.Redirect != "") {
				t.Errorf("the value of %s is %v, %v", s.Name, v, err)
			}
		}
		same(t, "dump", dump, []string{"a/x b/y", "b/y "})

		// A new target takes over when it answers; until then the old value is good.
		w.c2.mute(at("c", "z"))
		w.a.put(at("a", "x"), redirect(at("c", "z")), "r2")
		w.b.put(at("b", "y"), cluster("y", "3"), "3")
		w.since(rec)
		w.c2.put(at("c", "z"), cluster("z", "1"), "1")
		w.since(rec, "updated a/x 1 via c/z")
		same(t, "subscribed at b", w.b.subscribed(), nil)
		w.c2.remove(at("c", "z"))
		w.since(rec, "does not exist a/x removed via c/z")
		w.c2.put(at("c", "z"), cluster("z", "2"), "2")
		w.since(rec, "updated a/x 2 via c/z")

		// A real resource takes the redirect's place.
		w.a.put(at("a", "x"), cluster("x", "7"), "7")
		w.since(rec, "updated a/x 7")
		same(t, "subscribed at c", w.c2.subscribed(), nil)
		w.a.put(at("a", "x"), redirect(at("b", "y")), "r3")
		w.since(rec, "updated a/x 3 via b/y")
		w.a.remove(at("a", "x"))
		w.since(rec, "does not exist a/x removed")
		same(t, "refused", append(w.a.refusals(), w.b.refusals()...), nil)
		w.a.put(at("a", "x"), redirect(at("b", "y")), "r4")
		watch.Stop()
		w.unwanted()
	})
}

// A handler has one call at a time, also while the server of its name and the server that the name is redirected to both have news.
// spec: REDIR-2
func TestRedirectedHandlerHasOneCall(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.a.put(at("a", "x"), redirect(at("b", "y")), "r1")
		w.b.put(at("b", "y"), cluster("y", "1"), "1")
		var gate gate
		gate.shut()
		var calls, most atomic.Int32
		rec := &record{}
		_, err := w.c.Watch(context.Background(), cds.Type, at("a", "x"), func(ev client.Event[any]) {
			most.Store(max(most.Load(), calls.Add(1)))
			defer calls.Add(-1)
			rec.hear(ev)
			gate.pass(nil)
		})
		must(t, err)
		w.since(rec, "updated a/x 1 via b/y")
		w.a.put(at("a", "x"), cluster("x", "7"), "7")
		w.since(rec)
		gate.open()
		w.since(rec, "updated a/x 7")
		if most.Load() != 1 {
			t.Errorf("%d calls ran at once", most.Load())
		}
	})
}

// The text form of a locator is one too, and so is a redirect in a wrapper of the state of
// the world.
// spec: REDIR-1
func TestRedirectForms(t *testing.T) {
	twoServers(t, func(t *testing.T, r *rig, other *testutil.Server) {
		name := "xdstp://same/" + clusterName + "/x"
		_, rec := r.watch(name)
		st := r.accept()
		text := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), otherName)
		r.send(st, testutil.SotW(cds.Type.TypeURL(), "1", "n1",
			testutil.Wrapped(name, "1", &anypb.Any{TypeUrl: locatorURL, Value: text})))
		r.latest(st, "cds ["+name+"] v1 n1")
		ost, err := other.Accept(t.Context())
		must(t, err)
		r.send(ost, testutil.SotW(cds.Type.TypeURL(), "7", "m1", testutil.Wrapped(otherName, "", cluster("o", ""))))
		rec.heard(t, "updated "+name+" 7 via "+otherName)
	})
}

const locatorURL = resource.TypePrefix + "xds.core.v3.ResourceLocator"

// An old-style name has no redirects, and a locator without a wrapper has no name.
// spec: REDIR-1
func TestNoRedirect(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		_, rec := r.watch("a")
		st := r.accept()
		r.send(st, testutil.SotW(cds.Type.TypeURL(), "1", "n1", testutil.Wrapped("a", "1", redirect(at("a", "x"))), redirect(at("a", "x"))))
		mismatch := `type URL "` + locatorURL + `" does not match the response's "` + cds.Type.TypeURL() + `"`
		rec.heard(t, "failed a rejected: "+mismatch)
		r.latest(st, "cds [a] n1 error: resource index 1: "+mismatch+"; resource index 0: a: "+mismatch)
	})
}

// A redirect that cannot be one of the type is refused like any bad resource, and takes no
// good value away.
// spec: REDIR-1 REDIR-2
func TestBadRedirects(t *testing.T) {
	file := &xdscorev3.ResourceLocator{Scheme: xdscorev3.ResourceLocator_FILE, Id: "etc/x"}
	tests := []struct {
		what string
		to   proto.Message
		want string
	}{
		{"no bytes of one", &anypb.Any{TypeUrl: locatorURL, Value: []byte{0xff}}, "does not parse"},
		{"no URL", &anypb.Any{TypeUrl: locatorURL, Value: append([]byte{0x0a, 3}, "abc"...)}, "none of xdstp, http and file"},
		{"another directive", &anypb.Any{TypeUrl: locatorURL, Value: append([]byte{0x0a, 15}, "xdstp://a/T/b#c"...)}, "neither alt= nor entry="},
		{"no directive", &xdscorev3.ResourceLocator{ResourceType: clusterName, Directives: []*xdscorev3.ResourceLocator_Directive{{}}}, "neither alt nor entry"},
		{"another type", redirect("xdstp://a/envoy.config.listener.v3.Listener/x"), "its type segment is another type"},
		{"a list", redirect(dir("a", "x")), "it is a list collection"},
		{"an entry of no list", redirect(at("a", "x") + "#entry=y"), "its type segment is another type"},
		{"a glob", redirect(at("a", "x/*")), "which stands for a collection"},
		{"no type", &xdscorev3.ResourceLocator{Id: "x"}, "type"},
		{"another scheme", redirect("http://a/" + clusterName + "/x"), "only locators of the scheme xdstp"},
		{"a file", file, "only locators of the scheme xdstp"},
		{"an unknown scheme", &xdscorev3.ResourceLocator{Scheme: 9, ResourceType: clusterName}, "ResourceLocator.scheme: 9 is not defined"},
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.a.put(at("a", "x"), tt.to, "1")
				_, rec := w.watch(at("a", "x"))
				synctest.Wait()
				ev := rec.last()
				if ev.Kind != client.EventFailed || !strings.HasPrefix(trouble(ev.Err), "rejected: ") || !strings.Contains(ev.Err.Error(), tt.want) {
					t.Errorf("%v %v, want that %q", ev.Kind, ev.Err, tt.want)
				}
				if got := w.a.refusals(); len(got) != 1 || !strings.Contains(got[0], tt.want) {
					t.Errorf("refused %q, want that %q", got, tt.want)
				}
				if s := w.c.Dump()[0]; s.Refused == nil || s.Refused.Type != locatorURL || s.Redirect != "" {
					t.Errorf("the state is %+v", s)
				}
				w.a.put(at("a", "x"), cluster("x", ""), "2")
				synctest.Wait()
				if s := w.c.Dump()[0]; s.Refused != nil || s.Redirect != "" {
					t.Errorf("the state of a good value is %+v", s)
				}
				w.a.put(at("a", "x"), tt.to, "3")
				if ev := rec.last(); ev.Kind != client.EventAmbientError || ev.Err == nil {
					t.Errorf("with a value: %v %v", ev.Kind, ev.Err)
				}
			})
		})
	}
}

// spec: REDIR-3
func TestRedirectRings(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.a.put(at("a", "self"), redirect(at("a", "self")), "1")
		_, self := w.watch(at("a", "self"))
		must(t, w.c.Ready(t.Context()))
		if err := self.last().Err; !errors.Is(err, client.ErrRedirectLoop) {
			t.Errorf("%v is no ErrRedirectLoop", err)
		}
		w.since(self, `failed a/self data: xds: the redirects go round in a ring: "a/self" to "a/self" via a/self`)

		w.a.put(at("a", "1"), redirect(at("b", "2")), "1")
		w.b.put(at("b", "2"), redirect(at("c", "3")), "1")
		w.c2.put(at("c", "3"), redirect(at("a", "1")), "1")
		_, ring := w.watch(at("a", "1"))
		w.since(ring, `failed a/1 data: xds: the redirects go round in a ring: "a/1" to "b/2" to "c/3" to "a/1" via a/1`)
		w.c2.put(at("c", "3"), cluster("3", ""), "2")
		w.since(ring, "updated a/1 2 via c/3")
		w.c2.put(at("c", "3"), redirect(at("b", "2")), "3")
		w.since(ring, `failed a/1 data: xds: the redirects go round in a ring: "a/1" to "b/2" to "c/3" to "b/2" via b/2`)
	})
}

// spec: REDIR-3
func TestRedirectDepth(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		for i := range client.MaxHops + 1 {
			w.a.put(at("a", fmt.Sprint(i)), redirect(at("a", fmt.Sprint(i+1))), "1")
		}
		w.a.put(at("a", "9"), cluster("9", ""), "9")
		_, far := w.watch(at("a", "0"))
		_, near := w.watch(at("a", "1"))
		w.since(near, "updated a/1 9 via a/9")
		synctest.Wait()
		if ev := far.last(); ev.Kind != client.EventFailed || !errors.Is(ev.Err, client.ErrTooManyHops) || strings.Count(ev.Err.Error(), " to ") != client.MaxHops+1 {
			t.Errorf("%v %v", ev.Kind, ev.Err)
		}
	})
}

// spec: REDIR-3 AUTH-3
func TestRedirectToUnknownAuthority(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.a.put(at("a", "x"), redirect(at("nowhere", "y")), "1")
		_, rec := w.watch(at("a", "x"))
		must(t, w.c.Ready(t.Context()))
		ev := rec.last()
		var re *client.ResourceError
		if ev.Kind != client.EventFailed || !errors.As(ev.Err, &re) || re.Kind != client.ErrorConfig ||
			!errors.Is(re, bootstrap.ErrUnknownAuthority) || !strings.Contains(re.Error(), `which has "a", "b", "c"`) {
			t.Errorf("%v %v", ev.Kind, ev.Err)
		}
		w.b.put(at("b", "y"), cluster("y", ""), "3")
		w.a.put(at("a", "x"), redirect(at("b", "y")), "2")
		w.heard(rec, "failed a/x config via xdstp://nowhere/"+clusterName+"/y", "updated a/x 3 via b/y")
	})
}

// Trouble of either server is told once, and is over when both are well.
// spec: REDIR-3 ERR-1
func TestRedirectTrouble(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.a.put(at("a", "x"), redirect(at("b", "y")), "1")
		_, rec := w.watch(at("a", "x"))
		w.since(rec, "does not exist a/x removed via b/y")
		w.b.put(at("b", "y"), cluster("y", ""), "1")
		w.since(rec, "updated a/x 1 via b/y")
		w.b.down()
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if err := rec.last().Err; err == nil || !strings.Contains(err.Error(), `at "`+at("b", "y")+`": `) {
			t.Errorf("the error does not say where the trouble is: %v", err)
		}
		w.since(rec, "ambient error a/x connection via b/y")
		w.a.down()
		time.Sleep(5 * time.Second)
		w.since(rec)
		w.b.srv.SetRefuse(false)
		time.Sleep(time.Minute)
		synctest.Wait()
		told := rec.all()
		if last := told[len(told)-1]; last.Kind != client.EventAmbientError || last.Err == nil || last.Server != w.a.srv.Target() {
			t.Errorf("with one server still down: %v", lines(told))
		}
		w.a.srv.SetRefuse(false)
		time.Sleep(time.Minute)
		synctest.Wait()
		if last := rec.last(); last.Kind != client.EventRecovered || last.Err != nil {
			t.Errorf("with both well: %v", lines(rec.all()))
		}
	})
}

// A redirect is no answer; that of its target is.
func TestRedirectReady(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.a.put(at("a", "x"), redirect(at("b", "y")), "1")
		w.b.mute(at("b", "y"))
		_, rec := w.watch(at("a", "x"))
		get := func(ctx context.Context) error {
			_, err := w.c.Get(ctx, cds.Type, at("a", "x"))
			return err
		}
		for _, wait := range []func(context.Context) error{w.c.Ready, get} {
			err := within(time.Second, wait)
			l := notReady(t, err, 1, at("a", "x")+" REQUESTED").Lacking[0]
			if l.Locator != at("b", "y") || l.Server != w.b.srv.Target() || !strings.Contains(err.Error(), l.Locator) {
				t.Errorf("%v leads to %q of %q", err, l.Locator, l.Server)
			}
		}
		must(t, w.c.Ready(t.Context()))
		w.heard(rec, "does not exist a/x timeout via b/y")
	})
}

// Who watches a target by its own name shares its subscription with those who are
// redirected there, each in the order of its own authority.
func TestTargetIsWatchedToo(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.a.put(at("a", "x"), redirect(at("b", "y")), "1")
		w.b.put(at("b", "y"), cluster("y", ""), "1")
		hold := make(chan struct{})
		_, err := w.c.Watch(context.Background(), cds.Type, at("a", "held"), func(client.Event[any]) { <-hold })
		must(t, err)
		redirected, rec := w.watch(at("a", "x"))
		_, own := w.watch(at("b", "y"))
		w.since(own, "updated b/y 1")
		w.b.put(at("b", "y"), cluster("y", "2"), "2")
		close(hold)
		w.since(own, "updated b/y 2")
		if ev := rec.last(); ev.Kind != client.EventUpdated || ev.Name != at("a", "x") || ev.Version != "2" {
			t.Errorf("heard %v", lines(rec.all()))
		}
		redirected.Stop()
		w.b.put(at("b", "y"), cluster("y", "3"), "3")
		w.since(own, "updated b/y 3")
	})
}

// A locator and a resource of the same bytes differ.
// spec: WATCH-4 CACHE-2
func TestRedirectOfTheSameBytes(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		kind := resource.Custom(cds.Type.TypeURL(), resource.Options{}, func(_ resource.Source, b []byte) (int, error) { return len(b), nil })
		raw, err := proto.Marshal(redirect(at("b", "y")))
		must(t, err)
		w.b.put(at("b", "y"), &anypb.Any{TypeUrl: kind.TypeURL()}, "7")
		w.a.put(at("a", "x"), &anypb.Any{TypeUrl: kind.TypeURL(), Value: raw}, "1")
		_, rec := w.watchType(kind, at("a", "x"))
		w.since(rec, "updated a/x 1")
		w.a.put(at("a", "x"), &anypb.Any{TypeUrl: locatorURL, Value: raw}, "2")
		w.since(rec, "updated a/x 7 via b/y")
		w.a.put(at("a", "x"), &anypb.Any{TypeUrl: kind.TypeURL(), Value: raw}, "3")
		w.since(rec, "updated a/x 3")
	})
}

// Locators whose parameters come in another order are one, and names that are equal by
// their parts too. Servers are asked in the program's spelling, and for where a locator leads in
// gRPC's.
// spec: XDSTP-4 WATCH-4 C-6
func TestRedirectSpellings(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		asked, canonical := at("a", "x:1?b=2&a=1"), at("a", "x%3A1?a=1&b=2")
		w.a.spelled[canonical] = "xdstp://%61/" + clusterName + "/x:1?b=%32&a=1"
		w.a.put(canonical, redirect(at("b", "y:1?b=2&a=1")), "1")
		target := at("b", "y%3A1?a=1&b=2")
		w.b.spelled[target] = at("b", "y:1?b=2&a=1")
		w.b.put(target, cluster("y", ""), "2")
		_, rec := w.watch(asked)
		w.since(rec, "updated a/x%3A1?a=1&b=2 2 via b/y%3A1?a=1&b=2")
		same(t, "a was asked for", w.a.asked, []string{at("a", "x:1?a=1&b=2")})
		same(t, "b was asked for", w.b.asked, []string{at("b", "y:1?a=1&b=2")})
		for range 10 { // of a map's orders
			w.a.put(canonical, redirect(at("b", "y:1?b=2&a=1")), "1")
		}
		w.since(rec)
	})
}

// Get follows what is held, also where it may not wait.
// spec: REDIR-2
func TestGetRedirected(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.a.put(at("a", "x"), redirect(at("b", "y")), "1")
		w.b.put(at("b", "y"), redirect(dir("c", "list")+"#entry=e"), "2")
		w.c2.put(dir("c", "list"), listing(inline("e", "3", cluster("e", ""))), "9")
		want := func(ev client.Event[any], err error) {
			t.Helper()
			must(t, err)
			same(t, "got", shortNames.Replace(lines([]client.Event[any]{ev})[0]), "updated a/x 3 via c//list#entry=e")
		}
		want(w.c.Get(t.Context(), cds.Type, at("a", "x")))
		want(w.c.Get(t.Context(), cds.Type, at("a", "x")))

		time.Sleep(2 * time.Minute)
		_, err := w.c.Watch(context.Background(), cds.Type, at("a", "x"), func(ev client.Event[any]) {
			want(ev, nil)
			want(w.c.Get(t.Context(), cds.Type, at("a", "x")))
			_, err := w.c.Get(t.Context(), cds.Type, at("a", "x")+"#alt=xdstp://b/"+clusterName+"/z")
			must(t, err)
			_, err = w.c.Get(t.Context(), cds.Type, dir("c", "list")+"#entry=none")
			if !errors.Is(err, client.ErrDoesNotExist) {
				t.Errorf("a missing entry: %v", err)
			}
			_, err = w.c.Get(t.Context(), cds.Type, dir("c", "other")+"#entry=e")
			if !errors.Is(err, client.ErrInHandler) {
				t.Errorf("what is not held: %v", err)
			}
		})
		must(t, err)
		synctest.Wait()
		_, err = w.c.Get(t.Context(), cds.Type, dir("c", "other")+"#entry=e")
		if !errors.Is(err, client.ErrDoesNotExist) {
			t.Errorf("an entry of what does not exist: %v", err)
		}
		time.Sleep(2 * time.Minute)
		same(t, "subscribed at c", w.c2.subscribed(), []string{"c//list"})
	})
}

// Get of what is held says what a watch is told, inside a handler too: the same event, the same error.
// spec: REDIR-2 REDIR-3 ENTRY-1
func TestGetSaysWhatWatchesAreTold(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.a.put(at("a", "x"), redirect(dir("c", "list")+"#entry=e"), "1")
		w.a.put(at("a", "bad"), redirect(dir("c", "list")+"#entry=bad"), "2")
		w.a.put(at("a", "none"), redirect(dir("c", "list")+"#entry=none"), "3")
		w.a.put(at("a", "ring"), redirect(at("b", "ring")), "4")
		w.b.put(at("b", "ring"), redirect(at("a", "ring")), "5")
		w.a.put(at("a", "plain"), cluster("plain", ""), "6")
		w.c2.put(dir("c", "list"), listing(inline("e", "7", cluster("e", "")), inline("bad", "8", invalid("bad"))), "9")
		told := 0
		for _, id := range []string{"x", "bad", "none", "ring", "plain"} {
			_, err := w.c.Watch(context.Background(), cds.Type, at("a", id), func(ev client.Event[any]) {
				told++
				got, err := w.c.Get(t.Context(), cds.Type, at("a", id))
				switch ev.Kind {
				case client.EventUpdated:
					if diff := cmp.Diff(ev, got, protocmp.Transform()); err != nil || diff != "" {
						t.Errorf("%s: %v (-watch +get):\n%s", id, err, diff)
					}
				case client.EventDoesNotExist:
					if !errors.Is(err, client.ErrDoesNotExist) || !strings.Contains(err.Error(), ev.Reason.String()) {
						t.Errorf("%s: %v", id, err)
					}
				default:
					same(t, id, fmt.Sprint(err), fmt.Sprint(ev.Err))
				}
			})
			must(t, err)
		}
		must(t, w.c.Ready(t.Context()))
		if told != 5 {
			t.Errorf("told %d times, want once for each", told)
		}
	})
}

// A watch that ends while it is being redirected leaves nothing behind.
func TestStopWhileRedirected(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.b.put(at("b", "y"), cluster("y", ""), "1")
		var stops sync.WaitGroup // Stop may wait a moment for a call
		for i := range 20 {
			name := at("a", fmt.Sprint("x", i))
			w.a.put(name, redirect(at("b", "y")), "1")
			watch, err := w.c.Watch(context.Background(), cds.Type, name, func(client.Event[any]) {})
			must(t, err)
			set, err := w.c.NewSet(context.Background(), cds.Type, func(client.Batch[any]) {})
			must(t, err)
			must(t, set.Add(name))
			stops.Go(watch.Stop)
			stops.Go(func() { set.Remove(name) })
		}
		stops.Wait()
		w.unwanted()
	})
}
