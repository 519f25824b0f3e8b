package view

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/testutil"
	"github.com/xdswatch/xdswatch/transport"
)

// scripted is a view in fake time, and what sends its client a resource, as lines of scripts are, or
// nothing but names that were removed.
func scripted(t *testing.T, root Root, config Config) (v *View, send func(kind, line string, removed ...string)) {
	t.Helper()
	srv := testutil.NewServer()
	boot, err := bootstrap.Server(srv.Target())
	must(t, err)
	c, err := client.New(client.Config{Bootstrap: boot, Variant: client.VariantDelta, GRPC: transport.GRPCConfig{DialOptions: srv.DialOptions()}})
	must(t, err)
	t.Cleanup(func() {
		c.Close()
		<-c.Done()
		srv.Close()
	})
	v, err = New(t.Context(), c, root, config)
	must(t, err)
	t.Cleanup(func() { <-v.Done() }) // t's context is over by then
	st, err := srv.Accept(t.Context())
	must(t, err)
	return v, func(kind, line string, removed ...string) {
		var resources []*discoveryv3.Resource
		if line != "" {
			resources = append(resources, testutil.Wrapped(line[:1], line, res(t, kind+" "+line)))
		}
		must(t, st.Send(testutil.Delta(kinds[kind].TypeURL(), "n", resources, removed...)))
		synctest.Wait()
	}
}

// A collection that nothing names any more is unsubscribed, as single names are.
//
// spec: VIEW-16, VIEW-15
func TestCollectionsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, send := scripted(t, Root{Type: RootListener, Name: "l"}, Config{})
		known := func() (n int) {
			for _, s := range v.client.Dump() {
				if s.Type == srdsKind.TypeURL() || s.Type == cdsKind.TypeURL() && s.Name == "a" {
					n++
				}
			}
			return n
		}
		send("lds", "l scopes tcp:a")
		send("cds", "a static:1.1.1.1")
		send("srds", "")
		must(t, v.Ready(t.Context()))
		if n := known(); n != 2 {
			t.Errorf("%d of the scopes and the cluster are subscribed to", n)
		}
		send("lds", "l tcp:b")
		send("cds", "b static:1.1.1.1")
		if n := known(); n != 0 {
			t.Errorf("%d of the scopes and the cluster are subscribed to still: %v", n, v.client.Dump())
		}
	})
}

// What is due at a time is done then, although nothing comes from the server.
//
// spec: WARM-j
func TestTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, send := scripted(t, Root{Type: RootRoutes, Name: "r"}, Config{MergeWindow: time.Second, DeletionGrace: 10 * time.Second})
		send("rds", "r *=a")
		send("cds", "a eds")
		send("eds", "a 1.1.1.1*1")
		must(t, v.Ready(t.Context()))
		after := func(d time.Duration, serial uint64, status Status) {
			t.Helper()
			time.Sleep(d)
			synctest.Wait()
			if s := v.Snapshot(); s.Serial != serial || s.Cluster("a").Status() != status {
				t.Errorf("after %v: snapshot %d, the cluster is %v; want %d and %v", d, s.Serial, s.Cluster("a").Status(), serial, status)
			}
		}
		send("eds", "a 1.1.1.1*2")
		after(900*time.Millisecond, 1, StatusOK)
		after(100*time.Millisecond, 2, StatusOK)
		send("cds", "", "a")
		after(9*time.Second, 3, StatusOK)
		after(time.Second, 4, StatusError)
	})
}

// How long the first answer is waited for is what a config source says that leads to the view's own servers; a
// later answer is taken. 0s is as no time.
//
// spec: DNE-10 WARM-3 VIEW-20
func TestFetchTimeouts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, send := scripted(t, Root{Type: RootRoutes, Name: "r"}, Config{})
		send("rds", "r *=a,b")
		send("cds", "a eds within:2s")
		send("cds", "b static:1.1.1.1")
		after := func(d time.Duration, want string) {
			t.Helper()
			time.Sleep(d)
			synctest.Wait()
			got := "nothing"
			if s := v.Snapshot(); s != nil {
				got = strings.Join(show(s), ";")
			}
			if !strings.Contains(got, want) {
				t.Errorf("after %v: %v, want %v", d, got, want)
			}
		}
		after(1900*time.Millisecond, "nothing")
		after(100*time.Millisecond, "no answer within the initial fetch timeout of 2s")
		send("eds", "a 1.1.1.2")
		after(0, "= 2;  rds r r *=a,b;  a ok a eds within:2s eds [1.1.1.2] by route;")
		send("rds", "r *=a,c")
		send("cds", "c eds within:0s")
		after(14900*time.Millisecond, "= 2 waiting;")
		after(100*time.Millisecond, "the server did not answer in time")
	})
}

// What has no room comes as soon as there is some, although nothing comes from the server.
func TestRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, send := scripted(t, Root{Type: RootRoutes, Name: "r"}, Config{MaxNames: 3})
		send("rds", "r *=a,b")
		send("cds", "a static:1.1.1.1")
		send("cds", "b static:1.1.1.1")
		send("rds", "r *=c,d")
		send("cds", "c static:1.1.1.1")
		send("cds", "d static:1.1.1.1")
		if s := v.Snapshot(); s.Len() != 2 || s.Cluster("d") == nil || s.Cluster("d").Status() != StatusOK {
			t.Errorf("the snapshot: %v", show(s))
		}
	})
}
