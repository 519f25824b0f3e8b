package client_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/resource/eds"
	"github.com/xdswatch/xdswatch/testutil"
)

// counted writes down what is counted, in order.
type counted struct {
	mu    sync.Mutex
	lines []string
}

func (c *counted) add(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lines = append(c.lines, fmt.Sprintf(format, args...))
}

// metered is a change of a rig's configuration.
func (c *counted) metered(config *client.Config) {
	config.Metrics = &client.Metrics{
		Connected:              func(h client.ServerHealth) { c.add("connected %v", h.Connected) },
		ServerFailure:          func(server string) { c.add("failure of %s", server) },
		ResourceUpdatesValid:   func(u client.UpdateCount) { c.add("%s valid %d", kinds[u.Type], u.Resources) },
		ResourceUpdatesInvalid: func(u client.UpdateCount) { c.add("%s invalid %d", kinds[u.Type], u.Resources) },
	}
}

// told compares what was counted since the last call.
func (c *counted) told(t *testing.T, when string, want ...string) {
	t.Helper()
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	same(t, when, c.lines, want)
	c.lines = nil
}

// connected compares the gauge: one value a server, in order of their URIs.
func (r *rig) connected(when string, want ...bool) {
	r.t.Helper()
	synctest.Wait()
	var got []bool
	for _, s := range r.c.Gauges().Servers {
		got = append(got, s.Connected)
	}
	same(r.t, "connected "+when, got, want)
}

// A server is connected from its first stream on, not any more when none can be had, and
// again at a response; one failure is counted, however many attempts it takes.
// spec: METRIC-1 METRIC-2
func TestConnectedThroughRefusal(t *testing.T) {
	var c counted
	inBubble(t, func(t *testing.T, r *rig) {
		r.connected("before the first watch")
		r.srv.SetHoldDial(true)
		r.watch("a")
		c.told(t, "the first stream is asked for", "connected true")
		r.connected("while it dials", true)
		r.srv.SetRefuse(true)
		r.srv.SetHoldDial(false)
		c.told(t, "the server refuses", "connected false", "failure of "+r.srv.Target())
		time.Sleep(5 * time.Minute)
		c.told(t, "it goes on refusing")
		r.connected("while it refuses", false)

		r.srv.SetRefuse(false)
		st := r.accept()
		c.told(t, "a stream stands, without a response")
		r.connected("before a response", false)
		r.clusters(st, "1", "n1", "a")
		c.told(t, "the first response", "connected true", "cds valid 1")
		same(t, "servers", r.c.Gauges().Servers, []client.ServerHealth{{Server: r.srv.Target(), Connected: true}})
	}, c.metered)
}

// The end of a stream is a failure before its first response only; any response will do.
// spec: METRIC-1
func TestConnectedThroughStreams(t *testing.T) {
	var c counted
	inBubble(t, func(t *testing.T, r *rig) {
		r.watch("a")
		st := r.accept()
		r.clusters(st, "1", "n1", "a")
		st.End(nil)
		st = r.accept()
		c.told(t, "an end after a response", "connected true", "cds valid 1")
		st.End(status.Error(codes.Unavailable, "not now"))
		st = r.accept()
		c.told(t, "an end without one", "connected false", "failure of "+r.srv.Target())
		st.End(nil)
		st = r.accept()
		c.told(t, "another")
		r.send(st, testutil.SotW(eds.Type.TypeURL(), "1", "e1", assignment("e")))
		c.told(t, "a response that is ignored", "connected true")
		st.End(nil)
		st = r.accept()
		st.End(nil)
		r.accept()
		c.told(t, "the second time", "connected false", "failure of "+r.srv.Target())
	}, c.metered)
}

// A server on which nothing is watched is not listed, and what was known of it stays.
// spec: METRIC-1
func TestConnectedIdle(t *testing.T) {
	var c counted
	inBubble(t, func(t *testing.T, r *rig) {
		w, _ := r.watch("a")
		r.accept().End(nil)
		c.told(t, "the failure", "connected true", "connected false", "failure of "+r.srv.Target())
		w.Stop()
		time.Sleep(time.Minute)
		r.connected("without a watch")
		r.watch("a")
		st := r.accept()
		r.connected("with a new stream", false)
		c.told(t, "a new stream")
		r.clusters(st, "1", "n1", "a")
		c.told(t, "a response", "connected true", "cds valid 1")
	}, c.metered)
}

