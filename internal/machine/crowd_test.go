package machine

import (
	"runtime"
	"slices"
	"testing"
)

// The end of many watches of one name, one by one and in any order, costs no more than their number. Those that are
// left are told in the order in which they came, and lists that were handed out before stay as they were.
//
// spec: WATCH-1 WATCH-2
func TestManyWatchesEnd(t *testing.T) {
	const n = 20_000
	for name, order := range map[string]func(i int) int{
		"first come first": func(i int) int { return i },
		"last come first":  func(i int) int { return n - 1 - i },
		"across":           func(i int) int { return i * 7919 % n },
	} {
		r := newRig(t, Config{})
		ws := make([]*Watch, n)
		for i := range ws {
			ws[i] = r.watch("r0000")
			r.step(Start{ws[i]})
		}
		r.up()
		told := func(version string) []*Watch {
			t.Helper()
			for _, n := range r.decode(r.receive(version, 1)[0]).Notify {
				if n.Kind == NoticeUpdated {
					return n.To
				}
			}
			t.Fatalf("%s: nobody is told of version %s", name, version)
			return nil
		}
		all := told("1")
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for i := range n - 3 {
			r.step(Stop{ws[order(i)]})
		}
		runtime.ReadMemStats(&after)
		if mb := (after.TotalAlloc - before.TotalAlloc) >> 20; mb > 64 {
			t.Errorf("%s: %d MiB were allocated, want a few", name, mb)
		}
		var left []*Watch
		for i := n - 3; i < n; i++ {
			left = append(left, ws[order(i)])
		}
		slices.SortFunc(left, func(a, b *Watch) int { return slices.Index(ws, a) - slices.Index(ws, b) })
		if got := told("2"); !slices.Equal(got, left) {
			t.Errorf("%s: %d watches are told, want the three that are left, in order", name, len(got))
		}
		if !slices.Equal(all, ws) {
			t.Errorf("%s: the list of an earlier notice has changed", name)
		}
		for _, w := range left {
			r.step(Stop{w})
		}
		if r.m.streams[0].watches > 0 {
			t.Errorf("%s: the stream is wanted though nobody watches", name)
		}
	}
}
