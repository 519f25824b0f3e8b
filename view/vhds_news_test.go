package view

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource/ecds"
	"github.com/xdswatch/xdswatch/testutil"
)

// vhdsDriver has a route configuration with VHDS published, that has no virtual host of VHDS yet.
func vhdsDriver(t *testing.T, options []string, hooks ...Hook) *driver {
	d := newDriver(t, []string{"rds", "r"}, options)
	if len(hooks) > 0 {
		d.core.hooks = newHooks(append(composite(), hooks...), "")
	}
	for _, in := range []string{"start", "rds r 1 own.org=a vhds", "cds a 1 static:1.1.1.1", "synced vhds *"} {
		d.run(in)
	}
	return d
}

// vhdsView runs a test with a view of such a route configuration at a server, which sends virtual hosts by put.
func vhdsView(t *testing.T, test func(t *testing.T, v *View, put func(name, domains string, aliases ...string))) {
	synctest.Test(t, func(t *testing.T) {
		srv := testutil.NewServer()
		boot, err := bootstrap.Server(srv.Target())
		must(t, err)
		v, err := New(t.Context(), dialling(t, srv, client.Config{Bootstrap: boot, Variant: client.VariantDelta}), Root{Type: RootRoutes, Name: "r"}, Config{})
		must(t, err)
		st, err := srv.Accept(t.Context())
		must(t, err)
		send := func(kind, name, line string, aliases ...string) {
			r := testutil.Wrapped(name, "1", res(t, line))
			r.Aliases = aliases
			must(t, st.Send(testutil.Delta(kinds[kind].TypeURL(), "n", []*discoveryv3.Resource{r})))
			synctest.Wait()
		}
		send("rds", "r", "rds r own.org=a vhds")
		send("cds", "a", "cds a static:1.1.1.1")
		must(t, v.Ready(t.Context()))
		test(t, v, func(name, domains string, aliases ...string) { send("vhds", name, "vhds x "+domains+"=a", aliases...) })
		v.Stop()
		<-v.Done()
	})
}

// The answer for one host name that has the domain of another answers who asks for that too, at once.
func TestHostAnswersForOthers(t *testing.T) {
	vhdsView(t, func(t *testing.T, v *View, put func(name, domains string, aliases ...string)) {
		put("r/first", "first.org")
		answered := make(chan error, 2)
		for _, host := range []string{"c.org", "b.org"} {
			go func() {
				_, err := v.VirtualHost(t.Context(), host)
				answered <- err
			}()
			synctest.Wait()
		}
		asked := time.Now()
		put("both", "b.org|c.org", "r/b.org")
		must(t, <-answered)
		must(t, <-answered)
		if d := time.Since(asked); d != 0 {
			t.Errorf("answered after %v", d)
		}
	})
}

// Who waits for a host name does not look again at the answer for another one.
func TestOtherHostsAnswerIsNoNews(t *testing.T) {
	vhdsView(t, func(t *testing.T, v *View, put func(name, domains string, aliases ...string)) {
		put("r/first", "first.org")
		go func() { _, _ = v.VirtualHost(t.Context(), "b.org") }()
		synctest.Wait()
		looks := 0
		go func() {
			on := []slotKey{hostKey("c.org")}
			_ = v.wait(t.Context(), on[0], func(*Snapshot) (bool, []slotKey) {
				looks++
				return false, on
			})
		}()
		synctest.Wait()
		put("r/b.org", "b.org")
		if looks != 1 {
			t.Errorf("%d looks, want 1", looks)
		}
	})
}

// Hosts that are asked for and let go while no snapshot is made leave nothing behind.
func TestHostsLeaveNothing(t *testing.T) {
	silent := vhdsDriver(t, nil)
	silent.run("hold silent")
	waiting := newDriver(t, []string{"rds", "r"}, nil)
	for _, in := range []string{"start", "rds r 1 own.org=a", "cds a 1 static:1.1.1.1", "rds r 2 own.org=b vhds", "synced vhds *"} {
		waiting.run(in)
	}
	for i := range 100 {
		host := fmt.Sprintf("h%d.org", i)
		for _, in := range []string{"host " + host, "down vhds r/" + host, "unhost " + host} {
			silent.run(in)
		}
		for _, in := range []string{"host " + host, "vhds r/" + host + " 1 " + host + "=a", "unhost " + host} {
			waiting.run(in)
		}
	}
	if n := len(silent.core.out.news.of); n > 1 {
		t.Errorf("while nothing is published %d pieces of news stay", n)
	}
	if n := len(waiting.core.vhds.live[0].differ); n > 1 {
		t.Errorf("of virtual hosts that are not shown %d differ", n)
	}
}

// A virtual host that goes while another one with the same cluster comes changes nothing else.
// spec: VIEW-4
func TestClusterGoesAndComes(t *testing.T) {
	d := vhdsDriver(t, nil)
	d.run("vhost r/v0 v.org=b")
	d.run("cds b 1 static:1.1.1.1")
	was := d.core.snapshot.Serial
	d.run("vhost r/v0 gone; vhost r/v1 v.org=b")
	if now := d.core.snapshot.Serial; now != was {
		t.Errorf("snapshot %d equals snapshot %d", now, was)
	}
}

// needs is a hook that has virtual hosts need an extension configuration by the beginning of their names.
func needs(need Need, by map[string]string) Hook {
	return Hook{(*routev3.VirtualHost)(nil), func(m proto.Message, add func(Dependency)) {
		for prefix, name := range by {
			if strings.HasPrefix(m.(*routev3.VirtualHost).GetName(), prefix) {
				add(Dependency{ecds.Type, name, nil, need})
			}
		}
	}}
}

// What a cluster that is merely held needs does not hold a snapshot back, though a virtual host needs it too.
func TestHostsNeedDoesNotBlock(t *testing.T) {
	d := vhdsDriver(t, []string{"composite"}, needs(Essential, map[string]string{"v": "x"}))
	for _, in := range []string{"hold h", "cds h 1 static:1.1.1.1 alt:=x", "vhost r/v v.org=a"} {
		d.run(in)
	}
	for _, w := range d.core.waiting() {
		if w.Blocking {
			t.Errorf("%s %s is said to block", shortOf(w.Type), w.Name)
		}
	}
}

// A name may have a zero byte.
func TestHostsOfOddNames(t *testing.T) {
	d := vhdsDriver(t, nil)
	for _, in := range []string{"vhost r/a a=a", "vhost r/b a\x00\x01=a", "vhost r/a a=a,a"} {
		d.run(in)
	}
	d.checkHosts()
	if got := len(d.core.snapshot.Routes[0].OnDemand()); got != 2 {
		t.Errorf("%d virtual hosts, want 2", got)
	}
}

// Where there is room for one more name, it is always the same one that gets it.
func TestRoomIsGivenInOrder(t *testing.T) {
	seen := map[string]bool{}
	for range 20 {
		d := vhdsDriver(t, []string{"composite", "names=6"}, needs(Optional, map[string]string{"v1": "y", "v2": "x"}))
		for _, in := range []string{"vhost r/1 v1.org=a", "vhost r/2 v2.org=a", "ecds x 1 +c;ecds y 1 +e"} {
			d.run(in)
		}
		seen[strings.Join(slices.Sorted(maps.Keys(d.watched)), " ")] = true
	}
	if len(seen) != 1 {
		t.Errorf("what is watched differs: %q", slices.Sorted(maps.Keys(seen)))
	}
}