// With one stream a type a server is connected while none of them fails.
// spec: METRIC-1
func TestConnectedPerType(t *testing.T) {
	var c counted
	inBubble(t, func(t *testing.T, r *rig) {
		r.watch("a")
		clusters := r.accept()
		w, _ := r.watchType(eds.Type, "e")
		r.accept().End(nil)
		c.told(t, "one fails", "connected true", "connected false", "failure of "+r.srv.Target())
		r.clusters(clusters, "1", "n1", "a")
		c.told(t, "the other has a response", "cds valid 1")
		st := r.accept()
		r.send(st, testutil.SotW("", "1", "e1", assignment("e")))
		c.told(t, "the one has too", "connected true", "eds valid 1")
		st.End(nil)
		r.accept().End(nil)
		c.told(t, "it fails again", "connected false", "failure of "+r.srv.Target())
		w.Stop()
		r.clusters(clusters, "2", "n2", "a")
		c.told(t, "nobody wants it, and the other has a response", "connected true", "cds valid 1")
	}, c.metered, func(c *client.Config) { c.Streams = client.StreamsPerType })
}

// Two servers are two gauges.
// spec: METRIC-2
func TestConnectedOfTwoServers(t *testing.T) {
	twoServers(t, func(t *testing.T, r *rig, other *testutil.Server) {
		other.SetRefuse(true)
		r.watch("a")
		r.watch(otherName)
		r.accept()
		synctest.Wait()
		want := []client.ServerHealth{{Server: other.Target()}, {Server: r.srv.Target(), Connected: true}}
		same(t, "servers", r.c.Gauges().Servers, want)
	})
}

// Each resource of a response is good or invalid, whether or not it is new.
// spec: METRIC-1 METRIC-2
func TestUpdatesAreCounted(t *testing.T) {
	var c counted
	odd, err := anypb.New(assignment("odd"))
	must(t, err)
	tests := []struct {
		what      string
		resources []proto.Message
		want      []string
	}{
		{"new", []proto.Message{cluster("a", "1"), cluster("b", "1")}, []string{"cds valid 2"}},
		{"one of two changed", []proto.Message{cluster("a", "2"), cluster("b", "1")}, []string{"cds valid 2"}},
		{"nothing changed", []proto.Message{cluster("a", "2"), cluster("b", "1")}, []string{"cds valid 2"}},
		{"one bad", []proto.Message{cluster("a", "2"), invalid("b")}, []string{"cds valid 1", "cds invalid 1"}},
		{"known to be bad", []proto.Message{cluster("a", "3"), invalid("b")}, []string{"cds valid 1", "cds invalid 1"}},
		{"not asked for", []proto.Message{cluster("a", "3"), cluster("x", "1")}, []string{"cds valid 1"}},
		{"nameless", []proto.Message{cluster("a", "3"), cluster("", "1")}, []string{"cds valid 1", "cds invalid 1"}},
		{"another type", []proto.Message{testutil.Wrapped("b", "", odd)}, []string{"cds invalid 1"}},
		{"named twice", []proto.Message{cluster("a", "4"), cluster("b", "1"), cluster("b", "2")}, []string{"cds valid 1", "cds invalid 2"}},
		{"nothing", nil, nil},
	}
	inBubble(t, func(t *testing.T, r *rig) {
		r.watch("a")
		r.watch("b")
		st := r.accept()
		c.told(t, "stream", "connected true")
		for i, tt := range tests {
			r.send(st, testutil.SotW(cds.Type.TypeURL(), fmt.Sprint(i), fmt.Sprint("n", i), tt.resources...))
			c.told(t, tt.what, tt.want...)
		}
	}, c.metered)
}

