package view

import (
	"testing"
	"testing/synctest"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/testutil"
	"github.com/xdswatch/xdswatch/transport"
)

// A collection that nothing names any more is unsubscribed, as single names are.
//
// spec: VIEW-16, VIEW-15
func TestCollectionsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := testutil.NewServer()
		boot, err := bootstrap.Server(srv.Target())
		must(t, err)
		c, err := client.New(client.Config{Bootstrap: boot, Variant: client.VariantDelta, GRPC: transport.GRPCConfig{DialOptions: srv.DialOptions()}})
		must(t, err)
		defer func() {
			c.Close()
			<-c.Done()
			srv.Close()
		}()
		v, err := New(t.Context(), c, Root{Type: RootListener, Name: "l"}, Config{})
		must(t, err)
		st, err := srv.Accept(t.Context())
		must(t, err)
		send := func(version, line string) {
			m := res(t, line)
			kind, name := line[:3], line[4:5]
			must(t, st.Send(testutil.Delta(kinds[kind].TypeURL(), version, []*discoveryv3.Resource{testutil.Wrapped(name, version, m)})))
			synctest.Wait()
		}
		known := func() (n int) {
			for _, s := range c.Dump() {
				if s.Type == srdsKind.TypeURL() || s.Type == cdsKind.TypeURL() && s.Name == "a" {
					n++
				}
			}
			return n
		}
		send("1", "lds l scopes tcp:a")
		send("1", "cds a static:1.1.1.1")
		must(t, st.Send(testutil.Delta(srdsKind.TypeURL(), "1", nil)))
		must(t, v.Ready(t.Context()))
		if n := known(); n != 2 {
			t.Errorf("%d of the scopes and the cluster are subscribed to", n)
		}
		send("2", "lds l tcp:b")
		send("1", "cds b static:1.1.1.1")
		if n := known(); n != 0 {
			t.Errorf("%d of the scopes and the cluster are subscribed to still: %v", n, c.Dump())
		}
	})
}
