package client_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/resource/ecds"
	"github.com/xdswatch/xdswatch/resource/eds"
	"github.com/xdswatch/xdswatch/testutil"
)

const (
	clusterV2   = "type.googleapis.com/envoy.api.v2.Cluster"
	endpointsV2 = "type.googleapis.com/envoy.api.v2.ClusterLoadAssignment"
)

func version2(config *client.Config) { config.Bootstrap.Servers[0].TransportV2 = true }

func incremental(config *client.Config) { config.Variant = client.VariantDelta }

func streamEach(config *client.Config) { config.Streams = client.StreamsPerType }

// typed is a message under another type URL than its own.
func typed(t *testing.T, url string, m proto.Message) *anypb.Any {
	t.Helper()
	b, err := proto.Marshal(m)
	must(t, err)
	return &anypb.Any{TypeUrl: url, Value: b}
}

// asked takes the next request and compares its type URL and the rest.
func (r *rig) asked(st *testutil.Stream, url, want string) *testutil.Request {
	r.t.Helper()
	req, err := st.Next(r.t.Context())
	must(r.t, err)
	same(r.t, "type URL", req.TypeURL(), url)
	same(r.t, "request", strings.TrimSpace(short(req)), want)
	return req
}

// A server of version 2 is asked in its own words and answered with the URL that it was
// asked for; values are those of version 3. Its resources may be of version 3 too.
//
// spec: V2-1 V2-2 V2-3
func TestVersion2(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		_, a := r.watch("a")
		st := r.accept()
		same(t, "method", st.Method, "/envoy.service.discovery.v2.AggregatedDiscoveryService/StreamAggregatedResources")
		req := r.asked(st, clusterV2, "[a]")
		same(t, "build_version", string(req.Node().ProtoReflect().GetUnknown()), "\x2a\x0exdswatch/"+client.Version)

		r.send(st, testutil.SotW(clusterV2, "1", "n1", typed(t, clusterV2, cluster("a", "one"))))
		a.heard(t, "updated a 1")
		if c, ok := a.last().Value.(*clusterv3.Cluster); !ok || c.AltStatName != "one" {
			t.Errorf("the value is %v", a.last().Value)
		}
		r.asked(st, clusterV2, "[a] v1 n1")

		r.send(st, testutil.SotW(cds.Type.TypeURL(), "2", "n2", cluster("a", "two")))
		a.heard(t, "updated a 1", "updated a 2")
		r.asked(st, clusterV2, "[a] v2 n2")

		r.send(st, testutil.SotW(clusterV2, "3", "n3", cluster("a", "three")))
		a.heard(t, "updated a 1", "updated a 2", "updated a 3")
		r.asked(st, clusterV2, "[a] v3 n3")
	}, version2)
}

// What is wrong with a response of version 2 is refused, and told in the words of version 3.
//
// spec: V2-1
func TestVersion2Refused(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		_, a := r.watch("a")
		st := r.accept()
		r.asked(st, clusterV2, "[a]")
		_, b := r.watch("b")
		r.asked(st, clusterV2, "[a b]")
		inner := testutil.Wrapped("a", "", typed(t, clusterV2, cluster("a", "one")))
		r.send(st, testutil.SotW(clusterV2, "1", "n1", inner, typed(t, endpointsV2, assignment("b"))))
		a.heard(t, "updated a 1")
		req := r.asked(st, clusterV2, "[a b] n1 error: "+
			`resource index 1: type URL "`+eds.Type.TypeURL()+`" does not match the response's "`+cds.Type.TypeURL()+`"`)
		if req.Version() != "" {
			t.Errorf("a NACK of the first response has version %q", req.Version())
		}
		twice := &discoveryv3.Resource{Name: "b", Resource: typed(t, "type.googleapis.com/envoy.service.discovery.v3.Resource", inner)}
		r.send(st, testutil.SotW(clusterV2, "2", "n2", inner, twice))
		synctest.Wait()
		if ev := b.last(); ev.Err == nil || !strings.Contains(ev.Err.Error(), `type URL "type.googleapis.com/envoy.service.discovery.v3.Resource"`) {
			t.Errorf("of a wrapper in a wrapper b heard %v", ev)
		}
		a.heard(t, "updated a 1")
	}, version2)
}

