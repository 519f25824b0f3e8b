package transport_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"github.com/google/go-cmp/cmp"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/internal/handover"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/testutil"
	"github.com/xdswatch/xdswatch/transport"
)

// watched is a client of a server that is polled, with what its watches heard.
type watched struct {
	restRig
	client *client.Client

	warnings lines

	mu    sync.Mutex
	heard []string
}

// lines are those of a log.
type lines struct {
	n    atomic.Int64
	mu   sync.Mutex
	said strings.Builder
}

func (l *lines) Write(b []byte) (int, error) {
	l.n.Add(1)
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.said.Write(b)
}

func (l *lines) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.said.String()
}

// inClientBubble runs a test in fake time with a server that looks at versions alone.
func inClientBubble(t *testing.T, test func(*watched), change ...func(*bootstrap.ManagementServer)) {
	tracedBubble(t, nil, test, change...)
}

// tracedBubble is inClientBubble with a trace.
func tracedBubble(t *testing.T, trace *client.Trace, test func(*watched), change ...func(*bootstrap.ManagementServer)) {
	synctest.Test(t, func(t *testing.T) {
		lis := handover.Memory()
		w := &watched{restRig: restRig{t: t, srv: testutil.StartRESTServer(t, testutil.RESTConfig{Listener: lis, ByVersion: true})}}
		dial := func(ctx context.Context, _, _ string) (net.Conn, error) { return lis.Dial(ctx) }
		server := polled("memory:1")
		for _, f := range change {
			f(&server)
		}
		c, err := client.New(client.Config{
			Bootstrap: &bootstrap.Config{Node: &corev3.Node{Id: "me"}, Servers: []bootstrap.ManagementServer{server}},
			Transport: transport.ByServer{REST: transport.NewREST(transport.RESTConfig{Dial: dial})},
			Trace:     trace,
			Logger:    slog.New(slog.NewTextHandler(&w.warnings, &slog.HandlerOptions{Level: slog.LevelWarn})),
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			c.Close()
			<-c.Done()
		})
		w.client = c
		test(w)
	})
}

func (w *watched) watch(name string) {
	w.t.Helper()
	if _, err := w.client.Watch(w.t.Context(), cds.Type, name, w.hear); err != nil {
		w.t.Fatal(err)
	}
}

func (w *watched) hear(ev client.Event[any]) {
	w.mu.Lock()
	defer w.mu.Unlock()
	line := ev.Kind.String() + " " + ev.Name
	if ev.Kind == client.EventUpdated {
		line += " " + ev.Version
	}
	if ev.Err != nil {
		line += " " + ev.Err.Error()
	}
	w.heard = append(w.heard, line)
}

// hears checks what was heard since it was asked last: each line has the parts of a text.
func (w *watched) hears(want ...string) {
	w.t.Helper()
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	got := w.heard
	w.heard = nil
	if len(got) != len(want) {
		w.t.Fatalf("heard (-want +got):\n%s", cmp.Diff(want, got))
	}
	for i, text := range want {
		for _, part := range strings.Split(text, " … ") {
			if !strings.Contains(got[i], part) {
				w.t.Errorf("heard %q, want %q", got[i], part)
			}
		}
	}
}

const listenerURL = "type.googleapis.com/envoy.config.listener.v3.Listener"

// A response of another type than the poll's is trouble as any failed poll is, told at once;
// one that says no type is the poll's.
// spec: REST-2 REST-3
func TestRESTForeignType(t *testing.T) {
	inClientBubble(t, func(w *watched) {
		w.srv.Answer(ofType(listenerURL))
		w.watch("a")
		first := w.poll("a @").At
		w.hears(`failed a … POST http://memory:1/v3/discovery:clusters … "` + listenerURL + `" to a poll for "` + clusterURL + `"`)
		if gap := w.poll("a @").At.Sub(first); gap < time.Minute || gap >= 2*time.Minute {
			t.Errorf("%v between two polls, want a minute and less than another", gap)
		}
		w.hears()
		w.srv.Answer(answerBody("application/json", `{"version_info":"1","resources":[{"@type":"`+clusterURL+`","name":"a"}]}`))
		w.poll("a @")
		w.hears("updated a 1")
	})
}

