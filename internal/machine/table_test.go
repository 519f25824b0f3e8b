package machine

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

// crowded are names whose hashes are equal or next to each other, and some others.
func crowded(t *testing.T) (names []string) {
	t.Helper()
	by := map[uint32]string{}
	equal := 0
	for i := range 400_000 {
		name := fmt.Sprint("name-", i)
		hash := hashOfName(name)
		if other, ok := by[hash]; ok {
			names = append(names, name, other)
			equal++
		} else if other, ok = by[hash-1]; ok {
			names = append(names, name, other)
		}
		by[hash] = name
	}
	if equal == 0 {
		t.Fatal("no two names have the same hash")
	}
	names = append(names, "", "a", "b")
	slices.Sort(names)
	return slices.Compact(names)
}

// A table holds what a map would, whatever the hashes of the names are.
func TestTable(t *testing.T) {
	if testing.Short() {
		t.Skip("long: a large table")
	}
	names := crowded(t)
	rnd := rand.New(rand.NewPCG(1, 2))
	var tab table
	want := map[string]*subscription{}
	for range 200_000 {
		name := names[rnd.IntN(len(names))]
		if drop := rnd.IntN(5) < 2; drop {
			tab.drop(name)
			delete(want, name)
		} else if want[name] == nil {
			e := &subscription{name: name}
			tab.put(e)
			want[name] = e
		}
		name = names[rnd.IntN(len(names))]
		if tab.get(name) != want[name] || tab.read([]byte(name)) != want[name] || tab.len() != len(want) {
			t.Fatalf("%q: a table of %d has %v and %v, want %v of %d", name, tab.len(), tab.get(name), tab.read([]byte(name)), want[name], len(want))
		}
	}
	got, n := map[string]*subscription{}, 0
	for e := range tab.all() {
		got[e.name] = e
		n++
	}
	if !maps.Equal(got, want) || n != len(want) {
		t.Errorf("it yields %d: %v, want %v", n, got, want)
	}
}

// While the entries of a table are looked at, any may go: those that stay all come, and none
// of those that went.
func TestTableWhileLookedAt(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		var tab table
		for i := range 30 {
			tab.put(&subscription{name: fmt.Sprint(i)})
		}
		seen, gone := map[string]bool{}, map[string]bool{}
		for e := range tab.all() {
			if gone[e.name] {
				t.Fatalf("%s came after it went", e.name)
			}
			seen[e.name] = true
			for range rnd.IntN(3) {
				name := fmt.Sprint(rnd.IntN(30))
				tab.drop(name)
				gone[name] = true
			}
			if rnd.IntN(2) == 0 {
				tab.drop(e.name)
				gone[e.name] = true
			}
		}
		for i := range 30 {
			if name := fmt.Sprint(i); !seen[name] && !gone[name] {
				t.Fatalf("%s did not come", name)
			}
		}
	}
}

// A name in a frame is looked up without a copy.
func TestTableReadAllocates(t *testing.T) {
	var tab table
	name := fmt.Sprintf("a name that is longer than what %s has room for", "a small string on the stack")
	tab.put(&subscription{name: name})
	frame := []byte(name)
	if n := testing.AllocsPerRun(100, func() { tab.read(frame) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