// An error in place of a resource is invalid, and so is an error that names none or is none.
// spec: METRIC-1 ERR-6 ERR-8
func TestResourceErrorsAreCounted(t *testing.T) {
	var c counted
	inBubble(t, func(t *testing.T, r *rig) {
		r.watch("a")
		r.watch("b")
		st := r.accept()
		c.told(t, "stream", "connected true")
		for i, tt := range []struct {
			what, name string
			code       codes.Code
			want       []string
		}{
			{"denied", "b", codes.PermissionDenied, []string{"cds valid 1", "cds invalid 1"}},
			{"missing", "b", codes.NotFound, []string{"cds valid 1", "cds invalid 1"}},
			{"not asked for", "x", codes.NotFound, []string{"cds valid 1"}},
			{"nameless", "", codes.NotFound, []string{"cds valid 1", "cds invalid 1"}},
			{"no error", "b", codes.OK, []string{"cds valid 1", "cds invalid 1"}},
		} {
			resp := testutil.SotW(cds.Type.TypeURL(), fmt.Sprint(i), fmt.Sprint("n", i), cluster("a", "1"))
			resp.ResourceErrors = []*discoveryv3.ResourceError{{
				ResourceName: &discoveryv3.ResourceName{Name: tt.name}, ErrorDetail: &statuspb.Status{Code: int32(tt.code)},
			}}
			r.send(st, resp)
			c.told(t, tt.what, tt.want...)
		}
	}, c.metered)
}

// A heartbeat is a good resource; what is removed is none.
// spec: METRIC-1
func TestUpdatesOfDelta(t *testing.T) {
	var c counted
	tests := []struct {
		what      string
		resources []*discoveryv3.Resource
		removed   []string
		want      []string
	}{
		{"new", []*discoveryv3.Resource{testutil.Wrapped("a", "1", cluster("a", ""))}, nil, []string{"cds valid 1"}},
		{"heartbeat", []*discoveryv3.Resource{testutil.Wrapped("a", "1", nil)}, nil, []string{"cds valid 1"}},
		{"bad", []*discoveryv3.Resource{testutil.Wrapped("a", "2", invalid("a"))}, nil, []string{"cds invalid 1"}},
		{"both there and removed", []*discoveryv3.Resource{testutil.Wrapped("a", "3", cluster("a", "3"))}, []string{"a"}, []string{"cds invalid 1"}},
		{"removed", nil, []string{"a"}, nil},
		{"without a body", []*discoveryv3.Resource{testutil.Wrapped("a", "4", nil)}, nil, nil},
	}
	inBubble(t, func(t *testing.T, r *rig) {
		r.watch("a")
		st := r.accept()
		c.told(t, "stream", "connected true")
		for i, tt := range tests {
			r.send(st, testutil.Delta(cds.Type.TypeURL(), fmt.Sprint("n", i), tt.resources, tt.removed...))
			c.told(t, tt.what, tt.want...)
		}
	}, c.metered, func(c *client.Config) { c.Variant = client.VariantDelta })
}

// A hook is not called by the loop: it may ask the client, block and panic. While it
// blocks, the response after next is not read.
func TestMetricsHooks(t *testing.T) {
	hold := make(chan struct{})
	var r *rig
	inBubble(t, func(t *testing.T, own *rig) {
		r, hold = own, make(chan struct{})
		_, rec := r.watch("a")
		st := r.accept()
		r.clusters(st, "1", "n1", "a")
		r.clusters(st, "2", "n2", "a")
		r.quiet(st, 2) // the request and an ACK
		same(t, "states", len(r.c.Dump()), 1)
		close(hold)
		rec.heard(t, "updated a 1", "updated a 2")
		r.quiet(st, 3)
		r.log.holds(t, "a metrics function panicked")
	}, func(c *client.Config) {
		c.Metrics = &client.Metrics{ResourceUpdatesValid: func(client.UpdateCount) {
			<-hold
			if n := len(r.c.Gauges().Resources); n != 1 {
				t.Errorf("a hook finds %d counts, want 1", n)
			}
			panic("hooks may panic")
		}}
	})
}