// A polled server is one to a client: watches hear of values, of refused ones, of trouble
// and of its end, and of what does not exist.
func TestRESTThroughClient(t *testing.T) {
	inClientBubble(t, func(w *watched) {
		w.set("1", "a", "b")
		w.watch("a")
		if p := w.poll("a @"); p.Request.GetNode().GetId() != "me" {
			t.Errorf("node %v", p.Request.GetNode())
		}
		w.hears("updated a 1")
		w.poll("a @1")
		w.hears()

		// A late watch is answered though the version is the same.
		w.watch("b")
		w.poll("a b @1")
		w.poll("a b @")
		w.hears("updated b 1")

		// One that nobody has does not exist when its time is over.
		w.watch("c")
		w.poll("a b c @1")
		w.poll("a b c @")
		time.Sleep(15 * time.Second)
		w.hears("does not exist c")
	})
}

const unreadable = `{"@type":"` + clusterURL + `","name":"b","transport_socket":{"typed_config":{"@type":"type.googleapis.com/no.such.Thing"}}}`

// A resource that cannot be read costs no other, and the server hears of it.
// spec: REST-4
func TestRESTRefusedResource(t *testing.T) {
	inClientBubble(t, func(w *watched) {
		w.set("1", "a", "b")
		w.watch("a")
		w.poll("a @")
		w.hears("updated a 1")
		w.watch("b")
		w.poll("a b @1")
		w.poll("a b @")
		w.hears("updated b 1")
		w.srv.Answer(answerBody("application/json", `{"version_info":"2","type_url":"`+clusterURL+`","resources":[
			{"@type":"`+clusterURL+`","name":"a","alt_stat_name":"new"},
			`+unreadable+`]}`))
		w.poll("a b @1")
		w.hears(`ambient error b … no.such.Thing`, "updated a 2")
		p, err := w.srv.Next(w.t.Context())
		if err != nil {
			w.t.Fatal(err)
		}
		detail := p.Request.GetErrorDetail()
		if p.Request.GetVersionInfo() != "1" || detail.GetCode() != 3 || !strings.Contains(detail.GetMessage(), "b: it cannot be read: ") {
			t.Errorf("the poll asks %v, want version 1 and an error for b", p.Request)
		}
		w.poll("a b @1")
		w.hears()
	})
}

// A server that goes back to the version that polls say, after one that was refused, says that nothing is new. So it is asked
// for everything: of the refused version a part is used.
// spec: REST-2 REST-4 ACK-7
func TestRESTBackFromRefused(t *testing.T) {
	inClientBubble(t, func(w *watched) {
		w.set("1", "a", "b")
		w.watch("b")
		w.poll("b @")
		w.hears("updated b 1")
		w.srv.Answer(answerBody("application/json", `{"version_info":"2","type_url":"`+clusterURL+`","resources":[
			`+unreadable+`]}`))
		w.poll("b @1")
		w.hears(`ambient error b … no.such.Thing`)
		w.srv.Answer(nil)
		if p, err := w.srv.Next(w.t.Context()); err != nil || p.Request.GetVersionInfo() != "1" || p.Request.GetErrorDetail() == nil {
			w.t.Fatalf("the poll is %v, %v, want version 1 and the error", p, err)
		}
		w.poll("b @")
		w.hears("recovered b")
		w.poll("b @1")
		w.poll("b @1") // and not twice for each 304
	})
}

// Trouble leaves what is held, and any good answer ends it, a 304 too.
// spec: REST-2
func TestRESTTroubleEndsWith304(t *testing.T) {
	inClientBubble(t, func(w *watched) {
		w.set("1", "a")
		w.watch("a")
		w.poll("a @")
		w.hears("updated a 1")
		w.srv.Answer(answerBody("text/html", "<html>"))
		w.poll("a @1")
		w.hears(`ambient error a … no DiscoveryResponse … "text/html", 6 bytes`)
		w.poll("a @")
		w.hears()
		w.srv.Answer(answerStatus(304))
		w.poll("a @")
		w.hears("recovered a")
		w.watch("a")
		w.hears("updated a 1")
	})
}

// A server that answers an error can be reached: its status is told, and of polls that fail no
// stream is said to stand and to end.
//
// spec: P-8
func TestRESTFailingPollsInTrace(t *testing.T) {
	var mu sync.Mutex
	var traced []string
	note := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		traced = append(traced, fmt.Sprintf(format, args...))
	}
	trace := &client.Trace{
		StreamUp:   func(client.StreamInfo) { note("up") },
		StreamDown: func(_ client.StreamInfo, err error) { note("down %v", err != nil) },
	}
	tracedBubble(t, trace, func(w *watched) {
		w.srv.Answer(answerStatus(500))
		w.watch("a")
		w.poll("a @")
		w.hears("failed a … a poll failed: … 500 Internal Server Error")
		if text := w.warnings.text(); !strings.Contains(text, "a poll of the server failed") || strings.Contains(text, "cannot be reached") {
			t.Errorf("the log says %q", text)
		}
		w.poll("a @")
		w.poll("a @")
		w.hears()
		w.set("1", "a")
		w.srv.Answer(nil)
		w.poll("a @")
		w.hears("updated a 1")
		w.poll("a @1")
		w.srv.Answer(answerStatus(500))
		w.poll("a @1")
		w.hears("ambient error a … a poll failed: … 500")
		w.poll("a @")
		synctest.Wait()
		if diff := cmp.Diff([]string{"up", "down true"}, traced); diff != "" {
			t.Errorf("traced (-want +got):\n%s", diff)
		}
	})
}

