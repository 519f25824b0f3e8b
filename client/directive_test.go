package client_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource/cds"
)

// withAlt is a URL with an alternative.
func withAlt(url, alt string) string {
	return url + "#alt=" + strings.NewReplacer("%", "%25", "#", "%23", ",", "%2C").Replace(alt)
}

// The alternative is used while the primary's server cannot be reached and nothing is
// held, and no longer.
// spec: ALT-1
func TestAlternative(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.a.srv.SetRefuse(true)
		w.b.put(at("b", "y"), cluster("y", ""), "1")
		w.a.put(at("a", "x"), cluster("x", ""), "7")
		name := withAlt(at("a", "x"), at("b", "y"))
		short := shortNames.Replace(name)
		watch, rec := w.watch(name)
		w.since(rec, "updated "+short+" 1 via b/y", "ambient error "+short+" connection via b/y")
		w.b.put(at("b", "y"), cluster("y", "2"), "2")
		w.since(rec, "updated "+short+" 2 via b/y", "ambient error "+short+" connection via b/y")

		w.a.srv.SetRefuse(false)
		time.Sleep(time.Minute)
		w.since(rec, "updated "+short+" 7")
		same(t, "subscribed at b", w.b.subscribed(), nil)

		// What is held is good enough.
		w.a.down()
		time.Sleep(5 * time.Second)
		w.since(rec, "ambient error "+short+" connection")
		same(t, "subscribed at b", w.b.subscribed(), nil)
		watch.Stop()
		w.unwanted()
	})
}

// Get gives the alternative's value, and not once the alternative has lost it.
// spec: ALT-1
func TestGetOfAlternative(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.a.srv.SetRefuse(true)
		w.b.put(at("b", "y"), cluster("y", ""), "1")
		name := withAlt(at("a", "x"), at("b", "y"))
		ev, err := w.c.Get(t.Context(), cds.Type, name)
		must(t, err)
		if ev.Version != "1" || ev.Locator != at("b", "y") {
			t.Errorf("Get gave version %q of %q", ev.Version, ev.Locator)
		}
		w.b.remove(at("b", "y"))
		synctest.Wait()
		if ev, err := w.c.Get(t.Context(), cds.Type, name); err == nil || trouble(err) != "connection" {
			t.Errorf("without the alternative Get gave %+v, %v", ev, err)
		}
	})
}

// The alternative is no help against a resource that does not exist or is refused.
// spec: ALT-1
func TestAlternativeOnlyOfTheUnreachable(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.b.put(at("b", "y"), cluster("y", ""), "1")
		name := withAlt(at("a", "x"), at("b", "y"))
		_, rec := w.watch(name)
		w.since(rec, "does not exist "+shortNames.Replace(name)+" removed")
		w.a.put(at("a", "x"), redirect("http://a/"+clusterName+"/x"), "1")
		synctest.Wait()
		if ev := rec.last(); ev.Kind != client.EventFailed {
			t.Errorf("heard %v", lines(rec.all()))
		}
		same(t, "subscribed at b", w.b.subscribed(), nil)
	})
}

// When neither answers the error speaks of both, and it is one of the way to the primary.
// spec: ALT-1 REDIR-3
func TestAlternativeOfNoUse(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.a.srv.SetRefuse(true)
		name := withAlt(at("a", "x"), at("b", "y"))
		_, rec := w.watch(name)
		synctest.Wait()
		ev := rec.last()
		var re *client.ResourceError
		if !errors.As(ev.Err, &re) || re.Kind != client.ErrorConnection || re.Name != name ||
			!strings.Contains(re.Error(), `the alternative "`+at("b", "y")+`" does not exist (removed)`) {
			t.Errorf("heard %v: %v", ev.Kind, ev.Err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := w.c.Ready(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("ready though the primary was not reached: %v", err)
		}
		w.b.put(at("b", "y"), cluster("y", ""), "1")
		must(t, w.c.Ready(t.Context()))
		w.b.remove(at("b", "y"))
		if ev := rec.last(); ev.Kind != client.EventFailed {
			t.Errorf("heard %v after the alternative went", lines(rec.all()))
		}
	})
}

// Directives of a redirect's target count, and a ring through an alternative is one.
// spec: ALT-1 REDIR-3
func TestAlternativeOfATarget(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.b.srv.SetRefuse(true)
		w.a.put(at("a", "x"), redirect(withAlt(at("b", "y"), at("c", "z"))), "1")
		w.c2.put(at("c", "z"), cluster("z", ""), "1")
		_, rec := w.watch(at("a", "x"))
		w.since(rec, "updated a/x 1 via c/z", "ambient error a/x connection via c/z")
		w.c2.put(at("c", "z"), redirect(at("a", "x")), "2")
		synctest.Wait()
		ev := rec.last()
		if ev.Kind != client.EventFailed || trouble(ev.Err) != "connection" || !errors.Is(ev.Err, client.ErrRedirectLoop) {
			t.Errorf("heard %v: %v", lines(rec.all()), ev.Err)
		}
	})
}

