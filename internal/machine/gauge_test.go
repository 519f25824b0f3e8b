package machine

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

func itself(authority string) string { return authority }

// counts counts with a number of subscriptions at a time.
func counts(m *Machine, most int) (cs []Count) {
	var at Listing
	all := Counts{}
	for done := false; !done; {
		done = m.Count(&at, all, most, itself)
	}
	for _, c := range all {
		cs = append(cs, *c)
	}
	slices.SortFunc(cs, func(a, b Count) int {
		return cmp.Or(cmp.Compare(a.TypeURL, b.TypeURL), cmp.Compare(a.Authority, b.Authority), cmp.Compare(a.Status, b.Status))
	})
	return cs
}

// A count looks at few subscriptions at a time, so that the loop can go on between, and counts the same.
func TestCountInPages(t *testing.T) {
	r := newRig(t, Config{})
	for i := range 100 {
		r.step(Start{r.watch(fmt.Sprintf("r%d", i))})
		w := r.watch(fmt.Sprintf("xdstp://a%d/test.T/x%d", i%3, i))
		r.step(Start{w})
	}
	all := counts(r.m, 1<<30)
	if len(all) != 4 {
		t.Fatalf("counted: %+v", all)
	}
	for _, most := range []int{1, 7, 200} {
		if d := gocmp.Diff(all, counts(r.m, most)); d != "" {
			t.Errorf("%d at a time: %s", most, d)
		}
	}
	var at Listing
	first, counted := Counts{}, 0
	done := r.m.Count(&at, first, 10, itself)
	for _, c := range first {
		counted += c.N
	}
	if done || counted > 10 {
		t.Errorf("in the first page: %d, done %t", counted, done)
	}
}

// Servers lead a client to names of any number of authorities, where one source serves all that have none of their own:
// what the machine knows of an authority goes with its last watch.
func TestAuthoritiesOfDefaultSource(t *testing.T) {
	r := newRig(t, Config{})
	rest := r.m.AddSource(Source{Servers: []int{0}, Rest: func(authority string) bool { return authority != "a" }})
	watch := func(authority string, source int) *Watch {
		w := r.watch("xdstp://" + authority + "/test.T/x")
		w.Source = int32(source)
		r.step(Start{w})
		return w
	}
	watch("a", 0)
	for i := range 100 {
		r.step(Stop{watch(fmt.Sprintf("a%d", i), rest)})
	}
	c := r.m.cacheOf(r.typ, 0)
	if len(c.byAuthority) != 1 {
		t.Errorf("knows of %d authorities, want 1", len(c.byAuthority))
	}
	for authority, want := range map[string]int{"a": 0, "b": rest} {
		if got := c.sourceOfAuthority(authority); got == nil || got.index != want {
			t.Errorf("owner of %s: %+v, want the source %d", authority, got, want)
		}
	}
}

// BenchmarkCountsOfAuthorities tells what each of many authorities costs a collection.
func BenchmarkCountsOfAuthorities(b *testing.B) {
	perItem(b, func(b *testing.B, n int) {
		b.StopTimer()
		r := newRig(nil, Config{})
		for i := range n {
			r.step(Start{r.watch(fmt.Sprintf("xdstp://a%d/test.T/x", i))})
		}
		b.StartTimer()
		if cs := counts(r.m, 1024); len(cs) != n {
			b.Fatalf("%d counts", len(cs))
		}
	})
}

// BenchmarkCounts tells how long a collection takes, all pages together.
func BenchmarkCounts(b *testing.B) {
	const n = 100_000
	r := newRig(nil, Config{})
	for i := range n {
		r.step(Start{r.watch(fmt.Sprintf("r%06d", i))})
	}
	for b.Loop() {
		if cs := counts(r.m, 1024); len(cs) != 1 || cs[0].N != n {
			b.Fatalf("%+v", cs)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/resource")
}