// A hook that panics keeps no other from being called.
// spec: METRIC-1
func TestMetricsHooksBesidePanics(t *testing.T) {
	var heard []string
	inBubble(t, func(t *testing.T, r *rig) {
		r.srv.SetRefuse(true)
		r.watch("a")
		time.Sleep(time.Minute)
		r.srv.SetRefuse(false)
		r.send(r.accept(), testutil.SotW(cds.Type.TypeURL(), "1", "n1", cluster("a", ""), cluster("", "")))
		synctest.Wait()
	}, func(c *client.Config) {
		hook := func(name string) { heard = append(heard, name); panic("hooks may panic") }
		c.Metrics = &client.Metrics{
			Connected:              func(h client.ServerHealth) { hook(fmt.Sprint("connected ", h.Connected)) },
			ServerFailure:          func(string) { hook("failure") },
			ResourceUpdatesValid:   func(client.UpdateCount) { hook("valid") },
			ResourceUpdatesInvalid: func(client.UpdateCount) { hook("invalid") },
		}
	})
	same(t, "heard", heard, []string{"connected true", "connected false", "failure", "connected true", "valid", "invalid"})
}

// A client may have only some of the hooks, or none.
func TestMetricsWithoutHooks(t *testing.T) {
	for _, m := range []*client.Metrics{nil, {}} {
		inBubble(t, func(t *testing.T, r *rig) {
			_, rec := r.watch("a")
			r.accept().End(nil)
			r.connected("after a failure", false)
			st := r.accept()
			r.send(st, testutil.SotW(cds.Type.TypeURL(), "1", "n1", cluster("a", ""), cluster("", "")))
			r.connected("after a response", true)
			same(t, "last event", lines(rec.all()[len(rec.all())-1:]), []string{"updated a 1"})
		}, func(c *client.Config) { c.Metrics = m })
	}
}

func resourceError(name string) *discoveryv3.ResourceError {
	return &discoveryv3.ResourceError{
		ResourceName: &discoveryv3.ResourceName{Name: name},
		ErrorDetail:  &statuspb.Status{Code: int32(codes.ResourceExhausted), Message: "quota"},
	}
}

// counts writes the counts of resources, one a line.
func counts(g client.Gauges) (got []string) {
	for _, n := range g.Resources {
		got = append(got, fmt.Sprintf("%q %s %s %d", n.Authority, kinds[n.Type], n.State, n.Count))
	}
	return got
}

// Every resource is in one state, by authority and type.
// spec: METRIC-1 METRIC-2
func TestResourceCounts(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		same(t, "before the first watch", counts(r.c.Gauges()), nil)
		names := []string{"held", "held2", "bad", "was-good", "error", "error-held"}
		for _, name := range names {
			r.watch(name)
		}
		structured := "xdstp://au/" + clusterName + "/s"
		r.watch(structured)
		r.watch("xdstp:///" + clusterName + "/empty")
		_, err := r.c.WatchAll(context.Background(), eds.Type, "*", func(client.Batch[any]) {})
		must(t, err)
		st := r.accept()
		r.send(st, testutil.SotW(eds.Type.TypeURL(), "1", "e1", assignment("m1"), assignment("m2"), assignment("m3")))
		m := testutil.SotW(cds.Type.TypeURL(), "1", "n1", cluster("held", ""), cluster("held2", ""), invalid("bad"),
			cluster("was-good", ""), cluster("error-held", ""), cluster(structured, ""))
		m.ResourceErrors = []*discoveryv3.ResourceError{resourceError("error")}
		r.send(st, m)
		synctest.Wait()
		w, _ := r.watch("silent")
		m = testutil.SotW(cds.Type.TypeURL(), "2", "n2", cluster("held", ""), cluster("held2", ""), invalid("bad"),
			invalid("was-good"), cluster(structured, ""))
		m.ResourceErrors = []*discoveryv3.ResourceError{resourceError("error-held")}
		r.send(st, m)
		synctest.Wait()
		want := []string{
			`"" cds requested 1`,
			`"#old" cds acked 2`, `"#old" cds nacked 1`, `"#old" cds nacked_but_cached 1`, `"#old" cds received_error 1`,
			`"#old" cds received_error_but_cached 1`, `"#old" cds requested 1`,
			`"#old" eds acked 3`,
			`"au" cds acked 1`,
		}
		same(t, "counts", counts(r.c.Gauges()), want)
		w.Stop()
		time.Sleep(time.Minute)
		want[0] = `"" cds does_not_exist 1`
		same(t, "counts a minute later", counts(r.c.Gauges()), slices.DeleteFunc(want, func(s string) bool { return s == `"#old" cds requested 1` }))
	}, func(c *client.Config) { c.Bootstrap.Authorities = map[string]bootstrap.Authority{"au": {}, "": {}} })
}

