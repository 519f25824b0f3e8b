package view

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/testutil"
	"github.com/xdswatch/xdswatch/transport"
)

// The members of an aggregate that are a resource of their own come over the wire, in both variants:
// the message has no name in it, so a server wraps it.
//
// spec: VIEW-36
func TestMembersOverTheWire(t *testing.T) {
	for _, variant := range []client.Variant{client.VariantSotW, client.VariantDelta} {
		t.Run(fmt.Sprint(variant), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { testMembersOverTheWire(t, variant) })
		})
	}
}

// overTheWire begins a view of the cluster root whose resources a server sends that the test scripts, and takes the
// first stream. All of it ends with the test's bubble.
func overTheWire(t *testing.T, variant client.Variant) (*testutil.Stream, *View) {
	t.Helper()
	srv := testutil.NewServer()
	boot, err := bootstrap.Server(srv.Target())
	must(t, err)
	c, err := client.New(client.Config{Bootstrap: boot, Variant: variant, GRPC: transport.GRPCConfig{DialOptions: srv.DialOptions()}})
	must(t, err)
	t.Cleanup(func() {
		c.Close()
		<-c.Done()
		srv.Close()
	})
	v, err := New(t.Context(), c, Root{Type: RootCluster, Name: "root"}, Config{})
	must(t, err)
	t.Cleanup(func() {
		v.Stop()
		<-v.Done()
	})
	st, err := srv.Accept(t.Context())
	must(t, err)
	return st, v
}

func testMembersOverTheWire(t *testing.T, variant client.Variant) {
	st, v := overTheWire(t, variant)
	send := func(kind, version string, lines ...string) {
		var wrapped []*discoveryv3.Resource
		var all []proto.Message
		for _, line := range lines {
			m := res(t, kind+" "+line)
			name := line[:slices.Index([]byte(line+" "), ' ')]
			wrapped = append(wrapped, testutil.Wrapped(name, version, m))
			all = append(all, wrapped[len(wrapped)-1])
		}
		url := kinds[kind].TypeURL()
		if variant == client.VariantDelta {
			must(t, st.Send(testutil.Delta(url, version, wrapped)))
		} else {
			must(t, st.Send(testutil.SotW(url, version, version, all...)))
		}
		synctest.Wait()
	}
	send("cds", "1", "root list:members")
	if v.Snapshot() != nil {
		t.Errorf("without its members: %v", show(v.Snapshot()))
	}
	send("agg", "1", "members x y")
	send("cds", "2", "root list:members", "x static:1.1.1.1", "y static:2.2.2.2")
	must(t, v.Ready(t.Context()))
	if got := v.Snapshot().Cluster("root").Leaves(); !slices.Equal(got, []string{"x", "y"}) {
		t.Errorf("leaves %q", got)
	}
	send("agg", "2", "members y z")
	if got := v.Snapshot().Cluster("root").Leaves(); !slices.Equal(got, []string{"x", "y"}) {
		t.Errorf("while z is waited for: leaves %q", got)
	}
	send("cds", "3", "root list:members", "x static:1.1.1.1", "y static:2.2.2.2", "z static:3.3.3.3")
	if got := v.Snapshot().Cluster("root").Leaves(); !slices.Equal(got, []string{"y", "z"}) {
		t.Errorf("leaves %q", got)
	}
	send("agg", "3", "members") // refused: an aggregate needs a member
	if s := v.Snapshot(); len(s.Cluster("root").Leaves()) != 2 || s.Cluster("root").Note() == nil {
		t.Errorf("after a list without members: %v", show(s))
	}
}
