package main

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/cmd/xdsctl/internal/report"
	"github.com/xdswatch/xdswatch/cmd/xdsctl/internal/subscription"
	"github.com/xdswatch/xdswatch/testutil"
	"github.com/xdswatch/xdswatch/transport"
)

func TestOnce(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		args   []string
		answer func(*testing.T, *testutil.Stream)
		last   string
		status int
	}{
		{"a value", []string{"cds:a"}, func(t *testing.T, st *testutil.Stream) {
			send(t, st, testutil.SotW(clusters, "1", "n1", cluster("a")))
		}, update("a", "1", `{"name":"a"}`), 0},
		{"a collection", []string{"cds"}, func(t *testing.T, st *testutil.Stream) {
			send(t, st, testutil.SotW(clusters, "1", "n1", cluster("a")))
		}, synced(), 0},
		{"an empty collection", []string{"cds:*"}, func(t *testing.T, st *testutil.Stream) {
			send(t, st, testutil.SotW(clusters, "1", "n1"))
		}, synced(), 0},
		{"no collection", []string{"--resource-timeout", "50ms", "cds"}, func(*testing.T, *testutil.Stream) {}, absent("*", "timeout"), 3},
		{"one of two is missing", []string{"--resource-timeout", silence, "cds:a", "cds:b"}, func(t *testing.T, st *testutil.Stream) {
			send(t, st, testutil.SotW(clusters, "1", "n1", cluster("a")))
		}, absentInstead("b", 1, "a"), 3},
		{"the stream ends", []string{"cds:a"}, func(t *testing.T, st *testutil.Stream) {
			st.End(status.Error(codes.Internal, "no"))
		}, failed("error", "a", "stream", prefix("a", "xdsctl")+"the stream ended before a response: rpc error: code = Internal desc = no"), 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			srv := server(t)
			p := watchServer(t, srv.Target(), append([]string{"--once"}, tt.args...)...)
			st := accept(t, srv)
			tt.answer(t, st)
			p.ends(tt.status)
			var last string
			for line := range p.lines {
				if strings.Contains(line, `"event":"ack"`) {
					continue
				}
				line = insteadField.ReplaceAllString(line, `"instead":{`)
				last = plain(p.hide.Replace("{" + timeField.ReplaceAllString(line, "")))
			}
			if last != tt.last {
				t.Errorf("last  %s\nwant %s", last, tt.last)
			}
		})
	}
}

// With commands, --once ends with the first answer to what was asked for.
func TestOnceWithCommands(t *testing.T) {
	t.Parallel()
	srv := server(t)
	p := watchServer(t, srv.Target(), "--once", "--stdin")
	p.enter("dump")
	p.expect(`{"event":"dump","subscriptions":[]}`)
	p.enter("watch cds:a")
	send(t, accept(t, srv), testutil.SotW(clusters, "1", "n1", cluster("a")))
	p.expect(streamUp, update("a", "1", `{"name":"a"}`))
	p.ends(0)

	p = watchServer(t, srv.Target(), "--once", "--stdin", "cds:a", "cds:b")
	send(t, accept(t, srv), testutil.SotW(clusters, "1", "n1", cluster("a")))
	p.expect(streamUp, update("a", "1", `{"name":"a"}`), ack("1", "n1"))
	p.enter("unwatch cds:b")
	p.ends(0)

	// No subscription is left, and none can come.
	p = watchServer(t, srv.Target(), "--once", "--stdin", "cds:a")
	p.enter("unwatch cds:a")
	p.stdin.Close()
	p.ends(0)
}

// answeredSession is a session with --once, in fake time, that a scripted server has answered.
func answeredSession(t *testing.T, p report.Printer) (*session, *testutil.Stream) {
	srv := testutil.StartServer(t)
	to := targetOf(t, "127.0.0.1:1")
	to.boot = srv.Bootstrap()
	to.wrap = func(transport.Builder) transport.Builder {
		return transport.NewGRPC(transport.GRPCConfig{DialOptions: srv.DialOptions()})
	}
	s, err := newSession(to, p, true)
	if err != nil {
		t.Fatal(err)
	}
	s.begin([]subscription.Given{{Subscription: subscription.Subscription{TypeURL: clusters, Name: "a"}, Text: "cds:a"}})
	st := accept(t, srv)
	send(t, st, testutil.SotW(clusters, "1", "n1", cluster("a")))
	return s, st
}

// The server gets the ACK that it is owed before the end.
func TestOnceAcknowledges(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, st := answeredSession(t, silent{})
		defer s.close()
		<-s.output.done
		if r := st.Requests(); len(r) != 2 || r[1].Nonce() != "n1" || r[1].ErrorDetail() != nil {
			t.Errorf("the server got %d requests, want what was asked, and its ACK", len(r))
		}
	})
}

// stuck is a printer whose reader stops before the first answer.
type stuck struct{ until chan struct{} }

func (p stuck) Print(r report.Record) error {
	if _, is := r.(report.Answer); is {
		<-p.until
	}
	return nil
}

// A reader of the output that stops holds up the end for some time, and not for ever.
func TestOnceEndsThoughStuck(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := stuck{make(chan struct{})}
		s, _ := answeredSession(t, p)
		defer s.close()
		defer close(p.until)
		begin := time.Now()
		<-s.output.done
		if took := time.Since(begin); took > mostCourtesy+time.Second {
			t.Errorf("the end came after %v", took)
		}
	})
}

