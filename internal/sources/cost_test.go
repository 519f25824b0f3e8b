package sources

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/internal/machine"
	"github.com/xdswatch/xdswatch/internal/race"
)

// The default source of a scope costs nothing for each authority of the bootstrap.
//
// spec: H-10
func TestCostOfScopes(t *testing.T) {
	race.SkipCost(t)
	const authorities, scopes = 5000, 100
	boot := &bootstrap.Config{
		Servers: servers("one"), Authorities: map[string]bootstrap.Authority{},
		DefaultSource: &bootstrap.Source{Servers: servers("one")},
	}
	for i := range authorities {
		boot.Authorities[fmt.Sprint("a", i)] = bootstrap.Authority{}
	}
	table, s, _, _ := sourcesOf(t, boot, func([]machine.Source) {})
	r, err := table.Resolve("type.googleapis.com/a.B", "xdstp://other/a.B/x")
	if err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for i := range scopes {
		if _, err := s.Find(table, Place{r.Key(), fmt.Sprint(i)}, r); err != nil {
			t.Fatal(err)
		}
	}
	runtime.ReadMemStats(&after)
	if took := (after.TotalAlloc - before.TotalAlloc) / scopes; took > 64<<10 {
		t.Errorf("a scope took %d KiB", took>>10)
	}
}
