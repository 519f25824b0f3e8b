package transport_test

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/google/go-cmp/cmp"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/testutil"
)

// One POST for each poll: path, host, content type, length and body are those that Envoy
// has, the node each time.
// spec: REST-1
func TestRESTPoll(t *testing.T) {
	inRESTBubble(t, func(r *restRig) {
		r.set("1", "a", "b")
		node := &corev3.Node{Id: "me", UserAgentName: "test"}
		r.send(&discoveryv3.DiscoveryRequest{Node: node, ResourceNames: []string{"a", "b"}})
		p := r.poll("a b @")
		r.frame("1: a b")
		r.ask("1", "a", "b")
		again := r.poll("a b @1")
		for _, got := range []*testutil.RESTPoll{p, again} {
			if diff := cmp.Diff("me", got.Request.GetNode().GetId()); diff != "" {
				t.Errorf("node: -want +got:\n%s", diff)
			}
			line := strings.Join([]string{got.Path, got.Host, got.Header.Get("Content-Type"), got.Header.Get("X-Mine")}, " ")
			if want := "/v3/discovery:clusters xds_cluster application/json yes"; line != want {
				t.Errorf("poll %q, want %q", line, want)
			}
			if length := got.Header.Get("Content-Length"); length == "" {
				t.Error("the poll has no content length")
			}
		}
		var fields map[string]any
		if err := json.Unmarshal(p.Body, &fields); err != nil {
			t.Fatal(err)
		}
		for _, key := range []string{"node", "resource_names", "type_url"} {
			if fields[key] == nil {
				t.Errorf("the body %s has no %s", p.Body, key)
			}
		}
		if _, ok := fields["version_info"]; ok {
			t.Errorf("the body %s has a version before there is one", p.Body)
		}
	}, func(_ *testutil.RESTConfig, s *bootstrap.ManagementServer) {
		s.HostAuthority = "xds_cluster"
		s.Headers = []bootstrap.Header{{Key: "x-mine", Value: "yes"}}
	})
}

// The next poll begins a delay and up to as much again after the last ended, shows what was
// accepted, and is the only acknowledgement.
// spec: REST-3, REST-4
func TestRESTRefresh(t *testing.T) {
	inRESTBubble(t, func(r *restRig) {
		r.set("1", "a")
		r.ask("", "a")
		last := r.poll("a @").At
		r.frame("1: a")
		r.ask("1", "a")
		waits := map[time.Duration]bool{}
		for range 20 {
			at := r.poll("a @1").At
			wait := at.Sub(last)
			if wait < time.Minute || wait >= 2*time.Minute {
				t.Fatalf("a poll after %v, want between one and two minutes", wait)
			}
			waits[wait], last = true, at
		}
		if len(waits) < 15 {
			t.Errorf("20 waits of %d lengths: no jitter", len(waits))
		}
		synctest.Wait()
		r.set("2", "a", "b")
		r.poll("a @1")
		r.frame("2: a b")
	})
}

// A poll waits for the answer to the last response, and does not do so for ever.
func TestRESTWaitsForTheAnswer(t *testing.T) {
	inRESTBubble(t, func(r *restRig) {
		r.set("1", "a")
		r.ask("", "a")
		r.poll("a @")
		r.frame("1: a")
		r.quiet(9 * time.Second)
		r.ask("1", "a")
		r.poll("a @1")
		synctest.Wait()
		r.set("2", "a")
		r.poll("a @1")
		r.frame("2: a")
		r.quiet(9 * time.Second)
		r.poll("a @1")
	}, shortDelay)
}

// shortDelay is a refresh delay for a server that holds polls back.
func shortDelay(_ *testutil.RESTConfig, s *bootstrap.ManagementServer) {
	s.REST().RefreshDelay = time.Millisecond
}

// spec: REST-2
func TestREST304(t *testing.T) {
	inRESTBubble(t, func(r *restRig) {
		r.set("1", "a")
		r.ask("", "a")
		r.poll("a @")
		r.frame("1: a")
		r.ask("1", "a")
		for range 3 {
			r.poll("a @1")
			r.nothing()
		}
	})
}

// A 304 to the first poll of a stream says that the server is well: a response of nobody's
// type tells so.
func TestREST304First(t *testing.T) {
	inRESTBubble(t, func(r *restRig) {
		r.srv.Answer(answerStatus(304))
		r.ask("1", "a")
		r.poll("a @1")
		if resp := r.frame(":"); resp.GetTypeUrl() == "" || resp.GetTypeUrl() == clusterURL {
			t.Errorf("a sign of life of the type %q, want one that is nobody's", resp.GetTypeUrl())
		}
		r.poll("a @1")
		r.nothing()
	})
}

