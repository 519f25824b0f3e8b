package client_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	xdscorev3 "github.com/cncf/xds/go/xds/core/v3"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/testutil"
)

// production gives old-style names parameters.
func production(config *client.Config) {
	config.Bootstrap.DynamicParameters.Old = map[string]string{"env": "prod"}
}

// Each kind of name has its own parameters, whoever answers: the source of a watch, the
// default source, or another server of the name.
//
// spec: DYN-1 DYN-3
func TestParametersOfNames(t *testing.T) {
	var other bootstrap.Source
	inBubble(t, func(t *testing.T, r *rig) {
		for _, name := range []string{"old", "xdstp://a/" + clusterName + "/x", "xdstp://b/" + clusterName + "/x"} {
			r.watch(name)
		}
		want := &discoveryv3.DiscoveryRequest{
			ResourceNames: []string{"xdstp://b/" + clusterName + "/x"},
			ResourceLocators: []*discoveryv3.ResourceLocator{
				{Name: "old", DynamicParameters: map[string]string{"env": "prod"}},
				{Name: "xdstp://a/" + clusterName + "/x", DynamicParameters: map[string]string{"env": "test"}},
			},
		}
		st := r.accept()
		time.Sleep(10 * time.Millisecond) // for the names that come a moment later
		synctest.Wait()
		first := st.Requests()
		asks(t, first[len(first)-1], want)

		_, err := r.c.Watch(t.Context(), cds.Type, "peer", func(client.Event[any]) {}, client.FromSource(other), client.InScope("other"))
		must(t, err)
		second := r.accept().Requests()
		asks(t, second[0], &discoveryv3.DiscoveryRequest{ResourceLocators: []*discoveryv3.ResourceLocator{
			{Name: "peer", DynamicParameters: map[string]string{"env": "prod"}},
		}})
	}, production, func(config *client.Config) {
		boot := config.Bootstrap
		other = bootstrap.Source{Servers: boot.Servers}
		boot.DefaultSource = &other
		boot.DynamicParameters.Authorities = map[string]map[string]string{"a": {"env": "test"}}
	})
}

// asks compares what a request asks for.
func asks(t *testing.T, r *testutil.Request, want *discoveryv3.DiscoveryRequest) {
	t.Helper()
	got := &discoveryv3.DiscoveryRequest{ResourceNames: r.Names(), ResourceLocators: r.Locators()}
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Errorf("asked for (-want +got):\n%s", diff)
	}
}

// Version 2 of the transport has no dynamic parameters: not of names, nor of the node.
//
// spec: V2-4
func TestVersion2WithoutParameters(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		must(t, r.c.SetNodeParameters(cds.Type.TypeURL(), map[string]string{"shard": "1"}))
		r.watch("a")
		st := r.accept()
		req := r.asked(st, clusterV2, "[a]")
		must(t, r.c.SetNodeParameters(cds.Type.TypeURL(), map[string]string{"shard": "2"}))
		r.quiet(st, 1)
		asks(t, req, &discoveryv3.DiscoveryRequest{ResourceNames: []string{"a"}})
		if p := req.Node().GetDynamicParameters(); p != nil {
			t.Errorf("the node has the parameters %v", p)
		}
	}, version2, production)
}

// What the program says of a type wins over the bootstrap's node and over Config.Node, on
// streams that stand and on those to come; of other types it says nothing.
//
// spec: NODE-5
func TestSetNodeParameters(t *testing.T) {
	const other = "type.googleapis.com/other"
	inBubble(t, func(t *testing.T, r *rig) {
		_, a := r.watch("a")
		st := r.accept()
		req := r.request(st, "cds [a]")
		describes(t, req, map[string]string{"shard": "own"}, map[string]string{"x": "1", "y": "2"})

		params := map[string]string{"shard": "1"}
		must(t, r.c.SetNodeParameters(cds.Type.TypeURL(), params))
		params["shard"] = "changed behind its back"
		req = r.request(st, "cds [a]")
		describes(t, req, map[string]string{"shard": "1"}, map[string]string{"x": "1", "y": "2"})

		must(t, r.c.SetNodeParameters(other, map[string]string{"y": "2", "x": "1"}))
		r.quiet(st, 2)
		r.clusters(st, "1", "n1", "a")
		a.heard(t, "updated a 1")
		req = r.request(st, "cds [a] v1 n1")
		if req.Node() != nil {
			t.Error("an answer has the node, though nothing is new in it")
		}
		st.End(nil)
		st = r.accept()
		describes(t, r.request(st, "cds [a]"), map[string]string{"shard": "1"}, map[string]string{"x": "1", "y": "2"})
		must(t, r.c.SetNodeParameters(cds.Type.TypeURL(), nil))
		describes(t, r.request(st, "cds [a]"), nil, map[string]string{"x": "1", "y": "2"})
	}, func(config *client.Config) {
		config.Bootstrap.Node.DynamicParameters = map[string]*xdscorev3.ContextParams{
			other: {Params: map[string]string{"x": "1", "y": "2"}},
		}
		config.Node = func(n *corev3.Node) *corev3.Node {
			n.DynamicParameters[cds.Type.TypeURL()] = &xdscorev3.ContextParams{Params: map[string]string{"shard": "own"}}
			return n
		}
	})
}

// describes compares the node's parameters of clusters and of the other type.
func describes(t *testing.T, r *testutil.Request, clusters, other map[string]string) {
	t.Helper()
	p := r.Node().GetDynamicParameters()
	same(t, "of clusters", p[cds.Type.TypeURL()].GetParams(), clusters)
	same(t, "of the other type", p["type.googleapis.com/other"].GetParams(), other)
}

// spec: NODE-5
func TestSetNodeParametersErrors(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		for _, bad := range []map[string]string{{"\xff": ""}, {"k": "\xff"}} {
			if err := r.c.SetNodeParameters("u", bad); err == nil {
				t.Errorf("%q is accepted", bad)
			}
		}
		if err := r.c.SetNodeParameters("\xff", nil); err == nil {
			t.Error("a type URL that is no text is accepted")
		}
		must(t, r.c.Close())
		if err := r.c.SetNodeParameters("u", nil); !errors.Is(err, client.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
		synctest.Wait()
	})
}
