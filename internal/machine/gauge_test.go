package machine

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

// counts counts with a number of subscriptions at a time.
func counts(m *Machine, most int) (cs []Count) {
	var at Listing
	for done := false; !done; {
		cs, done = m.Count(&at, cs, most)
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
	if cs, done := r.m.Count(&at, nil, 10); done || cs[0].N > 10 {
		t.Errorf("in the first page: %+v, done %t", cs, done)
	}
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
