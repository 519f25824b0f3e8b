package view

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/testutil"
	"github.com/xdswatch/xdswatch/view/route"
)

// A host name that no virtual host matches is asked for as ROUTES/HOST; the answer is the virtual
// host that has this name as an alias, or none.
//
// spec: ONDEMAND-1, VHDS-1, VHDS-2, VHDS-3
func TestVirtualHostOnDemand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := testutil.NewServer()
		boot, err := bootstrap.Server(srv.Target())
		must(t, err)
		c := dialling(t, srv, client.Config{Bootstrap: boot, Variant: client.VariantDelta})
		v, err := New(t.Context(), c, Root{Type: RootRoutes, Name: "r"}, Config{})
		must(t, err)
		st, err := srv.Accept(t.Context())
		must(t, err)
		send := func(kind string, resources []*discoveryv3.Resource, removed ...string) {
			must(t, st.Send(testutil.Delta(kinds[kind].TypeURL(), "n", resources, removed...)))
			synctest.Wait()
		}
		one := func(kind, name, line string, aliases ...string) []*discoveryv3.Resource {
			r := testutil.Wrapped(name, "1", res(t, line))
			r.Aliases = aliases
			return []*discoveryv3.Resource{r}
		}
		send("rds", one("rds", "r", "rds r own.org=a vhds"))
		send("cds", one("cds", "a", "cds a static:1.1.1.1"))
		must(t, v.Ready(t.Context()))
		if vh, err := v.VirtualHost(t.Context(), "own.org"); err != nil || vh.GetName() != "own.org" {
			t.Errorf("its own: %v, %v", vh, err)
		}
		type answer struct {
			vh  *routev3.VirtualHost
			err error
		}
		answers := make(chan answer, 3)
		ask := func(host string) {
			go func() {
				vh, err := v.VirtualHost(t.Context(), host)
				answers <- answer{vh, err}
			}()
			synctest.Wait()
		}
		send("vhds", one("vhds", "r/unasked", "vhds x base.org=a")) // VHDS-2: to the wildcard
		if vh, err := v.VirtualHost(t.Context(), "base.org"); err != nil || vh.GetName() != "base.org" {
			t.Errorf("one that the server sent by itself: %v, %v", vh, err)
		}
		ask("b.org")
		ask("b.org")
		var asked []string
		for _, r := range st.Requests() {
			if r.TypeURL() == kinds["vhds"].TypeURL() && r.Nonce() == "" {
				asked = append(asked, fmt.Sprint(r.Names()))
			}
		}
		if want := []string{"[]", "[r/b.org]"}; !slices.Equal(asked, want) {
			t.Errorf("subscriptions are %q, want %q", asked, want)
		}
		send("vhds", one("vhds", "r/both", "vhds x b.org|c.org=b", "r/b.org", "r/c.org"))
		if len(answers) > 0 {
			t.Error("the cluster is not known yet")
		}
		send("cds", one("cds", "b", "cds b static:2.2.2.2"))
		for range 2 {
			if a := <-answers; a.err != nil || a.vh.GetName() != "b.org|c.org" {
				t.Errorf("b.org: %v, %v", a.vh, a.err)
			}
		}
		ask("denied.org")
		denied := testutil.Delta(kinds["vhds"].TypeURL(), "n", nil)
		denied.ResourceErrors = []*discoveryv3.ResourceError{{
			ResourceName: &discoveryv3.ResourceName{Name: "r/denied.org"}, ErrorDetail: &statuspb.Status{Code: 7, Message: "not you"},
		}}
		must(t, st.Send(denied))
		// ONDEMAND-1: an error is an answer, and not that there is none.
		if a := <-answers; a.err == nil || errors.Is(a.err, client.ErrDoesNotExist) || !strings.Contains(a.err.Error(), "not you") {
			t.Errorf("denied.org: %v, %v", a.vh, a.err)
		}
		if missing := v.Snapshot().Routes[0].Missing(); len(missing) > 0 {
			t.Errorf("missing are %q", missing)
		}
		ask("nosuch.org")
		send("vhds", []*discoveryv3.Resource{{Name: "r/nosuch.org", Aliases: []string{"r/nosuch.org"}}})
		if a := <-answers; !errors.Is(a.err, client.ErrDoesNotExist) {
			t.Errorf("nosuch.org: %v, %v", a.vh, a.err)
		}
		v.Stop()
		<-v.Done()
	})
}