// The end waits for the ACK of what was answered last, and not for those of later responses.
func TestOnceWaitsForACK(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sub := &subscribed{}
		s := &session{once: true, output: newOutput(nil), inHand: map[uint64]bool{}, subs: map[subscription.Subscription]*subscribed{
			{TypeURL: clusters, Name: "a"}: sub,
		}}
		s.received(1)
		s.received(2)
		s.mu.Lock()
		sub.note(client.EventUpdated)
		s.finishIfAnswered()
		s.mu.Unlock()
		s.handled(2)
		time.Sleep(10 * courtesy)
		if s.output.ended() {
			t.Error("ends before a response was answered")
		}
		s.handled(1)
		for answered := time.Now(); !s.output.ended(); s.handled(1) {
			if time.Since(answered) > courtesy {
				t.Fatal("later responses keep it from its end")
			}
			time.Sleep(courtesy / 4)
			s.received(1)
		}
	})
}

// The end waits neither for a response that nobody asked for, which is not answered, nor for one whose stream has ended.
func TestOnceWaitsForNoACK(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		trace func(*client.Trace)
	}{
		{"ignored", func(tr *client.Trace) {
			tr.Response(client.ResponseInfo{Stream: client.StreamInfo{ID: 1}, Ignored: true})
		}},
		{"stream ended", func(tr *client.Trace) {
			tr.Response(client.ResponseInfo{Stream: client.StreamInfo{ID: 1}})
			tr.StreamDown(client.StreamInfo{ID: 1}, nil)
		}},
	} {
		synctest.Test(t, func(t *testing.T) {
			sub := &subscribed{}
			s := &session{once: true, output: newOutput(silent{}), inHand: map[uint64]bool{}, subs: map[subscription.Subscription]*subscribed{
				{TypeURL: clusters, Name: "a"}: sub,
			}}
			tt.trace(s.trace())
			s.mu.Lock()
			sub.note(client.EventUpdated)
			s.finishIfAnswered()
			s.mu.Unlock()
			time.Sleep(courtesy)
			synctest.Wait()
			if !s.output.ended() {
				t.Errorf("%s: does not end after the time of courtesy", tt.name)
			}
			time.Sleep(mostCourtesy)
		})
	}
}

// A command that comes while the server gets its last ACK brings one more answer to wait for.
func TestOnceWithLateCommand(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &session{once: true, output: newOutput(nil), subs: map[subscription.Subscription]*subscribed{}}
		named := func(name string) *subscribed {
			sub := &subscribed{}
			s.subs[subscription.Subscription{TypeURL: clusters, Name: name}] = sub
			return sub
		}
		answer := func(sub *subscribed) {
			s.mu.Lock()
			defer s.mu.Unlock()
			sub.note(client.EventUpdated)
			s.finishIfAnswered()
		}
		answer(named("a"))
		time.Sleep(courtesy / 2)
		s.mu.Lock()
		late := named("b")
		s.mu.Unlock()
		time.Sleep(courtesy)
		if s.output.ended() {
			t.Error("ends without an answer for the late one")
		}
		answer(late)
		time.Sleep(courtesy / 2)
		s.mu.Lock()
		later := named("d")
		s.mu.Unlock()
		answer(later)
		answered := time.Now()
		if <-s.output.done; time.Since(answered) != courtesy {
			t.Errorf("stays for %v after the last first answer", time.Since(answered))
		}
		if err := s.result(); err != nil {
			t.Error(err)
		}
		if s.watch(subscription.Given{Text: "cds:c"}); len(s.subs) != 3 {
			t.Errorf("%d subscriptions, want none that begins after the end", len(s.subs))
		}
	})
}

// The newest answer counts: what is missing at first may come while others are waited for.
func TestOnceRecovers(t *testing.T) {
	t.Parallel()
	srv := server(t)
	p := watchServer(t, srv.Target(), "--once", "cds:a", "eds:x")
	st := accept(t, srv)
	p.expect(streamUp)
	send(t, st, testutil.SotW(clusters, "1", "n1", cluster("a")))
	p.expect(update("a", "1", `{"name":"a"}`), ack("1", "n1"))
	send(t, st, testutil.SotW(clusters, "2", "n2"))
	p.expect(absent("a", "absent"), ack("2", "n2"))
	send(t, st, testutil.SotW(clusters, "3", "n3", cluster("a")))
	p.expect(update("a", "3", `{"name":"a"}`), ack("3", "n3"))
	ask(t, st, "x")
	send(t, st, testutil.SotW(endpoints, "1", "n1", &endpointv3.ClusterLoadAssignment{ClusterName: "x"}))
	p.ends(0)
}

// Who had no answer in time is no better than who was told that there is nothing.
//
// spec: P-13
func TestForWithoutAnswer(t *testing.T) {
	t.Parallel()
	srv := server(t)
	p := watchServer(t, srv.Target(), "--once", "--for", "100ms", "cds:a", "cds:b")
	p.ends(3)
	p.complains("the time is up and 2 of the subscriptions had no answer")
}
