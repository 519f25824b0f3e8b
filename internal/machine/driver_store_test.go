package machine

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/xdswatch/xdswatch/testutil/script"
	"github.com/xdswatch/xdswatch/xdstp"
)

// put gives the store what it has from an earlier run; without words it has nothing of the type any more.
func (d *driver) put(short string, words []string) {
	if len(words) == 0 {
		delete(d.store, short)
	}
	d.store[short] = append(d.store[short], stored(d.t, d.now, short, words)...)
}

// stored are entries of a store, as the words of the command store say them.
func stored(t testing.TB, now time.Time, short string, words []string) (ks []Kept) {
	for _, r := range script.Stored(short, words) {
		name, err := xdstp.Canonical(r.Name)
		if err != nil {
			t.Fatal(err)
		}
		k := Kept{
			Name: name, Version: r.Version, Raw: r.Resource.GetValue(), Updated: now.UnixNano(), Complete: r.Resource == nil,
		}
		if r.Ttl != nil {
			k.Expires = now.Add(r.Ttl.AsDuration()).UnixNano()
		}
		ks = append(ks, k)
	}
	return ks
}

// answer tells what the store has of what is looked for, each entry in a part of its own.
func (d *driver) answer(ld *Load) {
	wanted := map[string]bool{}
	for _, name := range ld.Names {
		wanted[name] = true
	}
	for _, e := range d.store[script.Short(ld.TypeURL)] {
		if ld.All || wanted[e.Name] {
			d.step(Loaded{Load: ld, Entries: []Kept{e}})
		}
	}
	d.step(Loaded{Load: ld, Last: true})
}

// keeps writes what the store is told.
func keeps(k Keep) (lines []string) {
	short := script.Short(k.TypeURL)
	if k.Covers != nil {
		slices.Sort(k.Known)
		return []string{fmt.Sprintf("settled %s %v", short, k.Known)}
	}
	for _, c := range k.Changes {
		switch {
		case c.Complete:
			lines = append(lines, fmt.Sprintf("keep %s %s", short, c.Name))
		case c.Raw == nil:
			lines = append(lines, fmt.Sprintf("forget %s %s", short, c.Name))
		default:
			lines = append(lines, fmt.Sprintf("keep %s %s version=%s", short, c.Name, c.Version))
		}
	}
	return lines
}