// The authorities that only the default source serves are one label: lists and redirects may lead to any number of them.
// spec: METRIC-2
func TestResourceCountsOfDefaultSource(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		for i := range 100 {
			r.watch(fmt.Sprintf("xdstp://a%d/%s/c", i, clusterName))
		}
		r.watch("xdstp://au/" + clusterName + "/s")
		same(t, "counts", counts(r.c.Gauges()), []string{`"#default" cds requested 100`, `"au" cds requested 1`})
	}, func(c *client.Config) {
		c.Bootstrap.Authorities = map[string]bootstrap.Authority{"au": {}}
		c.Bootstrap.DefaultSource = &bootstrap.Source{Servers: c.Bootstrap.Servers}
	})
}

// spec: METRIC-2
func TestResourceCountsTransient(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.watch("gone")
		r.watch("silent")
		st := r.accept()
		r.clusters(st, "1", "n1", "gone")
		r.clusters(st, "2", "n2")
		time.Sleep(time.Minute)
		same(t, "counts", counts(r.c.Gauges()), []string{`"#old" cds does_not_exist_but_cached 1`, `"#old" cds timeout 1`})
	}, func(c *client.Config) {
		c.DeletionPolicy = client.DeletionKeep
		c.Bootstrap.Servers[0].Features.ResourceTimerIsTransientError = true
	})
}

// The age of a response starts anew with each that is accepted whole, new or not.
func TestLastAccepted(t *testing.T) {
	for _, delta := range []bool{false, true} {
		inBubble(t, func(t *testing.T, r *rig) {
			send := func(st *testutil.Stream, nonce string, m proto.Message) {
				if delta {
					r.send(st, testutil.Delta(cds.Type.TypeURL(), nonce, []*discoveryv3.Resource{testutil.Wrapped("a", nonce, m)}))
				} else {
					r.send(st, testutil.SotW(cds.Type.TypeURL(), nonce, nonce, m))
				}
				synctest.Wait()
			}
			age := func(when string, want time.Duration) {
				t.Helper()
				ls := r.c.Gauges().Accepted
				if len(ls) != 1 || time.Since(ls[0].At) != want || ls[0].Type != cds.Type.TypeURL() || ls[0].Server != r.srv.Target() {
					t.Errorf("%s: %+v, want an age of %v", when, ls, want)
				}
			}
			w, _ := r.watch("a")
			r.watchType(eds.Type, "e")
			st := r.accept()
			send(st, "n0", invalid("a"))
			same(t, "before one was accepted", len(r.c.Gauges().Accepted), 0)
			send(st, "n1", cluster("a", ""))
			age("accepted", 0)
			time.Sleep(time.Minute)
			send(st, "n2", invalid("a"))
			age("refused", time.Minute)
			st.End(nil)
			st = r.accept()
			send(st, "n3", cluster("a", ""))
			age("the same again, on a new stream", 0)
			w.Stop()
			time.Sleep(time.Minute)
			same(t, "nobody wants it", len(r.c.Gauges().Accepted), 0)
		}, func(c *client.Config) {
			if delta {
				c.Variant = client.VariantDelta
			}
		})
	}
}

// Equal labels are one line, though the servers are two.
func TestGaugesOfEqualURIs(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.watch("a")
		r.watch("xdstp://au/" + clusterName + "/s")
		r.clusters(r.accept(), "1", "n1")
		r.accept().End(nil)
		r.connected("though one is", false)
		same(t, "accepted", len(r.c.Gauges().Accepted), 1)
	}, func(c *client.Config) {
		own := c.Bootstrap.Servers[0]
		own.Features.FailOnDataErrors = true
		c.Bootstrap.Authorities = map[string]bootstrap.Authority{"au": {Servers: []bootstrap.ManagementServer{own}}}
	})
}

func TestGaugesAfterClose(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.watch("a")
		r.clusters(r.accept(), "1", "n1", "a")
		r.c.Close()
		same(t, "gauges", r.c.Gauges(), client.Gauges{})
	})
}