// The same body again is passed over, unless the interest is another.
func TestRESTSameBody(t *testing.T) {
	inRESTBubble(t, func(r *restRig) {
		r.srv.Answer(answerBody("application/json", `{"version_info":"1"}`))
		r.ask("", "a")
		r.poll("a @")
		r.frame("1:")
		r.ask("1", "a")
		r.poll("a @1")
		r.poll("a @1")
		r.nothing()
		r.ask("1", "a", "b")
		r.poll("a b @1")
		r.frame("1:")
		r.ask("1", "a")
		r.poll("a @1")
		r.frame("1:")
		r.ask("1", "a")
		r.srv.Answer(answerBody("application/json", `{"version_info":"2"}`))
		r.poll("a @1")
		r.frame("2:")
	})
}

// With a time to live each body is handed over, since it begins that time anew, and polls say no version, lest the server
// answers that nothing is new.
//
// spec: TTL-1 REST-2
func TestRESTSameBodyWithTTL(t *testing.T) {
	inRESTBubble(t, func(r *restRig) {
		r.srv.Answer(answerBody("application/json", `{"version_info":"1","resources":[{
			"@type":"type.googleapis.com/envoy.service.discovery.v3.Resource","name":"a","ttl":"90s",
			"resource":{"@type":"type.googleapis.com/envoy.config.cluster.v3.Cluster","name":"a"}}]}`))
		r.ask("", "a")
		r.poll("a @")
		for range 3 {
			r.frame("1: a")
			r.ask("1", "a")
			r.poll("a @")
		}
		r.srv.Answer(answerBody("application/json", `{"version_info":"2"}`))
		r.frame("1: a")
		r.ask("1", "a")
		r.poll("a @")
		r.frame("2:")
		r.ask("2", "a")
		r.poll("a @2")
	})
}

// A change of interest is polled at once, an answer is not.
func TestRESTChangeOfInterest(t *testing.T) {
	inRESTBubble(t, func(r *restRig) {
		r.set("1", "a", "b")
		r.ask("", "a")
		r.poll("a @")
		r.frame("1: a b")
		r.ask("1", "a")
		r.quiet(59 * time.Second)
		r.ask("1", "a", "b")
		r.quiet0("a b @1")
		r.frame("1: a b")
		r.ask("1", "a", "b")
		r.quiet(59 * time.Second)
		r.ask("1", "b")
		r.quiet0("b @1")
	})
}

// Names that have parameters are asked for in JSON too, and count as interest.
//
// spec: DYN-1
func TestRESTLocators(t *testing.T) {
	inRESTBubble(t, func(r *restRig) {
		r.set("1", "a", "b")
		asks := func(version string, names ...string) {
			req := &discoveryv3.DiscoveryRequest{VersionInfo: version, ResourceNames: []string{"b"}}
			for _, name := range names {
				req.ResourceLocators = append(req.ResourceLocators, &discoveryv3.ResourceLocator{
					Name: name, DynamicParameters: map[string]string{"env": "prod"},
				})
			}
			r.send(req)
		}
		asks("", "a")
		l := r.poll("b @").Request.GetResourceLocators()
		if len(l) != 1 || l[0].GetName() != "a" || l[0].GetDynamicParameters()["env"] != "prod" {
			t.Errorf("the poll asks for the locators %v", l)
		}
		r.frame("1: a b")
		asks("1", "a")
		r.quiet(59 * time.Second)
		asks("1", "a", "c")
		r.quiet0("b @1")
	})
}

// A changed node is polled at once; the same one again is not.
//
// spec: NODE-5
func TestRESTChangedNode(t *testing.T) {
	inRESTBubble(t, func(r *restRig) {
		r.set("1", "a")
		asks := func(version, cluster string) {
			r.send(&discoveryv3.DiscoveryRequest{VersionInfo: version, ResourceNames: []string{"a"}, Node: &corev3.Node{Cluster: cluster}})
		}
		asks("", "one")
		r.poll("a @")
		r.frame("1: a")
		asks("1", "one")
		r.quiet(59 * time.Second)
		asks("1", "two")
		r.quiet0("a @1")
		r.quiet(59 * time.Second)
		if got := r.poll("a @1").Request.GetNode().GetCluster(); got != "two" {
			t.Errorf("the node is that of %q", got)
		}
	})
}

// quiet0 checks that a poll comes without any time going by.
func (r *restRig) quiet0(want string) {
	r.t.Helper()
	begin := time.Now()
	r.poll(want)
	if took := time.Since(begin); took != 0 {
		r.t.Errorf("the poll came after %v, want at once", took)
	}
}