// On a stream of version 3 a type URL of version 2 is any other.
//
// spec: TYPE-3 TYPE-4
func TestVersion2Unasked(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		_, a := r.watch("a")
		st := r.accept()
		r.request(st, "cds [a]")
		r.send(st, testutil.SotW(clusterV2, "1", "n1", typed(t, clusterV2, cluster("a", "one"))))
		r.quiet(st, 1)
		a.heard(t)
		r.send(st, testutil.SotW(cds.Type.TypeURL(), "2", "n2", typed(t, clusterV2, cluster("a", "one"))))
		synctest.Wait()
		req, err := st.Next(t.Context())
		must(t, err)
		if text := req.ErrorDetail().GetMessage(); !strings.Contains(text, clusterV2) {
			t.Errorf("the answer is %v", req)
		}
	})
}

// Delta responses of early servers say no type: on one stream for all, the entries tell.
//
// spec: V2-2 V2-4
func TestVersion2Delta(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		_, a := r.watch("a")
		_, e := r.watchType(eds.Type, "e")
		st := r.accept()
		same(t, "method", st.Method, "/envoy.service.discovery.v2.AggregatedDiscoveryService/DeltaAggregatedResources")
		r.asked(st, clusterV2, "[a]")
		r.asked(st, endpointsV2, "[e]")
		r.send(st, testutil.Delta("", "n1", []*discoveryv3.Resource{testutil.Wrapped("e", "1", typed(t, endpointsV2, assignment("e")))}))
		e.heard(t, "updated e 1")
		r.asked(st, endpointsV2, "[] n1")
		r.send(st, testutil.Delta("", "n2", []*discoveryv3.Resource{testutil.Wrapped("a", "2", typed(t, clusterV2, cluster("a", "one")))}))
		a.heard(t, "updated a 2")
		r.asked(st, clusterV2, "[] n2")
		r.send(st, testutil.Delta("", "n3", nil, "e"))
		e.heard(t, "updated e 1", "does not exist e removed")
		r.asked(st, endpointsV2, "[] n3")

		st.End(nil)
		st = r.accept()
		req := r.asked(st, clusterV2, "[a]")
		same(t, "versions", req.Delta.GetInitialResourceVersions(), map[string]string{"a": "2"})
	}, version2, incremental)
}

// spec: V2-2
func TestVersion2PerType(t *testing.T) {
	for _, delta := range []bool{false, true} {
		change := []func(*client.Config){version2, streamEach}
		want := "/envoy.api.v2.ClusterDiscoveryService/StreamClusters"
		if delta {
			change = append(change, incremental)
			want = "/envoy.api.v2.ClusterDiscoveryService/DeltaClusters"
		}
		inBubble(t, func(t *testing.T, r *rig) {
			_, a := r.watch("a")
			st := r.accept()
			same(t, "method", st.Method, want)
			r.asked(st, clusterV2, "[a]")
			if delta {
				r.send(st, testutil.Delta("", "n1", []*discoveryv3.Resource{testutil.Wrapped("a", "1", typed(t, clusterV2, cluster("a", "one")))}))
			} else {
				r.send(st, testutil.SotW("", "1", "n1", typed(t, clusterV2, cluster("a", "one"))))
			}
			a.heard(t, "updated a 1")
		}, change...)
	}
}

// What cannot work at a server of version 2 fails when it is asked for.
//
// spec: V2-2
func TestVersion2Types(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		old := resource.Custom(clusterV2, resource.Options{NameField: 1}, func(resource.Source, []byte) (string, error) { return "", nil })
		for kind, want := range map[resource.AnyType]string{
			old:       "want type " + cds.Type.TypeURL(),
			ecds.Type: "the type has no stream of its own",
		} {
			_, err := r.c.Watch(t.Context(), kind, "a", func(client.Event[any]) {})
			var re *client.ResourceError
			if !errors.As(err, &re) || re.Kind != client.ErrorConfig || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v", kind.TypeURL(), err)
			}
		}
	}, version2, streamEach)
}
