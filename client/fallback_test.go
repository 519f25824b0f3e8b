package client_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/testutil"
	"github.com/xdswatch/xdswatch/transport"
)

// pair is a rig with a second server, for when the first cannot be reached.
type pair struct {
	*rig
	second *rig // the same client, and the other server
}

// inPair runs a test with two servers inside a bubble.
func inPair(t *testing.T, test func(*testing.T, pair), change ...func(*client.Config)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		first, second := testutil.NewServer(testutil.Named("first")), testutil.NewServer(testutil.Named("second"))
		t.Cleanup(second.Close)
		both := func(c *client.Config) {
			c.Bootstrap.Servers = append(c.Bootstrap.Servers, bootstrap.ManagementServer{
				URI: second.Target(), ChannelCreds: bootstrap.Insecure(),
			})
			c.GRPC = transport.GRPCConfig{DialOptions: append(c.GRPC.DialOptions, testutil.InMemory(first, second))}
		}
		r := newRig(t, first, append(change, both)...)
		test(t, pair{r, &rig{t: t, srv: second, c: r.c, log: r.log}})
	})
}

// kill makes a server go and not come back.
func (r *rig) kill() {
	r.srv.SetRefuse(true)
	r.srv.DropConnections()
	time.Sleep(10 * time.Second) // for attempts to fail
	synctest.Wait()
}

// revive lets a server be reached, and waits until it is.
func (r *rig) revive() *testutil.Stream {
	r.t.Helper()
	r.srv.SetRefuse(false)
	return r.accept()
}

// Values move to the second server and back with real streams; traces and the gauge of A78
// name the server that they are of, and what is not used is closed.
//
// spec: FALLBACK-1 FALLBACK-3 FALLBACK-5 METRIC-1
func TestFallback(t *testing.T) {
	var traced, c counted
	trace := func(config *client.Config) {
		config.Trace = &client.Trace{
			StreamUp:   func(s client.StreamInfo) { traced.add("up %s", s.Server) },
			StreamDown: func(s client.StreamInfo, err error) { traced.add("down %s %v", s.Server, err != nil) },
			Response:   func(r client.ResponseInfo) { traced.add("response of %s", r.Stream.Server) },
		}
	}
	inPair(t, func(t *testing.T, p pair) {
		conns := client.CountConns(p.c)
		first, second := p.srv.Target(), p.second.srv.Target()
		_, a := p.watch("a")
		p.clusters(p.accept(), "1", "n1", "a")
		p.kill()
		a.heard(t, "updated a 1", "ambient error a connection")
		p.connected("when the first is gone", false)
		if n := len(p.second.srv.Streams()); n != 0 {
			t.Fatalf("%d streams to the second server, though nothing is lacking", n)
		}

		_, b := p.watch("b")
		st2 := p.second.accept()
		p.second.request(st2, "cds [a b]")
		p.second.clusters(st2, "7", "m1", "a", "b")
		a.heard(t, "updated a 1", "ambient error a connection", "updated a 7")
		b.heard(t, "updated b 7")
		p.connected("while the second serves", false, true)

		st := p.revive()
		p.request(st, "cds [a b]")
		p.clusters(st, "2", "n2", "a", "b")
		a.heard(t, "updated a 1", "ambient error a connection", "updated a 7", "updated a 2")
		b.heard(t, "updated b 7", "updated b 2")
		time.Sleep(time.Second)
		synctest.Wait()
		if st2.Err() == nil {
			t.Error("the stream to the second server still stands")
		}
		p.connected("when the first serves again", true)
		if n := conns.Open.Load(); n != 1 {
			t.Errorf("%d connections are kept, want 1", n)
		}
		traced.told(t, "the story", "up "+first, "response of "+first, "down "+first+" true",
			"up "+second, "response of "+second, "up "+first, "response of "+first, "down "+second+" false")
		c.told(t, "counted", "connected true", "cds valid 1", "connected false", "failure of "+first,
			"connected true", "cds valid 2", "connected true", "cds valid 2")
	}, trace, c.metered)
}

