package machine

import (
	"fmt"

	"github.com/xdswatch/xdswatch/testutil/script"
	"github.com/xdswatch/xdswatch/xdstp"
)

// put gives the store what it has from an earlier run.
func (d *driver) put(short string, words []string) {
	for _, r := range script.Stored(short, words) {
		name, err := xdstp.Canonical(r.Name)
		if err != nil {
			d.t.Fatal(err)
		}
		d.store[short] = append(d.store[short], Entry{
			Name: name, Version: r.Version, Raw: r.Resource.GetValue(), Updated: d.now, TTL: r.Ttl.AsDuration(), Complete: r.Resource == nil,
		})
	}
}

// answer is what the store has of what is looked for.
func (d *driver) answer(ld *Load) Loaded {
	wanted := map[string]bool{}
	for _, name := range ld.Names {
		wanted[name] = true
	}
	ev := Loaded{Load: ld}
	for _, e := range d.store[script.Short(ld.TypeURL)] {
		if ld.All || wanted[e.Name] {
			ev.Entries = append(ev.Entries, e)
		}
	}
	return ev
}

// keeps writes what the store is told.
func keeps(k Kept) string {
	short := script.Short(k.TypeURL)
	switch {
	case k.Covers != nil:
		return fmt.Sprintf("settled %s %s", short, k.Name)
	case k.Complete:
		return fmt.Sprintf("keep %s %s", short, k.Name)
	case k.Raw == nil:
		return fmt.Sprintf("forget %s %s", short, k.Name)
	}
	return fmt.Sprintf("keep %s %s version=%s", short, k.Name, k.Version)
}