// spec: ENTRY-1 COLL-4
func TestEntry(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		url := dir("a", "list")
		name := url + "#entry=e"
		watch, rec := w.watch(name)
		w.since(rec, "does not exist a//list#entry=e removed")
		w.a.put(url, listing(inline("e", "1", cluster("e", ""))), "10")
		w.since(rec, "updated a//list#entry=e 1")
		w.a.put(url, listing(inline("f", "1", cluster("f", "")), inline("e", "1", cluster("e", ""))), "11")
		w.since(rec) // its bytes are as before
		w.a.put(url, listing(inline("e", "", cluster("e", "2"))), "12")
		w.since(rec, "updated a//list#entry=e 12")
		w.a.put(url, listing(inline("e", "", cluster("", ""))), "13")
		w.since(rec, `ambient error a//list#entry=e rejected: the inline entry "e": not a valid envoy.config.cluster.v3.Cluster: `+
			`invalid Cluster.Name: value length must be at least 1 runes`)
		w.a.put(url, listing(inline("e", "", cluster("e", "2"))), "14")
		w.since(rec, "recovered a//list#entry=e")
		w.a.put(url, listing(inline("e", "", cluster("e", "2")), inline("e", "", cluster("e", "3"))), "15")
		w.since(rec, "ambient error a//list#entry=e rejected: the collection lists it more than once")
		w.a.put(url, listing(inline("", "", cluster("e", "2"))), "16")
		w.since(rec, "does not exist a//list#entry=e not-found")
		w.a.put(url, listing(), "17")
		w.since(rec)
		w.a.put(url, listing(inline("e", "", redirect(at("b", "y")))), "18")
		w.since(rec, "does not exist a//list#entry=e removed via b/y")
		w.b.put(at("b", "y"), cluster("y", ""), "1")
		w.since(rec, "updated a//list#entry=e 1 via b/y")
		w.a.remove(url)
		w.since(rec, "does not exist a//list#entry=e removed")
		watch.Stop()
		w.unwanted()

		// The directory may be elsewhere.
		w.a.put(url, redirect(dir("b", "list")), "19")
		w.b.put(dir("b", "list"), listing(inline("e", "3", cluster("e", ""))), "1")
		watch, rec = w.watch(name)
		w.since(rec, "updated a//list#entry=e 3 via b//list#entry=e")
		ev, err := w.c.Get(t.Context(), cds.Type, name)
		if err != nil || ev.Version != "3" || ev.Name != name || ev.Locator != dir("b", "list")+"#entry=e" {
			t.Errorf("got %v, %v", ev, err)
		}
		watch.Stop()
		w.unwanted()
		w.a.remove(url)

		_, rec = w.watch(url + "#entry=")
		w.since(rec, "does not exist a//list#entry= removed")
		_, err = w.c.WatchAll(context.Background(), cds.Type, name, func(client.Batch[any]) {})
		if !errors.Is(err, client.ErrCollection) {
			t.Errorf("an entry as a collection: %v", err)
		}
	})
}

// The alternative of a list that a redirect leads to is used for an entry and for the whole.
//
// spec: ALT-1, ENTRY-1
func TestAlternativeOfRedirectedList(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.b.down()
		w.a.put(dir("a", "l"), redirect(withAlt(dir("b", "m"), dir("c", "n"))), "1")
		w.c2.put(dir("c", "n"), listing(inline("e", "7", cluster("e", ""))), "1")
		_, entry := w.watch(dir("a", "l") + "#entry=e")
		_, whole := w.all(dir("a", "l"))
		synctest.Wait()
		for what, rec := range map[string]*record{"the entry": entry, "the whole": whole} {
			if got := strings.Join(lines(rec.all()), "\n"); !strings.Contains(shortNames.Replace(got), "updated a//l#entry=e 7") {
				t.Errorf("%s: heard\n%s", what, got)
			}
		}
	})
}

// An alternative that a server names and that cannot be followed is the server's fault, or for want of servers the
// bootstrap's, beside the trouble that has it used.
// spec: ALT-1 ERR-11
func TestAlternativeThatCannotBeFollowed(t *testing.T) {
	for alt, want := range map[string]client.ErrorKind{
		"http://c/" + clusterName + "/z":                client.ErrorData,
		"xdstp://c/envoy.config.listener.v3.Listener/z": client.ErrorData,
		"xdstp://nobody/" + clusterName + "/z":          client.ErrorConfig,
	} {
		inWorld(t, func(t *testing.T, w *world) {
			w.b.down()
			w.a.put(at("a", "x"), redirect(withAlt(at("b", "y"), alt)), "r")
			_, rec := w.watch(at("a", "x"))
			time.Sleep(5 * time.Second)
			synctest.Wait()
			outer, _ := errors.AsType[*client.ResourceError](rec.last().Err)
			if outer == nil || outer.Kind != client.ErrorConnection {
				t.Fatalf("%s: heard %v", alt, lines(rec.all()))
			}
			if inner, _ := errors.AsType[*client.ResourceError](outer.Err); inner == nil || inner.Kind != want {
				t.Errorf("%s: the alternative has %v, want kind %s", alt, inner, want)
			}
		})
	}
}
