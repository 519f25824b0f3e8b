package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/google/go-cmp/cmp"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/resource/eds"
	"github.com/xdswatch/xdswatch/resource/sds"
	"github.com/xdswatch/xdswatch/testutil"
	"github.com/xdswatch/xdswatch/transport"
)

// invalid is refused by the message's own rules.
func invalid(name string) *clusterv3.Cluster {
	return &clusterv3.Cluster{Name: name, ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: -1}}
}

// Every error names the resource, its type, the server and the node, and is of its kind.
// case: go-errors-node-id
// spec: ERR-11
func TestErrorsSpeak(t *testing.T) {
	refuse := func(r *rig) { r.srv.SetRefuse(true) }
	tests := []struct {
		kind client.ErrorKind
		text string
		make func(*rig)
		play func(*rig, *testutil.Stream)
	}{
		{client.ErrorConnection, "the server cannot be reached", refuse, nil},
		{client.ErrorStream, "the stream ended before a response", nil, func(r *rig, st *testutil.Stream) {
			st.End(status.Error(codes.PermissionDenied, "not you"))
		}},
		{client.ErrorRejected, "rejected", nil, func(r *rig, st *testutil.Stream) {
			r.send(st, testutil.SotW(cds.Type.TypeURL(), "1", "n1", invalid("a")))
		}},
		{client.ErrorData, "quota", nil, func(r *rig, st *testutil.Stream) {
			m := testutil.SotW(cds.Type.TypeURL(), "1", "n1")
			m.ResourceErrors = []*discoveryv3.ResourceError{{
				ResourceName: &discoveryv3.ResourceName{Name: "a"},
				ErrorDetail:  &statuspb.Status{Code: int32(codes.ResourceExhausted), Message: "quota"},
			}}
			r.send(st, m)
		}},
		{client.ErrorTimeout, "in time", nil, func(r *rig, st *testutil.Stream) { time.Sleep(time.Minute) }},
	}
	for _, tt := range tests {
		t.Run(string(tt.kind), func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *rig) {
				if tt.make != nil {
					tt.make(r)
				}
				_, rec := r.watch("a")
				if tt.play != nil {
					tt.play(r, r.accept())
				}
				synctest.Wait()
				err := rec.last().Err
				var re *client.ResourceError
				if !errors.As(err, &re) || re.Kind != tt.kind {
					t.Fatalf("the error is %v, want a ResourceError of kind %s", err, tt.kind)
				}
				for _, part := range []string{`"a"`, clusterName, r.srv.Target(), `"node-1"`, tt.text} {
					if !strings.Contains(err.Error(), part) {
						t.Errorf("%q is not in %q", part, err)
					}
				}
				if tt.kind == client.ErrorData && status.Code(errors.Unwrap(err)) != codes.ResourceExhausted {
					t.Errorf("the cause is %v, want the server's code", errors.Unwrap(err))
				}
				if tt.kind == client.ErrorStream && status.Code(errors.Unwrap(err)) != codes.PermissionDenied {
					t.Errorf("the cause is %v, want the stream's status", errors.Unwrap(err))
				}
			}, func(c *client.Config) {
				c.Bootstrap.Servers[0].Features.ResourceTimerIsTransientError = true
			})
		})
	}
}

