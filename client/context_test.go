package client_test

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/grpc"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/resource/eds"
	"github.com/xdswatch/xdswatch/testutil"
	"github.com/xdswatch/xdswatch/transport"
	"github.com/xdswatch/xdswatch/xdstp"
)

// Fields of the node are added to collections of Clusters alone; features and attributes of
// the program to every structured name, over what the name says; to old-style names nothing.
//
// spec: CTX-1 CTX-2 CTX-3
func TestContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := testutil.NewServer()
		defer srv.Close()
		boot, err := bootstrap.Server(srv.Target())
		must(t, err)
		boot.Node = &corev3.Node{Id: "n", Cluster: "shop"}
		boot.NodeContextParams = []string{"cluster"}
		boot.Authorities = map[string]bootstrap.Authority{"a": {}}
		c, err := client.New(client.Config{
			Bootstrap: boot,
			GRPC:      transport.GRPCConfig{DialOptions: []grpc.DialOption{testutil.InMemory(srv)}},
			Context: func(typeURL string) xdstp.Context {
				if typeURL != cds.Type.TypeURL() {
					return xdstp.Context{}
				}
				return xdstp.Context{
					Features:   []xdstp.Param{xdstp.ClientFeature("lb")},
					Attributes: []xdstp.Param{xdstp.VIP(netip.MustParseAddr("10.1.2.3"))},
				}
			},
		})
		must(t, err)
		defer c.Close()

		const base = "xdstp://a/" + clusterName
		const added = "xds.client_feature.lb=true&xds.resource.vip=10.1.2.3"
		set, err := c.NewSet(t.Context(), cds.Type, func(client.Batch[any]) {})
		must(t, err)
		must(t, set.Add(base+"/x?own=1", "old"))
		_, err = c.WatchAll(t.Context(), cds.Type, base+"/p/*", func(client.Batch[any]) {})
		must(t, err)
		want := []string{"old", base + "/p/*?" + added[:len("xds.client_feature.lb=true")] + "&xds.node.cluster=shop&xds.resource.vip=10.1.2.3", base + "/x?own=1&" + added}
		asks := func(want []string) {
			t.Helper()
			st := srv.Streams()[0]
			slices.Sort(want)
			for {
				req, err := st.Next(t.Context())
				must(t, err)
				if slices.Equal(req.Names(), want) {
					return
				}
			}
		}
		synctest.Wait()
		asks(want)
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := c.Get(short, cds.Type, base+"/x?own=1"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Get: %v, want the context's end", err)
		}
		set.Remove(base + "/x?own=1")
		time.Sleep(2 * time.Minute)
		asks(want[:2])
	})
}

// A context that is none fails the watch, and asks nobody.
func TestBadContext(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		_, err := r.c.Watch(t.Context(), cds.Type, "xdstp://a/"+clusterName+"/x", func(client.Event[any]) {})
		if re, ok := errors.AsType[*client.ResourceError](err); !ok || re.Kind != client.ErrorConfig {
			t.Errorf("error %v, want one of the configuration", err)
		}
	}, func(c *client.Config) {
		c.Bootstrap.Authorities = map[string]bootstrap.Authority{"a": {}}
		c.Context = func(string) xdstp.Context {
			return xdstp.Context{Features: []xdstp.Param{{Key: "own", Value: "1"}}}
		}
	})
}

// An alternative is asked for with what is the client's own too, and an entry with the parameters of its list. The node is as
// requests have it.
//
// spec: CTX-1 CTX-2 ALT-1
func TestContextOfAlternatives(t *testing.T) {
	twoServers(t, func(t *testing.T, r *rig, other *testutil.Server) {
		const collection = "envoy.config.cluster.v3.ClusterCollection"
		other.Close()
		_, err := r.c.WatchAll(t.Context(), cds.Type, "xdstp://other/"+collection+"/x#alt=xdstp://same/"+collection+"/y", func(client.Batch[any]) {})
		must(t, err)
		for _, name := range []string{clusterName + "/one#alt=xdstp://same/" + clusterName + "/two", collection + "/z#entry=e"} {
			_, err := r.c.Watch(t.Context(), cds.Type, "xdstp://other/"+name, func(client.Event[any]) {})
			must(t, err)
		}
		synctest.Wait()
		const feature, node = "?xds.client_feature.lb=true", "&xds.node.user_agent_name=xdswatch"
		var names []string
		for _, row := range r.c.Dump() {
			names = append(names, row.Name)
		}
		slices.Sort(names)
		same(t, "names", names, []string{
			"xdstp://other/" + clusterName + "/one" + feature, "xdstp://other/" + collection + "/x" + feature + node,
			"xdstp://other/" + collection + "/z" + feature + node, "xdstp://same/" + clusterName + "/two" + feature,
			"xdstp://same/" + collection + "/y" + feature + node,
		})
	}, func(c *client.Config) {
		c.Bootstrap.NodeContextParams = []string{"user_agent_name"}
		c.Context = func(string) xdstp.Context {
			return xdstp.Context{Features: []xdstp.Param{xdstp.ClientFeature("lb")}}
		}
	})
}

// The node's parameters are for collections of Listeners and Clusters alone.
// spec: CTX-2
func TestNodeParametersOfOtherTypes(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		name := "xdstp://a/envoy.config.endpoint.v3.ClusterLoadAssignment/p/*"
		_, err := r.c.WatchAll(t.Context(), eds.Type, name, func(client.Batch[any]) {})
		must(t, err)
		same(t, "name", r.c.Dump()[0].Name, name)
	}, func(c *client.Config) {
		c.Bootstrap.Node.Cluster, c.Bootstrap.NodeContextParams = "shop", []string{"cluster"}
		c.Bootstrap.Authorities = map[string]bootstrap.Authority{"a": {}}
	})
}
