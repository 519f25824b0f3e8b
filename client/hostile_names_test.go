package client_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/internal/heapsize"
	"github.com/xdswatch/xdswatch/resource"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/testutil"
)

// What a server says of types that nobody asked for is kept to a few kilobytes each, of few types.
//
// spec: H-9
func TestLongNoncesOfForeignTypes(t *testing.T) {
	if testing.Short() {
		t.Skip("long: long nonces")
	}
	inBubble(t, func(t *testing.T, r *rig) {
		r.watch("a")
		st := r.accept()
		r.request(st, "cds [a]")
		before := heapsize.InUse()
		long := strings.Repeat("n", 60<<10) // longer ones end the stream
		for i := range 200 {
			r.send(st, testutil.SotW(fmt.Sprint(resource.TypePrefix, "test.T", i), "1", long))
			r.send(st, testutil.SotW(resource.TypePrefix+long+fmt.Sprint(i), "1", "n"))
			synctest.Wait()
		}
		if grown := int64(heapsize.InUse()) - int64(before); grown > 2<<20 {
			t.Errorf("the heap grew by %d KiB", grown>>10)
		}
		r.quiet(st, 1)
	})
}

// The error of the timer that is transient has a code.
//
// spec: C-5 DNE-8
func TestTimeoutHasCode(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		_, rec := r.watch("a")
		r.request(r.accept(), "cds [a]")
		time.Sleep(31 * time.Second)
		rec.heard(t, "failed a timeout")
		err := rec.last().Err
		if code := status.Code(err); code != codes.Unavailable {
			t.Errorf("the code of %v is %v", err, code)
		}
		if text := err.Error(); !strings.HasSuffix(text, ": the server did not answer in time") {
			t.Errorf("the text is %q", text)
		}
	}, func(c *client.Config) { c.Bootstrap.Servers[0].Features.ResourceTimerIsTransientError = true })
}

// A server may speak of an authority's names if it is one of its servers, in every scope and with
// a source that a watch brings along.
//
// spec: H-11
func TestWhoMayName(t *testing.T) {
	name := func(authority string) string {
		return "xdstp://" + authority + "/envoy.config.cluster.v3.Cluster/x"
	}
	var everywhere []proto.Message
	for _, authority := range []string{"top", "own", "good", "peers", ""} {
		everywhere = append(everywhere, testutil.Wrapped(name(authority), "1", cluster("x", "")))
	}
	for what, tt := range map[string]struct {
		options []client.WatchOption
		want    []string
	}{
		"plain":    {nil, []string{"top", "own"}},
		"in scope": {[]client.WatchOption{client.InScope("s")}, []string{"top", "own"}},
	} {
		t.Run(what, func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *rig) {
				heard := map[string]bool{}
				_, err := r.c.WatchAll(t.Context(), cds.Type, "*", func(b client.Batch[any]) {
					for _, ev := range b.Events {
						heard[ev.Name] = ev.Kind == client.EventUpdated
					}
				}, tt.options...)
				must(t, err)
				st := r.accept()
				r.send(st, testutil.SotW(cds.Type.TypeURL(), "1", "n1", everywhere...))
				r.request(st, "cds []")
				r.request(st, "cds [] v1 n1")
				synctest.Wait()
				delete(heard, "*")
				want := map[string]bool{}
				for _, authority := range tt.want {
					want[name(authority)] = true
				}
				same(t, "resources", heard, want)
				r.log.holds(t, "count=3")
			}, func(c *client.Config) {
				elsewhere := bootstrap.ManagementServer{URI: "passthrough:///elsewhere", ChannelCreds: bootstrap.Insecure()}
				c.Bootstrap.Authorities = map[string]bootstrap.Authority{
					"top":   {},
					"own":   {Servers: []bootstrap.ManagementServer{elsewhere, c.Bootstrap.Servers[0]}},
					"good":  {Servers: []bootstrap.ManagementServer{elsewhere}},
					"peers": {Servers: []bootstrap.ManagementServer{elsewhere}},
				}
			})
		})
	}
}