// The node is asked for anew with each stream, and sent with its first request.
// spec: NODE-1 NODE-2 NODE-3 NODE-4
func TestNode(t *testing.T) {
	want := &corev3.Node{
		Id: "node-1", UserAgentName: "xdswatch",
		UserAgentVersionType: &corev3.Node_UserAgentVersion{UserAgentVersion: client.Version},
		ClientFeatures:       []string{"xds.config.resource-in-sotw", "xds.config.supports-resource-ttl"},
	}
	inBubble(t, func(t *testing.T, r *rig) {
		r.watch("a")
		r.watchType(eds.Type, "e")
		st := r.accept()
		same(t, "second node", r.request(st, "cds [a]").Node() != nil, true)
		if diff := cmp.Diff(want, st.Requests()[0].Node(), protocmp.Transform()); diff != "" {
			t.Errorf("node (-want +got):\n%s", diff)
		}
		if n := r.request(st, "eds [e]").Node(); n != nil {
			t.Errorf("the second request has node %v", n)
		}
	})
	calls := 0
	inBubble(t, func(t *testing.T, r *rig) {
		r.watch("a")
		for i, want := range []string{"call-1", "call-2", "node-1", "node-1"} {
			st := r.accept()
			r.request(st, "cds [a]")
			same(t, fmt.Sprint("node of stream ", i+1), st.Requests()[0].Node().GetId(), want)
			st.End(nil)
		}
		r.log.holds(t, "the node of Config.Node cannot be encoded")
		r.log.holds(t, "Config.Node panicked")
	}, func(c *client.Config) {
		c.Node = func(n *corev3.Node) *corev3.Node {
			switch calls++; calls {
			case 3:
				n.Id = "\xff"
			case 4:
				panic("no node")
			default:
				n.Id = fmt.Sprint("call-", calls)
			}
			return n
		}
	})
}

// A program's own user agent stays.
// spec: NODE-3
func TestOwnUserAgent(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.watch("a")
		n := r.request(r.accept(), "cds [a]").Node()
		if n.GetUserAgentName() != "mine" || n.GetUserAgentVersion() != "" {
			t.Errorf("the node is %v", n)
		}
	}, func(c *client.Config) { c.Bootstrap.Node.UserAgentName = "mine" })
}

// spec: CSDS-3
func TestDump(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.watch("good")
		r.watch("bad")
		r.watch("silent")
		_, err := r.c.WatchAll(context.Background(), eds.Type, "*", func(client.Batch[any]) {})
		must(t, err)
		same(t, "dump right after the watches", len(r.c.Dump()), 4)
		st := r.accept()
		at := time.Now()
		r.send(st, testutil.SotW(cds.Type.TypeURL(), "1", "n1", cluster("good", ""), invalid("bad")))
		r.send(st, testutil.SotW(eds.Type.TypeURL(), "7", "n2", assignment("member")))
		synctest.Wait()
		var got []string
		for _, s := range r.c.Dump() {
			got = append(got, fmt.Sprintf("%s %s %s %q watched=%v held=%v err=%v", kinds[s.Type], s.Name, s.Status, s.Version, s.Watched, s.Raw != nil, s.Err != nil))
			if s.Raw != nil && !s.Updated.Equal(at) || s.Server != r.srv.Target() {
				t.Errorf("%s was updated at %v by %q", s.Name, s.Updated, s.Server)
			}
		}
		same(t, "dump", got, []string{
			`cds bad NACKED "" watched=true held=false err=true`,
			`cds good ACKED "1" watched=true held=true err=false`,
			`cds silent REQUESTED "" watched=true held=false err=false`,
			`eds * ACKED "" watched=true held=false err=false`,
			`eds member ACKED "7" watched=false held=true err=false`,
		})
		dumpJSON(t, r)
	})
}

func dumpJSON(t *testing.T, r *rig) {
	t.Helper()
	text, err := json.Marshal(r.c.Dump())
	must(t, err)
	var states []map[string]any
	must(t, json.Unmarshal(text, &states))
	bad := states[0]
	e, _ := bad["error"].(map[string]any)
	if bad["name"] != "bad" || bad["status"] != "NACKED" || e["kind"] != "rejected" || !strings.Contains(fmt.Sprint(e["message"]), "node-1") {
		t.Errorf("the first state is %v", bad)
	}
	if good := states[1]; good["error"] != nil || good["updated"] == nil || good["type"] != cds.Type.TypeURL() {
		t.Errorf("the second state is %v", good)
	}
	if _, ok := states[2]["updated"]; ok {
		t.Errorf("what is not held has a time: %v", states[2])
	}
}

