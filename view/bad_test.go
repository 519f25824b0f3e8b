package view

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/proto"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/internal/race"
)

// A route that names ten thousand clusters is followed; one of them in trouble harms no other.
func TestManyNames(t *testing.T) {
	names := 10_000
	if testing.Short() {
		names = 2000
	}
	d := newDriver(t, []string{"rds", "r"}, nil)
	d.run("start")
	d.run("rds r 1 " + benchRouteWords(names))
	if len(d.watched) != names+1 {
		t.Fatalf("%d are watched", len(d.watched))
	}
	for i := range names {
		words := "static:1.1.1.1"
		if i == names/2 {
			d.command(strings.Fields("bad cds " + benchName(i)))
			continue
		}
		d.command(strings.Fields("cds " + benchName(i) + " 1 " + words))
	}
	d.run("start")
	s := d.core.snapshot
	if s == nil || s.Len() != names || s.Cluster(benchName(names/2)).Status() != StatusError || s.Cluster(benchName(names/2+1)).Status() != StatusOK {
		t.Error("not all of them are published")
	}
}

// More names than the bound are not watched, and no entries are made for them.
func TestNamesOverBound(t *testing.T) {
	d := newDriver(t, []string{"rds", "r"}, []string{"names=1000"})
	d.run("start")
	d.run("rds r 1 " + benchRouteWords(50_000))
	if len(d.watched) != 1000 || len(d.core.clusters) != 999 {
		t.Errorf("%d are watched, %d clusters", len(d.watched), len(d.core.clusters))
	}
	if note := d.core.next.routes[0].Note; note == nil || !strings.Contains(note.Error(), "MaxNames") {
		t.Errorf("the note is %v", note)
	}
}

// A message in forty Any is not followed; a note says so, and the rest is good.
//
// spec: VIEW-43
func TestNestedDeep(t *testing.T) {
	for levels, want := range map[int]bool{10: true, 40: false} {
		filter := res(t, "lds x ecds:inner").(*listenerv3.Listener).GetFilterChains()[0].GetFilters()[0].GetTypedConfig()
		l := buildListener("l", []string{"tcp:a"})
		var hcm hcmv3.HttpConnectionManager
		must(t, filter.UnmarshalTo(&hcm))
		l.FilterChains[0].Filters = append(l.FilterChains[0].Filters, &listenerv3.Filter{
			Name: "deep", ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: nested(levels, &hcm)},
		})
		d := newDriver(t, []string{"lds", "l"}, nil)
		d.run("start")
		d.event("lds", "l", client.Event[any]{Kind: client.EventUpdated, Value: l})
		d.step()
		if _, found := d.watched["ecds inner"]; found != want {
			t.Errorf("%d levels: found %v", levels, found)
		}
		if note := d.core.next.listener.Note; (note == nil) != want {
			t.Errorf("%d levels: note %v", levels, note)
		}
		if _, ok := d.watched["cds a"]; !ok {
			t.Errorf("%d levels: the rest is not followed", levels)
		}
	}
}

// An extension configuration with a message in forty Any has a note that says so, and is good otherwise.
//
// spec: VIEW-43
func TestExtensionNestedDeep(t *testing.T) {
	d := newDriver(t, []string{"lds", "l"}, nil)
	for _, line := range []string{"start", "lds l 1 ecds:x"} {
		d.run(line)
	}
	deep := &corev3.TypedExtensionConfig{Name: "x", TypedConfig: nested(40, discovery("inner", false))}
	d.event("ecds", "x", client.Event[any]{Kind: client.EventUpdated, Value: deep})
	d.step()
	s := d.core.snapshot
	if s == nil || s.Err != nil {
		t.Fatal("the listener is not published", s)
	}
	if x := s.Resource(kinds["ecds"].TypeURL(), "x"); x.Err != nil || x.Message != proto.Message(deep) || !errors.Is(x.Note, errTooNested) {
		t.Errorf("error %v, note %v", x.Err, x.Note)
	}
}

