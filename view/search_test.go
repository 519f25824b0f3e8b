package view

import (
	"fmt"
	"math/rand/v2"
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
			d.tell("rds", "r", "*=a000,root")
			began, before := cputime.Used(), allocated()
			d.takeCluster("root", "agg:"+strings.Join(all, ","))
			d.stepQuietly()
			for i, a := range all {
				d.takeCluster(a, "agg:"+strings.Join(members(i), ","))
			}
			d.stepQuietly()
			for p := range d.core.clusters {
				if strings.HasPrefix(p, "b") { // each leads back to all
					d.takeCluster(p, "agg:root")
				}
			}
			d.stepQuietly()
			if d.core.snapshot != nil {
				t.Fatal("nothing is waited for:", show(d.core.snapshot))
			}
			d.takeCluster("late", "static:1.1.1.1")
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

// runs is how many random runs there are: a tenth where each takes long, and less where a short answer is wanted.
func runs(n uint64) uint64 {
	switch {
	case testing.Short():
		return n / 25
	case race.Enabled:
		return n / 10
	}
	return n
}

// Aggregates that name each other at random, and change as they come, wait as long as something that they lead
// to waits, and no longer.
func TestSearchOfLoops(t *testing.T) {
	for seed := range runs(1000) {
		r := rand.New(rand.NewPCG(seed, 0))
		const n = 10
		d := newDriver(t, []string{"rds", "r"}, nil)
		d.step()
		d.tell("rds", "r", "*="+numbered("c", n, ","))
		for range 3 * n {
			words := []string{"static:1.1.1.1"}
			switch r.IntN(10) {
			case 0:
			case 1:
				words = []string{"eds"} // which has no endpoints yet
			default:
				all := make([]string, 1+r.IntN(3))
				for i := range all {
					all[i] = fmt.Sprint("c", r.IntN(n))
				}
				words = []string{"agg:" + strings.Join(all, ",")}
			}
			d.takeCluster(fmt.Sprint("c", r.IntN(n)), words...)
			if r.IntN(6) > 0 { // several come at once
				continue
			}
			d.stepQuietly()
			d.checkLinks()
			for name, p := range d.core.clusters {
				if p.cur.Message != nil && len(d.core.waitingBelow(p.awaited())) > 0 {
					t.Errorf("%s is used too early", name)
				}
			}
			if t.Failed() {
				t.Fatalf("seed %d", seed)
			}
		}
	}
}

// Searches begin where the last one ended, also where clusters go and come again, get their endpoints and leave the
// routes: nothing waits that has all that it waits for.
func TestSearchOfChanges(t *testing.T) {
	for seed := range runs(2000) {
		r := rand.New(rand.NewPCG(seed, 0))
		const n = 5
		some := func() string {
			all := make([]string, 1+r.IntN(3))
			for i := range all {
				all[i] = fmt.Sprint("c", r.IntN(n))
			}
			return strings.Join(all, ",")
		}
		d := newDriver(t, []string{"rds", "r"}, nil)
		d.step()
		var all []string
		for range 60 {
			input, name := "rds r 1 *="+some(), fmt.Sprint("c", r.IntN(n))
			switch r.IntN(8) {
			case 0:
			case 1:
				input = "gone cds " + name
			case 2:
				input = "cds " + name + " 1 eds"
			case 3:
				input = "eds " + name + " 1 1.1.1.1"
			default:
				input = "cds " + name + " 1 agg:" + some()
			}
			all = append(all, input)
			d.command(strings.Fields(input))
			if r.IntN(4) == 0 { // several come at once
				continue
			}
			d.step()
			d.checkLinks()
			if t.Failed() {
				t.Fatalf("seed %d: %s", seed, strings.Join(all, "; "))
			}
		}
	}
}

// takeCluster has the core take a cluster, without a step.
func (d *driver) takeCluster(name string, words ...string) {
	var m proto.Message = build(d.t, "cds", name, words)
	d.core.take(d.now, d.core.watchOf(d.core.clusters[name]), &client.Event[any]{Kind: client.EventUpdated, Type: cdsKind.TypeURL(), Name: name, Asked: name, Value: m})
}