// What happens on a stream is told in order, also relative to events.
// spec: STREAM-10, "record control_plane.identifier"
func TestTrace(t *testing.T) {
	var mu sync.Mutex
	var got []string
	note := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, fmt.Sprintf(format, args...))
	}
	trace := &client.Trace{
		StreamUp:   func(s client.StreamInfo) { note("up %s", s.Server) },
		StreamDown: func(s client.StreamInfo, err error) { note("down %v", err) },
		Request:    func(i client.RequestInfo) { note("request %s %v", kinds[i.Type], i.Size > 0) },
		Response: func(i client.ResponseInfo) {
			note("response %s %s %s %d %v%s", kinds[i.Type], i.Version, i.Nonce, i.Resources, i.Ignored, i.ControlPlane)
			if i.Version == "2" {
				panic("tracers may panic")
			}
		},
		ACK:  func(i client.AnswerInfo) { note("ack %s %s %s", kinds[i.Type], i.Version, i.Nonce) },
		NACK: func(i client.AnswerInfo) { note("nack %s %s", i.Nonce, i.Err) },
	}
	inBubble(t, func(t *testing.T, r *rig) {
		w, err := r.c.Watch(context.Background(), cds.Type, "a", func(ev client.Event[any]) { note("event %s", ev.Version) })
		must(t, err)
		st := r.accept()
		r.clusters(st, "1", "n1", "a")
		r.clusters(st, "2", "n2", "a")
		ignored := testutil.SotW(eds.Type.TypeURL(), "9", "e9")
		ignored.ControlPlane = &corev3.ControlPlane{Identifier: " by cp-7"}
		r.send(st, ignored)
		st.End(nil)
		st = r.accept()
		synctest.Wait()
		r.send(st, testutil.SotW(cds.Type.TypeURL(), "3", "n3", proto.Message(&clusterv3.Cluster{})))
		synctest.Wait()
		w.Stop()
		time.Sleep(time.Second)
		synctest.Wait()
		r.log.holds(t, "a trace function panicked")
	}, func(c *client.Config) { c.Trace = trace })
	same(t, "trace", got, []string{
		"up passthrough:///scripted", "request cds true",
		"response cds 1 n1 1 false", "event 1", "ack cds 1 n1",
		"response cds 2 n2 1 false", "event 2", "ack cds 2 n2",
		"response eds 9 e9 0 true by cp-7",
		"down EOF",
		"up passthrough:///scripted", "request cds true",
		"response cds 3 n3 1 false", "nack n3 resource index 0: the resource has no name",
		"down <nil>",
	})
}

// Streams are told apart however many there are, and however often they began anew.
func TestStreamID(t *testing.T) {
	numbers := []int{0, 1, 2, 1<<16 - 1, 1 << 16, 1<<16 + 1, 1<<31 - 1}
	seen := map[uint64]bool{}
	for _, stream := range numbers {
		for _, gen := range numbers {
			seen[client.StreamID(stream, gen)] = true
		}
	}
	if want := len(numbers) * len(numbers); len(seen) != want {
		t.Errorf("%d streams have %d numbers", want, len(seen))
	}
}

