package view

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/internal/cputime"
	"github.com/xdswatch/xdswatch/internal/race"
)

// What is waited for, and what is watched, is listed in a time in proportion to it.
func TestCostOfLists(t *testing.T) {
	race.SkipCost(t)
	const n = 10_000
	clusters := make([]string, n)
	for i := range clusters {
		clusters[i] = fmt.Sprintf("c%d", i)
	}
	d := newDriver(t, []string{"lds", "l"}, nil)
	d.run("start")
	d.run("lds l 1 inline:*=" + strings.Join(clusters, ","))
	begun := time.Now()
	if waiting, watched := len(d.core.waiting()), len(d.core.watched()); waiting != n || watched != n+1 {
		t.Errorf("%d are waited for, %d watched", waiting, watched)
	}
	if took := time.Since(begun); took > 2*time.Second { // some 50 ms on an idle machine
		t.Errorf("it took %v", took)
	}
}

// V1: a cluster of a view takes no more than 400 bytes beside its messages.
func TestCostOfMemory(t *testing.T) {
	race.SkipCost(t)
	if bytes := memoryOfCluster(t, 10_000); bytes > 400 {
		t.Errorf("a cluster takes %.0f bytes", bytes)
	}
}

// An event costs what it changes: resources that come one by one, or change, cost as much for each of many as for each
// of few. Whoever follows all links, or all members, for each of them allocates what he follows.
func TestEventsCostWhatTheyChange(t *testing.T) {
	some := 200
	if testing.Short() {
		some = 50
	}
	for name, each := range map[string]func(d *driver, n int){
		"the members of an aggregate": func(d *driver, n int) {
			d.tell("cds", "root", "agg:"+numbered("m", n, ","))
			for i := range n {
				d.tell("cds", fmt.Sprint("m", i), "static:1.1.1.1")
			}
			for i := range n {
				d.tell("cds", fmt.Sprint("m", i), "static:1.1.1.2")
			}
		},
		"the last member first": func(d *driver, n int) {
			d.tell("cds", "root", "agg:"+numbered("m", n, ","))
			for i := range n {
				d.tell("cds", fmt.Sprint("m", n-1-i), "static:1.1.1.1")
			}
		},
		"the aggregates in an aggregate": func(d *driver, n int) {
			d.tell("cds", "root", "agg:"+numbered("a", n, ","))
			for i := range n {
				d.tell("cds", fmt.Sprint("a", i), fmt.Sprintf("agg:m%d,m%d", i, i+1))
			}
			for i := range n + 1 {
				d.tell("cds", fmt.Sprint("m", i), "static:1.1.1.1")
			}
		},
		"the aggregates of routes": func(d *driver, n int) {
			d.tell("cds", "root", "static:1.1.1.1")
			d.tell("rds", "r", "*="+numbered("a", n, ","))
			for i := range n {
				d.tell("cds", fmt.Sprint("a", i), fmt.Sprintf("agg:m%d,m%d", i, i+1))
			}
			for i := range n + 1 {
				d.tell("cds", fmt.Sprint("m", i), "static:1.1.1.1")
			}
			for i := range n {
				d.tell("cds", fmt.Sprint("a", i), fmt.Sprintf("agg:m%d,m%d", i+1, i))
			}
		},
		"the aggregates that share a member": func(d *driver, n int) {
			d.tell("cds", "root", "static:1.1.1.1")
			d.tell("rds", "r", "*="+numbered("a", n, ","))
			for i := range n {
				d.tell("cds", fmt.Sprint("a", i), fmt.Sprintf("agg:m%d,shared", i))
			}
			for i := range n {
				d.tell("cds", fmt.Sprint("m", i), "static:1.1.1.1")
			}
			d.tell("cds", "shared", "static:1.1.1.1")
			for i := range n {
				d.tell("cds", fmt.Sprint("a", i), fmt.Sprintf("agg:m%d,shared", i), "alt:x")
			}
		},
		"the clusters that a hook leads to": func(d *driver, n int) {
			d.tell("cds", "root", "static:1.1.1.1")
			d.tell("rds", "r", "*="+numbered("c", n, ","))
			for i := range n {
				d.tell("cds", fmt.Sprint("c", i), "static:1.1.1.1", "alt:+"+fmt.Sprint("m", i))
			}
			for i := range n {
				d.tell("cds", fmt.Sprint("m", i), "static:1.1.1.1")
			}
		},
		"the virtual hosts that the server sends": func(d *driver, n int) {
			d.tell("cds", "root", "static:1.1.1.1")
			d.tell("rds", "r", "*=root", "vhds")
			d.quiet("synced vhds *")
			for i := range n {
				d.quiet(fmt.Sprintf("vhost r/v%d h%d.org=c%d", i, i, i))
				d.tell("cds", fmt.Sprint("c", i), "static:1.1.1.1")
			}
			for i := range n {
				d.tell("rds", "r", "*=root", fmt.Sprintf("own%d.org=root", i), "vhds")
			}
		},
		"the virtual hosts on demand": func(d *driver, n int) {
			d.tell("cds", "root", "static:1.1.1.1")
			d.tell("rds", "r", "*=root", "vhds")
			d.quiet("synced vhds *")
			for i := range n {
				host := fmt.Sprintf("h%d.org", i)
				d.quiet("host " + host)
				d.tell("vhds", "r/"+host, fmt.Sprintf("%s=c%d", host, i))
				d.tell("cds", fmt.Sprint("c", i), "static:1.1.1.1")
				if vh, _ := d.core.snapshot.hostOf(host); vh.GetName() != host { // who asks looks at each snapshot
					d.t.Fatalf("%s has the virtual host %v", host, vh)
				}
			}
		},
		"the clusters of routes": func(d *driver, n int) {
			d.tell("cds", "root", "static:1.1.1.1")
			d.tell("rds", "r", "*="+numbered("c", n, ","))
			for i := range n {
				d.tell("cds", fmt.Sprint("c", i), "eds")
			}
			for i := range n {
				d.tell("eds", fmt.Sprint("c", i), "1.1.1.1")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			cost := func(n int) float64 {
				d := newDriver(t, []string{"rds", "r"}, []string{"composite"})
				d.step()
				d.tell("rds", "r", "*=root")
				before := allocated()
				each(d, n)
				if s := d.core.snapshot; s == nil || !s.Complete || s.Len() < n {
					t.Fatal("not published:", s)
				}
				return float64(allocated()-before) / float64(n)
			}
			if few, many := cost(some), cost(8*some); many > 2*few {
				t.Errorf("each of %d costs %.0f bytes, and each of %d %.0f", some, few, 8*some, many)
			}
		})
	}
}