// A dump has each name once, of the server that is used: not what is taken back at another.
//
// spec: FALLBACK-5
func TestFallbackDump(t *testing.T) {
	inPair(t, func(t *testing.T, p pair) {
		p.srv.SetRefuse(true)
		_, a := p.watch("a")
		p.second.clusters(p.second.accept(), "7", "m1", "a")
		p.clusters(p.revive(), "2", "n2", "a")
		a.heard(t, "updated a 7", "updated a 2")
		for range 2 { // the stream to the second lingers, and is gone
			d := p.c.Dump()
			if len(d) != 1 || d[0].Server != p.srv.Target() || d[0].Version != "2" {
				t.Errorf("the dump is %+v", d)
			}
			time.Sleep(10 * time.Second)
		}
	})
}

// Gauges are of what is used: a refusal by the first server is over with the value of the second, each resource is
// counted once, and a server's responses have an age while something is wanted of it.
//
// spec: METRIC-1 METRIC-2
func TestFallbackGauges(t *testing.T) {
	inPair(t, func(t *testing.T, p pair) {
		gauges := func(when string, want ...string) {
			t.Helper()
			synctest.Wait()
			g := p.c.Gauges()
			got := counts(g)
			for _, a := range g.Accepted {
				got = append(got, fmt.Sprintf("%s accepted %v ago", a.Server, time.Since(a.At).Truncate(time.Minute)))
			}
			same(t, when, got, want)
		}
		first, second := p.srv.Target(), p.second.srv.Target()
		p.watch("a")
		st := p.accept()
		p.clusters(st, "1", "n1", "a")
		time.Sleep(time.Minute)
		p.send(st, testutil.SotW(cds.Type.TypeURL(), "2", "n2", invalid("a")))
		gauges("refused", `"#old" cds nacked_but_cached 1`, first+" accepted 1m0s ago")
		p.kill()
		gauges("lost", `"#old" cds nacked_but_cached 1`, first+" accepted 1m0s ago")
		p.watch("b")
		p.second.clusters(p.second.accept(), "7", "m1", "a", "b")
		gauges("fallen back", `"#old" cds acked 2`, first+" accepted 1m0s ago", second+" accepted 0s ago")
		st = p.revive()
		p.send(st, testutil.SotW(cds.Type.TypeURL(), "3", "n1", cluster("a", "3"), invalid("b")))
		time.Sleep(time.Minute)
		gauges("back", `"#old" cds acked 1`, `"#old" cds nacked_but_cached 1`, first+" accepted 2m0s ago")
	})
}

// What is absent at two servers is so on the word of the one that is used.
//
// spec: FALLBACK-5 SOTW-7
func TestFallbackAbsence(t *testing.T) {
	inPair(t, func(t *testing.T, p pair) {
		p.watch("a")
		_, b := p.watch("b")
		st := p.accept()
		p.clusters(st, "1", "n1", "a", "b")
		p.clusters(st, "2", "n2", "a")
		b.heard(t, "updated b 1", "does not exist b absent")
		p.kill()
		p.watch("c")
		p.second.clusters(p.second.accept(), "7", "m1", "a", "c")
		synctest.Wait()
		_, late := p.watch("b")
		synctest.Wait()
		late.heard(t, "does not exist b absent")
		if got := late.last().Server; got != p.second.srv.Target() {
			t.Errorf("%s is said to lack it, want %s", got, p.second.srv.Target())
		}
	})
}

