package view

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xdswatch/xdswatch/internal/race"
)

// Who asks for one cluster, or one virtual host on demand, is told what that waits for, and not what
// others do.
//
// spec: ONDEMAND-4, VIEW-20
func TestWaitingForOne(t *testing.T) {
	d := newDriver(t, []string{"rds", "r"}, []string{"secrets"})
	for _, step := range []struct{ input, key, want string }{
		{"start ; hold c", "c", "rds r cds c"},
		{"rds r 1 x.org=a vhds ; host h.org ; host i.org", "c", "cds c"},
		{"cds c 1 eds sds:s ; hold d", "c", "eds c sds s"},
		{"hold g", "g", "cds g"},
		{"cds g 1 agg:m,n", "g", "cds m cds n"},
		{"cds m 1 eds", "g", "eds m cds n"},
		{"cds n 1 list:names", "g", "eds m agg names"},
		{"eds m 1 leds:some", "g", "leds some agg names"},
		{"start", "d", "cds d"},
		{"start", "h.org", "vhds r/h.org"},
		{"vhds r/h.org 1 h.org=z", "h.org", "cds z"},
	} {
		d.run(step.input)
		key := slotKey{strings.Contains(step.key, "."), step.key}
		var got []string
		for _, w := range d.core.waitingFor(key) {
			got = append(got, shortOf(w.Type)+" "+w.Name)
		}
		want := strings.Fields(step.want)
		if text := strings.Fields(strings.Join(got, " ")); !slices.Equal(sortedPairs(text), sortedPairs(want)) {
			t.Errorf("%q: %s waits for %q, want %q", step.input, step.key, text, want)
		}
	}
	for _, line := range []string{"cds d 1 static:1.1.1.1", "cds a 1 eds"} {
		d.run(line)
	}
	if one, all := d.core.waitingFor(slotKey{false, "d"}), d.core.waiting(); len(one) != len(all) {
		t.Errorf("what is there waits for %d, and all for %d", len(one), len(all))
	}
}

// sortedPairs are types and names in order.
func sortedPairs(words []string) (pairs []string) {
	for pair := range slices.Chunk(words, 2) {
		pairs = append(pairs, strings.Join(pair, " "))
	}
	slices.Sort(pairs)
	return pairs
}

// The error of a lookup in vain names what was asked for, however many others are.
//
// spec: ONDEMAND-4
func TestLookupInVain(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, r *rig) {
		for i := range 2 * MaxWaiting {
			defer r.v.Hold(fmt.Sprint("other-", i))()
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := r.v.Cluster(ctx, "wanted")
		unready, ok := errors.AsType[*NotReadyError](err)
		if !ok || unready.Count != 1 || unready.Waiting[0].Name != "wanted" || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the error is %v", err)
		}
		synctest.Wait()
	})
}

// Ten thousand lookups that end in vain at one moment cost what each of them costs alone.
func TestCostOfLookupsInVain(t *testing.T) {
	race.SkipCost(t)
	const n = 10_000
	d := newDriver(t, []string{"cds", "root"}, nil)
	for i := range n {
		d.core.hold(d.now, fmt.Sprint("c", i))
	}
	d.step()
	begun := time.Now()
	for i := range n {
		if waiting := d.core.waitingFor(slotKey{false, fmt.Sprint("c", i)}); len(waiting) != 1 {
			t.Fatalf("c%d waits for %v", i, waiting)
		}
	}
	if took := time.Since(begun); took > 5*time.Second { // some 20 ms on an idle machine; with a list of all for each, a minute
		t.Errorf("it took %v", took)
	}
}