// What waits for a handler that blocks is bounded, however many requests leave meanwhile; what was left
// out is counted.
func TestTracedRequestsWait(t *testing.T) {
	var traced, omitted atomic.Int64
	hold := make(chan struct{})
	inBubble(t, func(t *testing.T, r *rig) {
		hold = make(chan struct{})
		_, err := r.c.Watch(context.Background(), cds.Type, "a", func(client.Event[any]) { <-hold })
		must(t, err)
		st := r.accept()
		r.clusters(st, "1", "n1", "a")
		for i := range 600 {
			w, _ := r.watch(fmt.Sprint("x", i))
			time.Sleep(5 * time.Millisecond)
			w.Stop()
			time.Sleep(5 * time.Millisecond)
		}
		synctest.Wait()
		close(hold)
		synctest.Wait()
		if n := traced.Load(); n < 100 || n > 1026 || omitted.Load() != 0 {
			t.Errorf("%d requests waited, and %d were left out before", n, omitted.Load())
		}
		r.watch("y")
		time.Sleep(5 * time.Millisecond)
		synctest.Wait()
		all := int64(len(st.Requests()) - 1) // without the ACK
		if got := traced.Load() + omitted.Load(); got != all || all < 1200 || omitted.Load() == 0 {
			t.Errorf("%d were traced and %d left out, want %d", traced.Load(), omitted.Load(), all)
		}
	}, func(c *client.Config) {
		c.HandlerTimeout = -1
		c.Trace = &client.Trace{Request: func(i client.RequestInfo) {
			traced.Add(1)
			omitted.Add(int64(i.Omitted))
		}}
	})
}

// A trace that is slow holds back what it traces.
func TestSlowTrace(t *testing.T) {
	hold := make(chan struct{})
	inBubble(t, func(t *testing.T, r *rig) {
		hold = make(chan struct{})
		r.watch("a")
		st := r.accept()
		r.send(st, testutil.SotW(eds.Type.TypeURL(), "1", "e1")) // not asked for
		r.clusters(st, "1", "n1", "a")
		r.quiet(st, 1)
		close(hold)
		r.quiet(st, 2)
	}, func(c *client.Config) {
		c.Trace = &client.Trace{Response: func(client.ResponseInfo) { <-hold }}
	})
}

// spec: ERR-4 ERR-5
func TestKeep(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		_, rec := r.watch("a")
		st := r.accept()
		r.clusters(st, "1", "n1", "a")
		r.clusters(st, "2", "n2")
		r.clusters(st, "3", "n3", "a")
		rec.heard(t, "updated a 1",
			"ambient error a data: the server deleted the resource; the last value is kept",
			"updated a 3")
		ev, err := r.c.Get(context.Background(), cds.Type, "a")
		if err != nil || ev.Version != "3" {
			t.Errorf("Get gave %v, %v", ev.Version, err)
		}
	}, func(c *client.Config) { c.DeletionPolicy = client.DeletionKeep })
}

func TestSkipValidation(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		_, rec := r.watch("a")
		st := r.accept()
		r.send(st, testutil.SotW(cds.Type.TypeURL(), "1", "n1", invalid("a")))
		rec.heard(t, "updated a 1")
	}, func(c *client.Config) { c.SkipValidation = true })
}

// A bad configuration is told as a whole, and no client is made.
func TestNewRefuses(t *testing.T) {
	if _, err := client.New(client.Config{}); err == nil || !strings.Contains(err.Error(), "Bootstrap is nil") {
		t.Errorf("without a bootstrap: %v", err)
	}
	boot, err := bootstrap.Server("127.0.0.1:1")
	must(t, err)
	boot.Node = &corev3.Node{Id: "\xff"}
	if _, err := client.New(client.Config{Bootstrap: boot}); err == nil || !strings.Contains(err.Error(), "the node cannot be encoded") {
		t.Errorf("with a node that is not UTF-8: %v", err)
	}
	boot.Node, boot.Authorities = nil, map[string]bootstrap.Authority{}
	for i := range 1 << 16 {
		boot.Authorities[strconv.Itoa(i)] = bootstrap.Authority{}
	}
	boot.Servers = append(boot.Servers, boot.Servers...)
	if _, err := client.New(client.Config{Bootstrap: boot}); err == nil || !strings.Contains(err.Error(), "together over 65536") {
		t.Errorf("with authorities that inherit too many servers: %v", err)
	}
}

