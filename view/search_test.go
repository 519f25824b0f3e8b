package view

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/internal/cputime"
	"github.com/xdswatch/xdswatch/internal/race"
)

// Aggregates that name each other in every way wait for one member, and get it, in a time and a memory in proportion
// to what their messages hold: not for each of them anew.
func TestCostOfWaiting(t *testing.T) {
	race.SkipCost(t)
	const n = 600
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("a%03d", i)
	}
	for name, members := range map[string]func(i int) []string{
		"one another":      func(int) []string { return append([]string{"late"}, all...) },
		"the last is late": func(int) []string { return append(slices.Clone(all), "late") },
		"one has all": func(i int) []string {
			if i == 0 {
				return append([]string{"late"}, numberedNames("b", 20_000)...)
			}
			return []string{all[0]}
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDriver(t, []string{"rds", "r"}, nil)
			d.step()
			take := func(name string, words ...string) {
				w := d.core.watchOf(d.core.clusters[name])
				var m proto.Message = build(t, "cds", name, words)
				d.core.take(d.now, w, &client.Event[any]{Kind: client.EventUpdated, Type: cdsKind.TypeURL(), Name: name, Asked: name, Value: m})
			}
			d.tell("rds", "r", "*=a000,root")
			began, before := cputime.Used(), allocated()
			take("root", "agg:"+strings.Join(all, ","))
			d.stepQuietly()
			for i, a := range all {
				take(a, "agg:"+strings.Join(members(i), ","))
			}
			d.stepQuietly()
			for p := range d.core.clusters {
				if strings.HasPrefix(p, "b") { // each leads back to all
					take(p, "agg:root")
				}
			}
			d.stepQuietly()
			if d.core.snapshot != nil {
				t.Fatal("nothing is waited for:", show(d.core.snapshot))
			}
			take("late", "static:1.1.1.1")
			d.stepQuietly()
			if s := d.core.snapshot; s == nil || !s.Complete {
				t.Fatal("not published:", show(s))
			}
			took, used := cputime.Used()-began, (allocated()-before)>>20
			t.Logf("it took %v and %d MB", took, used)
			if took > 8*time.Second || used > 400 {
				t.Errorf("it took %v and %d MB", took, used)
			}
		})
	}
}

func numberedNames(prefix string, n int) []string {
	return strings.Split(numbered(prefix, n, ","), ",")
}
