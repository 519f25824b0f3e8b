package machine

import (
	"slices"
	"testing"

	"github.com/xdswatch/xdswatch/internal/wire"
)

// A file that cannot be used says nothing of what the store had, whichever comes first; one that can and
// lacks it does.
//
// spec: LKG-5
func TestStaleBesideFile(t *testing.T) {
	broken := &wire.Response{Errors: []wire.ResourceError{{ResourceName: wire.ResourceName{Name: []byte("other")}, Code: codeInvalidArgument}}}
	for _, test := range []struct {
		name      string
		file      *wire.Response
		loadFirst bool
		want      NoticeKind
	}{
		{"broken, then loaded", broken, false, NoticeAmbient},
		{"loaded, then broken", broken, true, NoticeAmbient},
		{"empty, then loaded", &wire.Response{}, false, NoticeDoesNotExist},
		{"loaded, then empty", &wire.Response{}, true, NoticeDoesNotExist},
	} {
		r := newRig(t, Config{ResourceTimeout: period}, Server{AlwaysFull: true})
		r.m.sources[0].Stored, r.typ.Stored = true, true
		r.step(Start{r.watch("a")})
		r.up()
		r.now = r.now.Add(loadAfter)
		loads := r.step(Tick{}).Load
		if len(loads) != 1 {
			t.Fatalf("%s: the store is asked %d times, want once", test.name, len(loads))
		}
		var last NoticeKind
		hear := func(fx Effects) Effects {
			if kinds, _ := news(fx); len(kinds) > 0 {
				last = kinds[len(kinds)-1]
			}
			return fx
		}
		load := func() {
			for _, task := range r.step(Loaded{Load: loads[0], Entries: []Kept{{Name: "a", Raw: []byte("old")}}, Last: true}).Decode {
				hear(r.decode(task))
			}
		}
		if test.loadFirst {
			load()
		}
		test.file.TypeURL = r.typ.URL
		hear(r.step(Received{r.ref, test.file}))
		r.step(Written{r.ref}, Delivered{r.ref})
		if !test.loadFirst {
			load()
		}
		for range 3 {
			r.now = r.now.Add(period)
			hear(r.step(Tick{}))
		}
		if last != test.want {
			t.Errorf("%s: the watch hears %d at last, want %d", test.name, last, test.want)
		}
	}
}

// A wildcard's state says nothing of structured names that the store has, which its source may answer for too.
//
// spec: LKG-5
func TestStructuredBesideWildcard(t *testing.T) {
	r := newRig(t, Config{ResourceTimeout: period})
	r.m.sources[0].Stored, r.typ.Stored = true, true
	r.step(Start{r.watch(star)})
	r.up()
	keeps := r.decode(r.receive("1", 1)[0]).Keep
	r.step(Written{r.ref}, Delivered{r.ref})
	for range 3 {
		r.now = r.now.Add(period)
		keeps = append(keeps, r.step(Tick{}).Keep...)
	}
	i := slices.IndexFunc(keeps, func(k Keep) bool { return k.Covers != nil })
	if i < 0 {
		t.Fatalf("what the wildcard lacks is never forgotten: %+v", keeps)
	}
	for name, want := range map[string]bool{"other": true, "xdstp:///t/x": false, "xdstp:///t/p/*": false} {
		if got := keeps[i].Covers(name); got != want {
			t.Errorf("the wildcard covers %s: %v, want %v", name, got, want)
		}
	}
}

// That a first state was complete a store may say of a name that is no collection's: an entry without a value. It says nothing.
//
// spec: LKG-7
func TestStoredCompleteOfResource(t *testing.T) {
	r := newRig(t, Config{ResourceTimeout: period}, Server{})
	r.m.sources[0].Stored, r.typ.Stored = true, true
	w := r.watch("a")
	r.step(Start{w})
	r.up()
	r.now = r.now.Add(loadAfter)
	loads := r.step(Tick{}).Load
	if len(loads) != 1 {
		t.Fatalf("the store is asked %d times, want once", len(loads))
	}
	fx := r.step(Loaded{Load: loads[0], Entries: []Kept{{Name: "a", Complete: true}}, Last: true})
	if kinds, _ := news(fx); len(kinds) > 0 || w.sub.usable() {
		t.Errorf("told are the kinds %v; it is %t that there is something to go on with", kinds, w.sub.usable())
	}
}