// What is configured for something that is no type would be for nothing.
//
// spec: U-9 LKG-1
func TestNewRefusesWhatIsNoType(t *testing.T) {
	boot, err := bootstrap.Server("127.0.0.1:1")
	must(t, err)
	guards := map[string][]client.Guard{cds.Type.TypeURL(): nil, "example.com/a.B": nil}
	for _, key := range []string{"cds", "envoy.config.cluster.v3.Cluster", "type.googleapis.com/", ""} {
		guards[key] = []client.Guard{client.MinResources(1)}
	}
	deletions := map[string]client.DeletionPolicy{cds.Type.TypeURL(): client.DeletionKeep, "cds": client.DeletionKeep}
	secrets := sds.Type.TypeURL()
	types := []string{cds.Type.TypeURL(), "example.com/a.B", "nonsense", secrets, secrets + "Collection"}
	const none = " is no type URL; want type.googleapis.com/ and the full name of a message\n"
	const want = "xds: Config.Variant: 9 is no variant\nxds: Config.Streams: 9 is none of its values\n" +
		`xds: Config.Deletions: "cds"` + none +
		`xds: Config.Guards: ""` + none +
		`xds: Config.Guards: "cds"` + none +
		`xds: Config.Guards: "envoy.config.cluster.v3.Cluster"` + none +
		`xds: Config.Guards: "type.googleapis.com/"` + none +
		`xds: Config.StoreTypes: "nonsense"` + none +
		`xds: Config.StoreTypes: "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret" is a Secret, which is never kept` + "\n" +
		`xds: Config.StoreTypes: "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.SecretCollection" is a Secret, which is never kept`
	if c, err := client.New(client.Config{
		Bootstrap: boot, Variant: 9, Streams: 9, Guards: guards, Deletions: deletions, StoreTypes: types,
	}); c != nil || err == nil || err.Error() != want {
		t.Errorf("error %v\nwant %s", err, want)
	}
}

// A server whose URI cannot be dialled is one that is down: the next answers, and where there is
// no other the client is refused.
//
// spec: C-4
func TestServerThatCannotBeDialled(t *testing.T) {
	bad := bootstrap.ManagementServer{URI: "%zz:1", ChannelCreds: bootstrap.Insecure()}
	inBubble(t, func(t *testing.T, r *rig) {
		_, rec := r.watch("a")
		r.clusters(r.accept(), "1", "n1", "a")
		synctest.Wait()
		rec.heard(t, "updated a 1")
		r.log.holds(t, "gRPC cannot dial the URI")
	}, func(c *client.Config) {
		c.Bootstrap.Servers = append([]bootstrap.ManagementServer{bad}, c.Bootstrap.Servers...)
	})
	alone := &bootstrap.Config{Servers: []bootstrap.ManagementServer{bad}}
	if _, err := client.New(client.Config{Bootstrap: alone}); !errors.Is(err, transport.ErrTarget) || !strings.Contains(err.Error(), "%zz:1") {
		t.Errorf("with that server alone: %v", err)
	}
}

// A timeout that the program sets counts at every server, also one that is the default of the
// others.
// spec: DNE-8
func TestTransientTimeout(t *testing.T) {
	for set, want := range map[time.Duration]time.Duration{
		0: 30 * time.Second, 15 * time.Second: 15 * time.Second, 10 * time.Second: 10 * time.Second, -1: 0,
	} {
		inBubble(t, func(t *testing.T, r *rig) {
			start, told := time.Now(), time.Duration(0)
			_, err := r.c.Watch(t.Context(), cds.Type, "a", func(client.Event[any]) { told = time.Since(start) })
			must(t, err)
			r.accept()
			time.Sleep(time.Hour)
			synctest.Wait()
			if got := told.Truncate(time.Second); got != want {
				t.Errorf("with a timeout of %v the watch is told after %v, want %v", set, told, want)
			}
		}, func(c *client.Config) {
			c.ResourceTimeout = set
			c.Bootstrap.Servers[0].Features.ResourceTimerIsTransientError = true
		})
	}
}
