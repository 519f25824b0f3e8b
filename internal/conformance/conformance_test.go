package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/xdswatch/xdswatch/internal/conformance/places"
	"github.com/xdswatch/xdswatch/internal/conformance/rules"
)

// The document says what the scripts and tests say.
func TestUpToDate(t *testing.T) {
	if err := run(true); err != nil {
		t.Error(err)
	}
}

func TestCollectTests(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x_test.go")
	src := `package x

// spec: ACK-1, "words" ACK-2
func TestA(t *testing.T) {
	// spec: ACK-3
}

// spec: ACK-4
func helper() {}
`
	if err := os.WriteFile(file, []byte(src), 0o600); err != nil {
		t.Fatal(err)
	}
	var got []string
	err := collectTests(file, "x/x_test.go", func(id string, p proof) error {
		got = append(got, id+" "+p.name+" "+p.path)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"ACK-1 TestA x/x_test.go", "ACK-2 TestA x/x_test.go", "ACK-3 TestA x/x_test.go",
		"ACK-4 x_test.go x/x_test.go",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A rule that does not exist cannot be cited.
func TestCollectUnknownRule(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, scripts)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	text := "# A claim.\n# spec: ACK-99\n\nwatch w1 cds a\n----\n"
	if err := os.WriteFile(filepath.Join(dir, "a.txtar"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := collect(root); err == nil || !strings.Contains(err.Error(), "ACK-99") {
		t.Errorf("got %v, want an error that names ACK-99", err)
	}
}

// A rule that is proven and loses its place in the code is an error, unless it never had one.
func TestShrink(t *testing.T) {
	proofs := map[string][]proof{"TYPE-1": {{}}, "TYPE-2": {{}}}
	where := map[string][]places.Place{"TYPE-2": {{}}}
	if got, err := shrink("TYPE-1 TYPE-2 TYPE-3", proofs, where); err != nil || got != "TYPE-1\n" {
		t.Errorf("got %q, %v, want TYPE-1 alone", got, err)
	}
	if _, err := shrink("TYPE-2", proofs, where); err == nil || !strings.Contains(err.Error(), "TYPE-1") {
		t.Errorf("got %v, want an error that names TYPE-1", err)
	}
}

// repository is where this one is, from here.
const repository = "../.."

var collected = sync.OnceValues(func() (map[string][]proof, error) { return collect(repository) })

// allProofs has the proofs of this repository, which are many files, collected once for all tests.
func allProofs(t *testing.T) map[string][]proof {
	t.Helper()
	proofs, err := collected()
	if err != nil {
		t.Fatal(err)
	}
	return proofs
}

// A rule that is proven does not say why it is not.
func TestOpenRules(t *testing.T) {
	proofs := allProofs(t)
	for _, s := range rules.All() {
		for _, r := range s.Rules {
			if r.Open != "" && len(proofs[r.ID]) > 0 {
				t.Errorf("%s is proven by %s, and is said not to be: %s", r.ID, proofs[r.ID][0].name, r.Open)
			}
		}
	}
}

func TestRulesAreDistinct(t *testing.T) {
	seen, words := map[string]bool{}, map[string]bool{}
	for _, s := range rules.All() {
		for _, r := range s.Rules {
			if !places.ID.MatchString(r.ID) || seen[r.ID] {
				t.Errorf("%q is no ID, or stands twice", r.ID)
			}
			if r.Text == "" || words[r.Text] || strings.Contains(r.Text, "|") {
				t.Errorf("%s: the text %q is empty, stands twice or breaks the table", r.ID, r.Text)
			}
			seen[r.ID], words[r.Text] = true, true
		}
	}
}

// Each mutation still has its place, and a script that cites its rule. Whether the script
// notices is seen by make mutate.
func TestMutationsApply(t *testing.T) {
	proofs := allProofs(t)
	found, err := places.Find(filepath.Join(repository, rules.Machine), rules.IDs())
	if err != nil {
		t.Fatal(err)
	}
	broken := map[string]bool{}
	for _, mu := range rules.Mutations() {
		broken[mu.Rule] = true
		at, err := places.Only(found, mu.Rule, mu.In)
		if err == nil {
			_, err = places.Apply(filepath.Join(repository, rules.Machine), at, mu.Change)
		}
		if err != nil {
			t.Errorf("%s, %q: %v", mu.Rule, mu.Says, err)
		}
		script := proof{mu.Script, scripts + "/" + mu.Script + ".txtar"}
		if !slices.Contains(proofs[mu.Rule], script) {
			t.Errorf("%s: %s does not cite it", mu.Rule, mu.Script)
		}
	}
	if len(broken) < 20 {
		t.Errorf("%d rules are broken, want 20", len(broken))
	}
}