// A server without a snapshot answers 500, as go-control-plane's gateway does: there is no
// resource until it has one, and after that what is held stays.
// spec: S-26
func TestREST500(t *testing.T) {
	inClientBubble(t, func(w *watched) {
		w.watch("a")
		w.poll("a @")
		w.hears("failed a … 500 Internal Server Error")
		w.set("1", "a")
		w.poll("a @")
		w.hears("updated a 1")
		w.srv.Answer(answerStatus(500))
		w.poll("a @1")
		w.hears("ambient error a … 500")
	})
}

// What a wrapper says beside the value comes through JSON too, in the same bytes each time.
// spec: TYPE-5 WATCH-4
func TestRESTAttributes(t *testing.T) {
	inClientBubble(t, func(w *watched) {
		const wrapper = `{"@type":"type.googleapis.com/envoy.service.discovery.v3.Resource","aliases":["x"],` +
			`"cache_control":{"do_not_cache":true},"metadata":{"filter_metadata":{"k":{"v":"1"},"l":{"v":"1"}}},` +
			`"resource":{"@type":"` + clusterURL + `","name":"a"}}`
		say := func(version string) {
			w.srv.Answer(answerBody("application/json", `{"version_info":"`+version+`","type_url":"`+clusterURL+`","resources":[`+wrapper+`]}`))
		}
		var got []*client.Attributes
		say("1")
		if _, err := w.client.Watch(w.t.Context(), cds.Type, "a", func(ev client.Event[any]) { got = append(got, ev.Attributes) }); err != nil {
			w.t.Fatal(err)
		}
		w.poll("a @")
		synctest.Wait() // it is answered
		say("2")
		w.poll("a @1")
		w.poll("a @2")
		synctest.Wait()
		if len(got) != 1 || got[0] == nil {
			w.t.Fatalf("heard %v", got)
		}
		if a := got[0]; !a.DoNotCache || len(a.Aliases) != 1 || a.Metadata.GetFilterMetadata()["k"].GetFields()["v"].GetStringValue() != "1" {
			w.t.Errorf("attributes %+v", a)
		}
	})
}

// A poll that failed is told of each time, if one between was answered, and is followed by
// the next as any other is.
// spec: REST-2 REST-3
func TestRESTPollsFail(t *testing.T) {
	inClientBubble(t, func(w *watched) {
		w.set("1", "a")
		w.watch("a")
		last := w.poll("a @").At
		w.hears("updated a 1")
		next := func(want string) {
			t.Helper()
			at := w.poll(want).At
			if gap := at.Sub(last); gap < time.Minute || gap >= 2*time.Minute {
				t.Errorf("%v between two polls, want a minute and less than another", gap)
			}
			last = at
		}
		for range 3 {
			w.srv.Answer(answerStatus(503))
			next("a @1")
			w.hears("ambient error a … 503")
			next("a @")
			w.hears()
			w.srv.Answer(nil)
			next("a @")
			w.hears("recovered a")
		}
		if n := w.warnings.n.Load(); n != 3 {
			t.Errorf("%d warnings of 3 times of trouble", n)
		}
	})
}

// Polls that fail now and then wait no longer for it than the first that did: in between the
// server was well for longer than any wait.
// spec: REST-3 BACKOFF-2
func TestRESTFailuresApart(t *testing.T) {
	inClientBubble(t, func(w *watched) {
		w.set("1", "a")
		w.watch("a")
		for range 8 {
			w.srv.Answer(nil)
			time.Sleep(30 * time.Second)
			w.srv.Answer(answerBody("text/html", "<html>"))
			failed := w.srv.Polls()
			for w.srv.Polls() == failed {
				time.Sleep(time.Millisecond)
			}
			begin := time.Now()
			for w.srv.Polls() == failed+1 {
				time.Sleep(time.Millisecond)
			}
			if wait := time.Since(begin); wait > time.Second {
				t.Errorf("%v between a poll that failed and the next, want at most 750 ms and a delay", wait)
			}
		}
	}, func(s *bootstrap.ManagementServer) { s.REST().RefreshDelay = 100 * time.Millisecond })
}