// A 304 says nothing of what was asked for since the last response, where the server looks
// at versions alone: it is asked for everything, once.
func TestREST304ToNewNames(t *testing.T) {
	inRESTBubble(t, func(r *restRig) {
		r.set("1", "a", "b")
		r.ask("", "a")
		r.poll("a @")
		r.frame("1: a b")
		r.ask("1", "a")
		r.poll("a @1")
		r.ask("1", "a", "b")
		r.quiet0("a b @1")
		r.quiet0("a b @")
		r.frame("1: a b")
		r.ask("1", "a", "b")
		r.poll("a b @1")
		r.nothing()
		r.ask("1", "b") // less
		r.quiet0("b @1")
		r.quiet(59 * time.Second)
		r.srv.Answer(answerStatus(304))
		r.ask("1") // everything
		r.quiet0(" @1")
		r.quiet0(" @")
		r.quiet(59 * time.Second)
		r.poll(" @1")
	}, func(c *testutil.RESTConfig, _ *bootstrap.ManagementServer) { c.ByVersion = true })
}

// The error of a refused response goes with the next poll, also if that is another
// request's, and with no other.
// spec: REST-4
func TestRESTNack(t *testing.T) {
	inRESTBubble(t, func(r *restRig) {
		r.set("2", "a")
		r.ask("1", "a")
		r.poll("a @1")
		r.frame("2: a")
		nack := &statuspb.Status{Code: 3, Message: "bad"}
		r.send(&discoveryv3.DiscoveryRequest{VersionInfo: "1", ResourceNames: []string{"a"}, ErrorDetail: nack})
		r.quiet(59 * time.Second)
		r.poll("a @1 error=bad")
		r.poll("a @1")
		synctest.Wait()

		r.set("3", "a")
		r.poll("a @1")
		r.frame("3: a")
		r.send(&discoveryv3.DiscoveryRequest{VersionInfo: "1", ResourceNames: []string{"a"}, ErrorDetail: nack})
		r.ask("1", "a", "b")
		r.quiet0("a b @1 error=bad")
		r.frame("3: a")
		r.ask("1", "a", "b")
		r.poll("a b @1")
	}, func(c *testutil.RESTConfig, _ *bootstrap.ManagementServer) { c.ByVersion = true })
}

// A server that holds polls back is told of a new interest when the poll had a moment, and
// is left alone otherwise.
func TestRESTLongPoll(t *testing.T) {
	inRESTBubble(t, func(r *restRig) {
		r.set("1", "a", "b")
		r.ask("", "a")
		r.poll("a @")
		r.frame("1: a b")
		r.ask("1", "a")
		r.poll("a @1")
		r.quiet(29 * time.Second)
		r.poll("a @1")
		r.set("2", "a", "b")
		r.frame("2: a b")
		r.ask("2", "a")
		r.poll("a @2")
		r.quiet(time.Second)
		r.ask("2", "a", "b")
		r.quiet0("a b @2")
		r.frame("2: a b")
		r.ask("2", "a", "b")
		r.poll("a b @2")
		begin := time.Now()
		r.ask("2", "b")
		r.poll("b @2")
		if took := time.Since(begin); took > 100*time.Millisecond {
			t.Errorf("a new interest waits for %v, want 100ms at most", took)
		}
	}, shortDelay, func(c *testutil.RESTConfig, s *bootstrap.ManagementServer) {
		c.Hold, s.REST().RequestTimeout = 30*time.Second, time.Minute
	})
}

// A server that is slow comes to answer, however often the interest changes.
func TestRESTChurn(t *testing.T) {
	inRESTBubble(t, func(r *restRig) {
		r.set("1", "a")
		r.srv.Answer(slowly(time.Second))
		r.ask("", "a")
		stop := time.After(10 * time.Second)
		for n := 0; ; n++ {
			select {
			case resp := <-r.frames:
				if resp.GetVersionInfo() != "slow" {
					t.Errorf("received %v", resp)
				}
				if polls := r.srv.Polls(); polls > 10 {
					t.Errorf("%d polls until there was an answer", polls)
				}
				return
			case <-stop:
				t.Fatalf("no answer after %d polls", r.srv.Polls())
			case <-time.After(10 * time.Millisecond):
				r.ask("", "a", strings.Repeat("b", n+1))
			}
		}
	}, func(_ *testutil.RESTConfig, s *bootstrap.ManagementServer) { s.REST().RequestTimeout = 5 * time.Second })
}
