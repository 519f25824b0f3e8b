package view

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	xdscorev3 "github.com/cncf/xds/go/xds/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource/leds"
	"github.com/xdswatch/xdswatch/testutil"
)

// A collection of endpoints that has an old-style name is a list, in both variants (gRFC A95).
//
// spec: VIEW-40 LEDS-1
func TestListOfEndpoints(t *testing.T) {
	for _, variant := range []client.Variant{client.VariantSotW, client.VariantDelta} {
		t.Run(fmt.Sprint(variant), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { testListOfEndpoints(t, variant) })
		})
	}
}

func testListOfEndpoints(t *testing.T, variant client.Variant) {
	st, v := overTheWire(t, variant)
	send := func(typeURL, version, name string, m proto.Message) {
		wrapped := testutil.Wrapped(name, version, m)
		if variant == client.VariantDelta {
			must(t, st.Send(testutil.Delta(typeURL, version, []*discoveryv3.Resource{wrapped})))
		} else {
			must(t, st.Send(testutil.SotW(typeURL, version, version, wrapped)))
		}
		synctest.Wait()
	}
	list := func(version string, addresses ...string) {
		collection := &endpointv3.LbEndpointCollection{}
		for _, a := range addresses {
			assignment := res(t, "eds e "+a).(*endpointv3.ClusterLoadAssignment)
			body, err := anypb.New(assignment.GetEndpoints()[0].GetLbEndpoints()[0])
			must(t, err)
			collection.Entries = append(collection.Entries, &xdscorev3.CollectionEntry{ResourceSpecifier: &xdscorev3.CollectionEntry_InlineEntry_{
				InlineEntry: &xdscorev3.CollectionEntry_InlineEntry{Resource: body},
			}})
		}
		send(leds.Type.TypeURL()+"Collection", version, "backends", collection)
	}
	is := func(want string) {
		t.Helper()
		if got := fmt.Sprint(show(v.Snapshot())[1:]); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	send(kinds["cds"].TypeURL(), "1", "root", res(t, "cds root eds:e"))
	send(kinds["eds"].TypeURL(), "1", "e", res(t, "eds e leds:backends"))
	if v.Snapshot() != nil {
		t.Errorf("without its endpoints: %v", show(v.Snapshot()))
	}
	list("1", "1.1.1.1", "1.1.1.2")
	is("[  root ok 1 eds [1.1.1.1,1.1.1.2] by root]")
	list("2", "1.1.1.3")
	is("[  root ok 1 eds [1.1.1.3] by root]")
	list("3")
	is("[  root ok 1 eds [] by root note: the localities of the assignment have no endpoints]")
}

// Members of a collection that came before its initial_fetch_timeout stay: the client does not tell them again.
func TestMembersBeforeFetchTimeout(t *testing.T) {
	d := newDriver(t, []string{"cds", "root"}, nil)
	for _, line := range []string{"start", "cds root 1 eds", "eds root 1 leds:all", "member all a 1.1.1.1"} {
		d.run(line)
	}
	late := problem(client.ErrorData, []string{"", "leds", "all"}).(*client.ResourceError)
	late.Err = &client.FetchTimeoutError{After: time.Second}
	d.event("leds", "all", client.Event[any]{Kind: client.EventFailed, Err: late})
	d.step()
	d.run("synced leds all")
	if got := showEndpoints(d.core.snapshot.Cluster("root").Endpoints); got != "[1.1.1.1]" {
		t.Errorf("endpoints %s", got)
	}
}
