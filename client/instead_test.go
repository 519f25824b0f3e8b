package client_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/resource/eds"
	"github.com/xdswatch/xdswatch/testutil"
)

// A name that the server spells otherwise is absent, and the event and the error of Get say
// what came in its place.
// spec: U-1 ERR-11
func TestAbsenceSaysWhatCame(t *testing.T) {
	long := strings.Repeat("x", 1000)
	for what, tt := range map[string]struct {
		came  []proto.Message
		count int
		names []string
		err   string
		text  string
	}{
		"another name": {
			[]proto.Message{assignment("default/backend")}, 1, []string{"default/backend"}, "",
			`held one resource: "default/backend"`,
		},
		"nothing": {nil, 0, nil, "", "held nothing"},
		"a resource without a name": {
			[]proto.Message{assignment("")}, 1, nil, "resource index 0: the resource has no name",
			"it was NACKed: resource index 0: the resource has no name",
		},
		"many": {
			[]proto.Message{assignment("e"), assignment("b1"), assignment(long), assignment("b3"), assignment("b4")}, 5,
			[]string{"b1", strings.Repeat("x", 242) + "...(truncated)", "b3"}, "", "held 5 resources",
		},
	} {
		t.Run(what, func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *rig) {
				_, rec := r.watchType(eds.Type, "backend")
				r.watchType(eds.Type, "e")
				var text string
				go func() {
					_, err := r.c.Get(context.Background(), eds.Type, "backend")
					text = fmt.Sprint(err)
				}()
				st := r.accept()
				time.Sleep(time.Second)
				came := time.Now()
				r.send(st, testutil.SotW(eds.Type.TypeURL(), "1", "n1", tt.came...))
				time.Sleep(15 * time.Second)
				synctest.Wait()
				rec.heard(t, "does not exist backend timeout")
				in := rec.last().Instead
				if in == nil {
					t.Fatal("it is not said what came")
				}
				same(t, "names", in.Names, tt.names)
				if in.Count != tt.count || !in.Time.Equal(came) || !refusedFor(in.Err, tt.err) {
					t.Errorf("%d resources at %v, refused because of %v", in.Count, in.Time, in.Err)
				}
				if !strings.Contains(text, tt.text) || !strings.Contains(text, "timeout") {
					t.Errorf("the error of Get is %s, want %s in it", text, tt.text)
				}
				_, late := r.watchType(eds.Type, "backend")
				synctest.Wait()
				same(t, "what is told late", late.last().Instead.Count, tt.count)
			})
		})
	}
}

// Where nothing came, that is said. What is absent for another reason needs no explanation.
// spec: U-1
func TestAbsenceWithoutResponse(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		_, rec := r.watchType(eds.Type, "a")
		_, err := r.c.Get(context.Background(), eds.Type, "a")
		if !strings.Contains(fmt.Sprint(err), "no response of the type") || rec.last().Instead != nil {
			t.Errorf("told %+v, %v", rec.last(), err)
		}
		_, gone := r.watch("c")
		st := r.accept()
		time.Sleep(10 * time.Millisecond)
		r.clusters(st, "1", "n1", "c")
		r.clusters(st, "2", "n2")
		gone.heard(t, "updated c 1", "does not exist c absent")
		if in := gone.last().Instead; in != nil {
			t.Errorf("%v is said to have come instead", in)
		}
	})
}

// What a new stream brought counts, and not what the one before did.
// spec: U-1
func TestInsteadOfThisStream(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.watch("a")
		st := r.accept()
		r.clusters(st, "1", "n1", "b")
		st.End(nil)
		r.accept()
		time.Sleep(20 * time.Second)
		_, err := r.c.Get(context.Background(), cds.Type, "a")
		if !strings.Contains(fmt.Sprint(err), "no response of the type") {
			t.Errorf("Get: %v", err)
		}
	}, func(c *client.Config) { c.ResourceTimeout = 10 * time.Second })
}

// refusedFor says whether an error names the response, its server, the node and a reason; there is
// none if there is no reason.
func refusedFor(err error, reason string) bool {
	if err == nil || reason == "" {
		return err == nil && reason == ""
	}
	text := err.Error()
	return strings.HasPrefix(text, "xds: envoy.config.endpoint.v3.ClusterLoadAssignment response of server ") &&
		strings.HasSuffix(text, ` for node "node-1": rejected: `+reason)
}