// A few aggregates that share a long list of members, or that all name each other, cost bounded time
// and memory: those over the bound are in error, and the view is published.
func TestCostOfAggregates(t *testing.T) {
	race.SkipCost(t)
	const aggregates = 300
	long := make([]string, 20_000) // that nobody has
	for i := range long {
		long[i] = benchName(i)
	}
	for name, below := range map[string]func(all []string) []string{
		"a long list": func([]string) []string { return []string{"long"} },
		"one another": func(all []string) []string { return append(all, "leaf") },
	} {
		t.Run(name, func(t *testing.T) {
			d := newDriver(t, []string{"rds", "r"}, nil)
			var all []string
			for i := range aggregates {
				all = append(all, fmt.Sprintf("a%03d", i))
			}
			d.run("start")
			d.run("rds r 1 *=" + strings.Join(all, "+"))
			for _, a := range all {
				d.command([]string{"cds", a, "1", "agg:" + strings.Join(below(slices.Clone(all)), ",")})
			}
			d.step()
			for _, line := range []string{"cds leaf 1 static:1.1.1.1", "cds long 1 agg:" + strings.Join(long, ",")} {
				d.command(strings.Fields(line))
			}
			d.step()
			for _, c := range long {
				d.command([]string{"gone", "cds", c})
			}
			d.step()
			total, bad := 0, 0
			for c := range d.core.snapshot.Clusters() {
				if total += len(c.Leaves()); c.Status() == StatusError && strings.Contains(c.Err().Error(), "more than 1000000 members") {
					bad++
				}
			}
			if total > maxMembers || bad == 0 || bad >= aggregates {
				t.Errorf("%d leaves, and %d aggregates are over the bound", total, bad)
			}
		})
	}
}

// An aggregate that has its leaves keeps them when it changes: others that lead to too many do not get what they cost.
func TestLeavesStay(t *testing.T) {
	d := newDriver(t, []string{"rds", "r"}, nil)
	all := numbered("a", 120, ",")
	for _, line := range []string{"start", "rds r 1 *=z", "cds z 1 agg:leaf", "cds leaf 1 static:1.1.1.1", "rds r 2 *=z," + all} {
		d.run(line)
	}
	for a := range strings.SplitSeq(all, ",") {
		d.command(strings.Fields("cds " + a + " 1 agg:" + all + ",leaf"))
	}
	d.step()
	if bad := d.core.links.leaves.wide; len(bad) == 0 || d.core.links.leaves.spent != maxMembers {
		t.Fatalf("%d aggregates are over the bound", len(bad))
	}
	d.run("cds z 2 agg:leaf alt:x")
	if z := d.core.snapshot.Cluster("z"); z.Version != "2" || !slices.Equal(z.Leaves(), []string{"leaf"}) {
		t.Errorf("z changed: leaves %q, %v", z.Leaves(), z.Err())
	}
}

// One name for everything is as many resources.
func TestOneName(t *testing.T) {
	d := newDriver(t, []string{"lds", "x"}, nil)
	for _, line := range []string{"start", "lds x 1 rds:x tcp:x", "rds x 1 *=x,~x", "cds x 1 eds:x", "eds x 1 1.1.1.1"} {
		d.run(line)
	}
	if s := d.core.snapshot; s == nil || s.Cluster("x").Status() != StatusOK || len(d.watched) != 4 {
		t.Errorf("watched %v", d.watched)
	}
}

// While OnSnapshot blocks, other methods do not, and nothing is lost.
func TestBlockedHandler(t *testing.T) {
	s := newSite(t, client.VariantDelta, false)
	s.set("1", "lds l rds:r", "rds r *=a", "cds a static:1.1.1.1", "cds h static:2.2.2.2")
	entered, leave := make(chan bool), make(chan bool)
	var once sync.Once
	v := s.view(Root{Type: RootListener, Name: "l"}, Config{OnSnapshot: func(*Snapshot) {
		once.Do(func() {
			entered <- true
			<-leave
		})
	}})
	<-entered
	release := v.Hold("h")
	defer release()
	if v.Snapshot() == nil || len(v.Dump().Watched) == 0 {
		t.Error("the view does not answer")
	}
	s.set("2", "lds l rds:r", "rds r *=b", "cds b static:3.3.3.3", "cds h static:2.2.2.2")
	close(leave)
	reachSnapshot(t, v, "what came meanwhile", func(s *Snapshot) bool {
		return s.Cluster("b") != nil && s.Cluster("h") != nil && s.Cluster("h").Status() == StatusOK
	})
}