// An endpoint of a collection (LEDS) that changes is no reason to compare the others: 4,000 that change one by one took
// 14 s of computing, and take one.
func TestCostOfCollectionsThatChange(t *testing.T) {
	race.SkipCost(t)
	d := newDriver(t, []string{"cds", "a"}, nil)
	for _, in := range []string{"start", "cds a 1 eds", "eds a 1 leds:l", "synced leds l"} {
		d.run(in)
	}
	const n = 2000
	change := func(address string) time.Duration {
		begun := cputime.Used()
		for i := range n {
			d.quiet(fmt.Sprintf("member l k%d %s", i, address))
		}
		return cputime.Used() - begun
	}
	come := change("1.1.1.1")
	if changed := change("1.1.1.2"); changed > 10*come+time.Second { // 26 times as much, if all are compared
		t.Errorf("%d changes took %v", n, changed)
	}
}

// The domains of routes are looked up in one table, whatever else of the listener changes.
func TestDomainsAreReadOnce(t *testing.T) {
	d := newDriver(t, []string{"lds", "l"}, nil)
	for _, in := range []string{"start", "lds l 1 rds:r,q", "rds r 1 a.org=a", "rds q 1 b.org=a", "cds a 1 static:1.1.1.1"} {
		d.run(in)
	}
	before := d.core.snapshot
	d.run("rds q 2 c.org=a")
	if now := d.core.snapshot; now == before || now.Routes[0].finder != before.Routes[0].finder || now.Routes[1].finder == before.Routes[1].finder {
		t.Errorf("%v is read as %v was", show(now), show(before))
	}
}

// numbered are so many names.
func numbered(prefix string, n int, sep string) string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprint(prefix, i)
	}
	return strings.Join(all, sep)
}

// tell has the core take a resource of words, and step.
func (d *driver) tell(kind, name string, words ...string) {
	d.t.Helper()
	var m proto.Message = build(d.t, kind, name, words)
	w, ok := d.watched[kind+" "+name]
	if !ok {
		d.t.Fatalf("%s %s is not watched", kind, name)
	}
	d.core.take(d.now, w, &client.Event[any]{Kind: client.EventUpdated, Type: kinds[kind].TypeURL(), Name: name, Asked: name, Value: m})
	d.stepQuietly()
}

// quiet is run without what it prints and checks.
func (d *driver) quiet(input string) {
	d.command(strings.Fields(input))
	d.stepQuietly()
}

func (d *driver) stepQuietly() {
	e := d.core.step(d.now)
	for _, w := range e.watch {
		d.watched[shortOf(w.typeURL())+" "+w.name] = w
	}
	for _, w := range e.unwatch {
		delete(d.watched, shortOf(w.typeURL())+" "+w.name)
	}
}

// allocated is how many bytes the program has allocated so far.
func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}
