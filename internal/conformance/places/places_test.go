package places

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const source = `package x

// Limits of answers.
const (
	most = 3 // ACK-5
)

// T is a type.
type T[K any] struct {
	// ACK-1, A57: by the loop.
	owed []int
}

// one says one thing.
// ACK-2: it does.
func (t *T[K]) one(a, b, c bool) bool { return a && (b || c) }

func two(xs []int) int {
	// It is not in vain
	// that this speaks of (ACK-9).
	//
	// ACK-3: the first,
	// in two lines.
	if len(xs) > 0 && xs[0] > 1 {
		xs = nil
	} else if xs == nil { // ACK-6
		return 1
	}
	switch {
	// ACK-4: both.
	case len(xs) == 1, len(xs) == 2:
		f(1, min(2, 3)) // ACK-7: done.
	}
	return 0
}
`

var known = map[string]bool{
	"ACK-1": true, "ACK-2": true, "ACK-3": true, "ACK-4": true, "ACK-5": true, "ACK-6": true, "ACK-7": true, "ACK-9": true,
}

func TestPlaces(t *testing.T) {
	found, err := inFile("x.go", []byte(source), known)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range found {
		got = append(got, p.Rule+" "+p.In)
	}
	want := "ACK-5 most, ACK-1 T, ACK-2 T.one, ACK-3 two, ACK-6 two, ACK-4 two, ACK-7 two"
	if text := strings.Join(got, ", "); text != want {
		t.Errorf("got %s, want %s", text, want)
	}
}

func TestBadCitations(t *testing.T) {
	for text, want := range map[string]string{
		"ACK-99: no such rule": "ACK-99 is no rule",
		"ACK-1 without a mark": `write "ACK-1: …"`,
	} {
		_, err := inFile("x.go", []byte("package x\n\n// "+text+"\nvar x int\n"), known)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "x.go:3") {
			t.Errorf("%q: got %v, want x.go:3 and %s", text, err, want)
		}
	}
}

func TestChanges(t *testing.T) {
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "x.go"), []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	found, err := Find(root, known)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		rule   string
		change Change
		want   string
	}{
		{"ACK-5", Put("300"), "most = 300 // ACK-5"},
		{"ACK-2", Never(), "return false && (a && (b || c)) }"},
		{"ACK-2", Always().Of(1, 0), "return a && (true || (b) || c) }"},
		{"ACK-3", Never().Of(1), "if len(xs) > 0 && false && (xs[0] > 1) {"},
		{"ACK-6", Always(), "else if true || (xs == nil) {"},
		{"ACK-4", Never().Of(1), "case len(xs) == 1, false && (len(xs) == 2):"},
		{"ACK-4", Put("3").Of(0, 1), "case len(xs) == 3, len(xs) == 2:"},
		{"ACK-7", Drop(), "if false { f(1, min(2, 3)) } // ACK-7"},
		{"ACK-7", Put("$ + 1").Of(1, 0), "f(1, min(2 + 1, 3))"},
		{"ACK-3", whenOn(Never().Of(1)), "if len(xs) > 0 && (!(on) && (xs[0] > 1)) {"},
		{"ACK-2", whenOn(Always()), "return (on || (a && (b || c))) }"},
		{"ACK-7", whenOn(Drop()), "if !(on) { f(1, min(2, 3)) } // ACK-7"},
	} {
		at, err := Only(found, c.rule, "")
		if err != nil {
			t.Fatal(err)
		}
		mutant, err := Apply(root, at, c.change)
		if err != nil || !strings.Contains(string(mutant), c.want) {
			t.Errorf("%s: got %v and\n%s\nwant %s", c.rule, err, mutant, c.want)
		}
	}
	if _, ok := Put("300").When("on"); ok {
		t.Error("a condition can choose a text")
	}
	at, err := Only(found, "ACK-4", "two")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []Change{Never(), Never().Of(2), Never().Of(0, 2)} {
		if _, err := Apply(root, at, c); err == nil {
			t.Errorf("%v can be made", c)
		}
	}
	for _, in := range []string{"one", "T.two"} {
		if _, err := Only(found, "ACK-4", in); err == nil {
			t.Errorf("ACK-4 stands in %s", in)
		}
	}
}

func whenOn(c Change) Change {
	when, _ := c.When("on")
	return when
}