// The names below a structured one would be of another type, so nothing is asked for. Whoever wants a virtual host hears why.
//
// spec: VHDS-1 C-3
func TestVirtualHostOfStructuredRoutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const name = "xdstp://a/envoy.config.route.v3.RouteConfiguration/r"
		srv := testutil.NewServer()
		boot, err := bootstrap.Server(srv.Target())
		must(t, err)
		boot.Authorities = map[string]bootstrap.Authority{"a": {}}
		c := dialling(t, srv, client.Config{Bootstrap: boot, Variant: client.VariantDelta})
		v, err := New(t.Context(), c, Root{Type: RootRoutes, Name: name}, Config{})
		must(t, err)
		st, err := srv.Accept(t.Context())
		must(t, err)
		rc := res(t, "rds r own.org=a vhds").(*routev3.RouteConfiguration)
		rc.Name = name
		must(t, st.Send(testutil.Delta(kinds["rds"].TypeURL(), "n", []*discoveryv3.Resource{testutil.Wrapped(name, "1", rc)})))
		synctest.Wait()
		must(t, st.Send(testutil.Delta(kinds["cds"].TypeURL(), "n", []*discoveryv3.Resource{testutil.Wrapped("a", "1", res(t, "cds a static:1.1.1.1"))})))
		must(t, v.Ready(t.Context()))
		if note := v.Snapshot().Routes[0].Note; note == nil || !strings.Contains(note.Error(), "xdstp name") {
			t.Errorf("the note is %v", note)
		}
		_, err = v.VirtualHost(t.Context(), "b.org")
		if !errors.Is(err, client.ErrDoesNotExist) || !strings.Contains(err.Error(), "xdstp name") {
			t.Errorf("b.org: %v", err)
		}
		for _, r := range st.Requests() {
			if r.TypeURL() == vhdsKind.TypeURL() {
				t.Errorf("asked for virtual hosts: %v", r)
			}
		}
		v.Stop()
		<-v.Done()
	})
}

// In state of the world nothing is asked for: virtual hosts on demand are for delta alone. Whoever
// wants one hears why, and the route configuration goes on without them.
//
// spec: VHDS-1
func TestVirtualHostInStateOfTheWorld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := testutil.NewServer()
		boot, err := bootstrap.Server(srv.Target())
		must(t, err)
		c := dialling(t, srv, client.Config{Bootstrap: boot, Variant: client.VariantSotW})
		v, err := New(t.Context(), c, Root{Type: RootRoutes, Name: "r"}, Config{})
		must(t, err)
		st, err := srv.Accept(t.Context())
		must(t, err)
		for _, line := range []string{"rds r own.org=a vhds", "cds a static:1.1.1.1"} {
			must(t, st.Send(testutil.SotW(kinds[line[:3]].TypeURL(), "1", "1", res(t, line))))
			synctest.Wait()
		}
		must(t, v.Ready(t.Context()))
		_, err = v.VirtualHost(t.Context(), "b.org")
		if !errors.Is(err, client.ErrDoesNotExist) || !strings.Contains(err.Error(), "delta") {
			t.Errorf("b.org: %v", err)
		}
		if s := v.Snapshot(); !s.Complete || s.Cluster("a").Status() != StatusOK {
			t.Errorf("the rest: %v", show(s))
		}
		for _, r := range st.Requests() {
			if r.TypeURL() == vhdsKind.TypeURL() {
				t.Errorf("asked for virtual hosts: %v", r)
			}
		}
		v.Stop()
		<-v.Done()
	})
}

// Who asks for a host name gets the virtual host that a table of the same routes chooses, and one look at a
// snapshot serves all who ask.
//
// spec: VHDS-2
func TestVirtualHostAsTable(t *testing.T) {
	d := newDriver(t, []string{"rds", "r"}, nil)
	for _, input := range []string{
		"start", "rds r 1 own.org=a *.org=a vhds", "cds a 1 static:1.1.1.1", "synced vhds *",
		"vhost r/x own.org=a", "vhost r/y x.org|y.org=a", "host a.net", "vhds r/a.net 1 *.net=a",
	} {
		d.run(input)
	}
	s := d.core.snapshot
	rc := s.Routes[0]
	table := route.Compile(rc.Message, nil, rc.OnDemand()...)
	for host, asked := range map[string]bool{"own.org": false, "x.org": false, "other.org": false, "a.net": true, "b.net": true} {
		vh, own := s.hostOf(host)
		if want := table.VirtualHost(host).Proto(); vh != want || own == asked {
			t.Errorf("%s: %q, its own: %t; the table has %q", host, vh.GetName(), own, want.GetName())
		}
		if n := testing.AllocsPerRun(10, func() { s.hostOf(host) }); n > 0 {
			t.Errorf("%s: %g allocations", host, n)
		}
	}
	if vh, _ := s.hostOf("a.com"); vh != nil {
		t.Errorf("a host that there is not: %v", vh)
	}
}
