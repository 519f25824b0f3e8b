package configdump

import (
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/xdswatch/xdswatch/internal/race"
)

// A path keeps all of the field that it leads to, whichever other paths lead there or further.
func TestParseMask(t *testing.T) {
	for text, want := range map[string]mask{
		"":              {},
		" , ":           {},
		"a":             {"a": {}},
		"a.b":           {"a": {"b": {}}},
		"a.b, a.c":      {"a": {"b": {}, "c": {}}},
		"a,a.b":         {"a": {}},
		"a.b,a":         {"a": {}},
		"a.b.c,a,a.b.d": {"a": {}},
		"a.b.c,a.b,a.d": {"a": {"b": {}, "d": {}}},
		"a.b,a.b.c,a":   {"a": {}},
	} {
		if diff := cmp.Diff(want, parseMask(text)); diff != "" {
			t.Errorf("mask %q (-want +got):\n%s", text, diff)
		}
	}
}

// A request may have a mask as long as its headers, with a path through a message that contains itself.
func TestCostOfMask(t *testing.T) {
	race.SkipCost(t)
	const filter, again = "bootstrap.admin.access_log.filter.", "and_filter.filters."
	for what, text := range map[string]string{
		"deep": strings.Repeat("a.", 50_000), "wide": strings.Repeat("a,", 50_000), "again": strings.Repeat("a.b.c,", 20_000),
		"long": strings.Repeat(" ", maxMask+1), "recursive": filter + strings.Repeat(again, 5_000) + "a",
		"longest": filter + strings.Repeat(again, (maxMask-len(filter))/len(again)) + "a",
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := newDump(Options{Mask: text})
		runtime.ReadMemStats(&after)
		if got := after.TotalAlloc - before.TotalAlloc; err == nil || got > 2<<20 {
			t.Errorf("%s: a mask of %d bytes allocates %d bytes, and the error is %.99v", what, len(text), got, err)
		}
	}
	if _, err := newDump(Options{Mask: "bootstrap" + strings.Repeat(" ", maxMask-len("bootstrap"))}); err != nil {
		t.Errorf("a mask of %d bytes: %v", maxMask, err)
	}
}
