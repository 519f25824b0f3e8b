package keeper

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/xdswatch/xdswatch/internal/machine"
)

// The last change of each name is left, and what settles a collection stays behind what came before it.
//
// spec: LKG-1
func TestNewest(t *testing.T) {
	changes := func(source int, typeURL string, names ...string) machine.Keep {
		k := machine.Keep{Source: source, TypeURL: typeURL}
		for _, n := range names {
			k.Changes = append(k.Changes, machine.Kept{Name: n[:1], Version: n[1:]})
		}
		return k
	}
	settles := func(collection string) machine.Keep {
		return machine.Keep{TypeURL: "t", Settled: collection, Covers: func(string) bool { return true }}
	}
	kept := []machine.Keep{
		changes(0, "t", "e1", "a1", "b1", "a2"),
		settles("*"),
		changes(0, "t", "b2"),
		changes(1, "t", "a3"),
		changes(0, "u", "a4", "c1"),
		settles("g"),
		settles("*"),
		changes(0, "t", "d1", "b3", "d2"),
	}
	var got []string
	for _, k := range newest(kept) {
		line := fmt.Sprint(k.Source, k.TypeURL, k.Settled)
		for _, c := range k.Changes {
			line += " " + c.Name + c.Version
		}
		got = append(got, line)
	}
	want := []string{"0t e1 a2", "1t a3", "0u a4 c1", "0tg", "0t*", "0t b3 d2"}
	if !slices.Equal(got, want) {
		t.Errorf("left are %q, want %q", got, want)
	}
}

// What waits is made one change of each name when it has grown large, and again when it has doubled since.
//
// spec: LKG-1
func TestBacklogIsBounded(t *testing.T) {
	b := backlog{limit: maxBacklog}
	large := make([]byte, maxBacklog/4)
	add := func(name string) int {
		b.add([]machine.Keep{{TypeURL: "t", Changes: []machine.Kept{{Name: name, Raw: large}}}})
		return len(b.kept)
	}
	var waits []int
	for _, name := range []string{"a", "a", "a", "a", "a", "b", "c", "d", "e", "e", "e", "e", "e", "e", "e"} {
		waits = append(waits, add(name))
	}
	if want := []int{1, 2, 3, 1, 2, 3, 3, 4, 5, 6, 5, 6, 7, 8, 9}; !slices.Equal(waits, want) {
		t.Errorf("waiting are %v, want %v", waits, want)
	}
}

// What waits says which names are gone: the last change of a name counts, and what a collection does not know.
//
// spec: LKG-5
func TestRemoved(t *testing.T) {
	b := backlog{limit: maxBacklog}
	add := func(k machine.Keep) { b.add([]machine.Keep{k}) }
	put := func(name string) machine.Keep {
		return machine.Keep{TypeURL: "t", Changes: []machine.Kept{{Name: name, Raw: []byte{}}}}
	}
	remove := func(source int, typeURL, name string) machine.Keep {
		return machine.Keep{Source: source, TypeURL: typeURL, Changes: []machine.Kept{{Name: name}}}
	}
	settle := func(begins string, known ...string) machine.Keep {
		return machine.Keep{TypeURL: "t", Settled: begins, Known: known, Covers: func(name string) bool { return strings.HasPrefix(name, begins) }}
	}
	add(put("gone"))
	add(remove(0, "t", "gone"))
	add(remove(0, "t", "back"))
	add(put("back"))
	add(remove(1, "t", "elsewhere"))
	add(remove(0, "u", "typed"))
	add(machine.Keep{TypeURL: "t", Changes: []machine.Kept{{Name: "*", Complete: true}}})
	add(put("g/left"))
	add(settle("g/", "g/known"))
	add(put("g/new"))
	gone := b.removed(key{0, "t"})
	for name, want := range map[string]bool{
		"gone": true, "back": false, "elsewhere": false, "typed": false, "*": false, "never": false,
		"g/left": true, "g/known": false, "g/new": false, "g/stored": true,
	} {
		if got := gone(name); got != want {
			t.Errorf("%s is gone: %t, want %t", name, got, want)
		}
	}
}
