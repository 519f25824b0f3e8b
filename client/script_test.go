package client_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/xdswatch/xdswatch/testutil/script"
)

// TestScripts runs every script through a whole client, with gRPC over a connection in
// memory to a scripted server. A script that cannot be run this way says why in its header:
// "only: machine", and the reason. A short run has a third of them: in internal/machine all run.
func TestScripts(t *testing.T) {
	scripts, err := script.Load("../testdata/scripts")
	must(t, err)
	ran := 0
	for _, s := range scripts {
		name := strings.TrimSuffix(s.Name, ".txtar")
		if only := s.Headers["only"]; len(only) > 1 {
			t.Logf("not through the client: %s: %s", name, strings.Join(only[1:], " "))
			continue
		}
		if ran++; testing.Short() && ran%3 != 0 {
			continue
		}
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { runScript(t, s) })
		})
	}
	t.Logf("%d of %d scripts are for the client", ran, len(scripts))
	if ran == 0 {
		t.Error("no script is for the client")
	}
}

func runScript(t *testing.T, s *script.Script) {
	d := newDriver(t, s)
	defer d.close()
	for _, st := range s.Steps {
		got := d.run(st.Input)
		if diff := st.Diff(got, d.lanes(st.Want, got)...); diff != "" {
			t.Errorf("%s", diff)
		}
	}
	if words := s.Unsought(); len(words) > 0 {
		t.Errorf("the driver knows no %q", words)
	}
}

// lanes are what is compared, each in its order: the requests of a stream, what the watches
// of an authority's names hear, what each watch of a collection hears, since that comes in
// batches, and single lines of a dump, whose order is the client's own.
func (d *driver) lanes(want, got []string) []script.Lane {
	seen := map[string]bool{}
	var lanes []script.Lane
	for _, line := range slices.Concat(want, got) {
		if lane := d.laneOf(line); !script.Inside(line) && !seen[lane] {
			seen[lane] = true
			lanes = append(lanes, func(l string) bool { return !script.Inside(l) && d.laneOf(l) == lane })
		}
	}
	return lanes
}

func (d *driver) laneOf(line string) string {
	if dumped(line) {
		return line
	}
	first, rest, _ := strings.Cut(line, " ")
	if script.Requests(line) {
		number, _, _ := strings.Cut(rest, " ")
		return first + number
	}
	if name := strings.TrimSuffix(first, ":"); !slices.Contains(d.collections, name) {
		return "names of " + d.authority[name]
	}
	return first
}

func dumped(line string) bool { return strings.HasPrefix(line, "= ") }
