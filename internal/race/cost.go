package race

import "testing"

// SkipCost skips a test of time and memory in a short run, and where the race detector multiplies
// both: `make costs` runs the tests that call it, whose names begin with TestCost.
func SkipCost(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("long: as large as it may be")
	}
	if Enabled {
		t.Skip("the race detector multiplies what is measured here: make costs runs it without")
	}
}