// Where no server can be reached, the error is of the last one, with what is wrong with each.
//
// spec: FALLBACK-4 U-7
func TestFallbackErrorNamesLast(t *testing.T) {
	inPair(t, func(t *testing.T, p pair) {
		p.srv.SetRefuse(true)
		p.second.srv.SetRefuse(true)
		_, a := p.watch("a")
		synctest.Wait()
		var re *client.ResourceError
		if err := a.last().Err; !errors.As(err, &re) || re.Server != p.second.srv.Target() || re.Kind != client.ErrorConnection {
			t.Errorf("error %v, want one of the connection to %s", err, p.second.srv.Target())
		}
		p.joined(a.last().Err)
		p.joined(p.c.Dump()[0].Err)
		p.second.clusters(p.second.revive(), "1", "m1", "a")
		p.kill()
		p.second.kill()
		_, b := p.watch("b")
		synctest.Wait()
		for what, rec := range map[string]*record{"held": a, "new": b} {
			if err := rec.last().Err; !errors.As(err, &re) || re.Server != p.second.srv.Target() {
				t.Errorf("%s: error %v, want one of %s", what, err, p.second.srv.Target())
			}
			p.joined(rec.last().Err)
		}
	})
}

// joined checks that an error tells of both servers.
func (p pair) joined(err error) {
	p.t.Helper()
	var se *client.ServerError
	if !errors.As(err, &se) || se.Server != p.srv.Target() || se.Kind != client.ErrorConnection {
		p.t.Errorf("error %v has no trouble of %s first", err, p.srv.Target())
		return
	}
	if !errors.Is(err, se.Err) || status.Code(se.Err) != codes.Unavailable {
		p.t.Errorf("error %v is not of the cause %v", err, se.Err)
	}
	for _, part := range []string{"no server can be reached", p.srv.Target(), p.second.srv.Target(), `node "node-1"`} {
		if strings.Count(err.Error(), part) == 0 {
			p.t.Errorf("%q is not in %q", part, err)
		}
	}
}

// A client that is closed while it stands between two servers leaves nothing behind, which
// the bubble checks.
func TestFallbackClose(t *testing.T) {
	for _, when := range []string{"the second dials", "the second serves", "the first is back"} {
		t.Run(when, func(t *testing.T) {
			inPair(t, func(t *testing.T, p pair) {
				p.srv.SetRefuse(true)
				p.second.srv.SetHoldDial(when == "the second dials")
				_, all := p.watchEverything() // first, since a wildcard that begins after names begins a new stream
				_, a := p.watch("a")
				synctest.Wait()
				if when == "the second dials" {
					must(t, p.c.Close())
					return
				}
				st := p.second.accept()
				p.second.latest(st, "cds []")
				p.second.clusters(st, "1", "m1", "a")
				if when == "the first is back" {
					p.revive()
				}
				must(t, p.c.Close())
				a.heard(t, "updated a 1")
				all.heard(t, "updated a 1", "synced *")
			})
		})
	}
}

// watchEverything records what a watch of all clusters hears.
func (r *rig) watchEverything() (*client.Watch, *record) {
	r.t.Helper()
	rec := &record{}
	w, err := r.c.WatchAll(context.Background(), cds.Type, "*", func(b client.Batch[any]) {
		for _, ev := range b.Events {
			rec.hear(ev)
		}
	})
	must(r.t, err)
	return w, rec
}

// Servers that come and go in turns leave every value current and every stream accounted
// for.
//
// spec: FALLBACK-5
func TestFallbackTurns(t *testing.T) {
	inPair(t, func(t *testing.T, p pair) {
		_, a := p.watch("a")
		st := p.accept()
		for turn := range 5 {
			p.clusters(st, fmt.Sprint("p", turn), "n", "a")
			p.kill()
			w, b := p.watch("b")
			p.second.clusters(p.second.accept(), fmt.Sprint("f", turn), "m", "a", "b")
			b.heard(t, fmt.Sprint("updated b f", turn))
			if got := a.last().Version; got != fmt.Sprint("f", turn) {
				t.Fatalf("turn %d: a has version %q of the second server", turn, got)
			}
			w.Stop()
			st = p.revive()
		}
		p.clusters(st, "last", "n", "a")
		if got := a.last(); got.Version != "last" || got.Server != p.srv.Target() {
			t.Errorf("in the end a has version %q of %s", got.Version, got.Server)
		}
	})
}
