package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/xdswatch/xdswatch/testutil"
)

// Each event about a resource has the text of the subscription that it answers, and the name
// that was asked for where it is spelled otherwise.
//
// spec: P-13
func TestSubscriptionOfEvents(t *testing.T) {
	t.Parallel()
	srv := server(t)
	thing := "xdstp://good.example/envoy.config.cluster.v3.Cluster/a"
	p := start(t, srv.Target(), "--bootstrap", grpcBootstrap(t, srv.Target(), ""), "--output", "json", "--stdin",
		clusters+":b", thing+"?z=1&y=2", "cds:xdstp://bad.example/envoy.config.cluster.v3.Cluster/x")
	st := accept(t, srv)
	for len(st.Requests()[len(st.Requests())-1].Names()) < 2 {
		request(t, st)
	}
	send(t, st, testutil.SotW(clusters, "1", "n1", cluster("b"), cluster(thing+"?y=2&z=1")))
	send(t, st, testutil.SotW(clusters, "2", "n2"))
	p.enter("watch eds:never")
	want := map[string][2]string{ // by event and name
		"update b":                     {clusters + ":b"},
		"update " + thing + "?y=2&z=1": {thing + "?z=1&y=2", thing + "?z=1&y=2"},
		"does-not-exist b":             {clusters + ":b"},
		"error xdstp://bad.example/envoy.config.cluster.v3.Cluster/x": {"cds:xdstp://bad.example/envoy.config.cluster.v3.Cluster/x"},
	}
	for len(want) > 0 {
		var ev struct{ Event, Name, Subscription, Asked string }
		line := p.line()
		if err := json.Unmarshal([]byte(line), &ev); err != nil {
			t.Fatal(err)
		}
		key := ev.Event + " " + ev.Name
		if w, ok := want[key]; ok && w != [2]string{ev.Subscription, ev.Asked} {
			t.Errorf("%s, want subscription and asked %q", line, w)
		}
		if ev.Name == "" && strings.Contains(line, `"subscription"`) {
			t.Errorf("%s is about no resource", line)
		}
		delete(want, key)
	}
}

// Members of a collection have its text, and were not asked for by a name; so has what belongs
// to the whole.
//
// spec: P-13
func TestSubscriptionOfMembers(t *testing.T) {
	t.Parallel()
	srv := server(t)
	p := watchServer(t, srv.Target(), "cds")
	send(t, accept(t, srv), testutil.SotW(clusters, "1", "n1", cluster("a")))
	for _, event := range []string{"update", "synced"} {
		line := p.line()
		for !strings.Contains(line, `"event":"`+event) {
			line = p.line()
		}
		if !strings.Contains(line, `"subscription":"cds"`) || strings.Contains(line, `"asked"`) {
			t.Errorf("%s, want the subscription cds and nothing asked", line)
		}
	}
}

// What an Envoy bootstrap asks for by itself is watched beside the commands of standard input,
// and what is left out since others are given is told.
//
// spec: P-7
func TestStartup(t *testing.T) {
	t.Parallel()
	s := polled(t)
	boot := envoyBootstrap(t, s.Addr(), "dynamic_resources:"+pollCDS)
	p := start(t, s.Addr(), "--bootstrap", boot, "--output", "json", "--stdin")
	line := p.line()
	for !strings.Contains(line, `"event":"synced"`) {
		line = p.line()
	}
	if !strings.Contains(line, clusters) || !strings.Contains(line, `"subscription":"cds"`) {
		t.Errorf("%s is not the wildcard of the bootstrap", line)
	}
	p.enter("quit")
	p.ends(0)

	p = start(t, s.Addr(), "--bootstrap", boot, "--output", "json", "--once", "cds:a")
	p.complains(boot + " also asks for cds, which is not watched since other subscriptions are given")
	p.ends(0)
	p = start(t, s.Addr(), "--bootstrap", boot, "--output", "json", "--once", "cds")
	p.ends(0)
	if log := p.stderr.String(); log != "" {
		t.Errorf("standard error:\n%s", log)
	}
}

// A server that answers only who asks for all that it has is silent about a name: a hint says
// so, once for each type, and not of a server that says what it has.
//
// spec: P-13 S-9
func TestHint(t *testing.T) {
	t.Parallel()
	m := testutil.StartManagementServer(t, testutil.ManagementConfig{ADS: true})
	if err := m.Set("1", cluster("a"), cluster("b")); err != nil {
		t.Fatal(err)
	}
	p := start(t, m.Addr(), "--server", m.Addr(), "--output", "json", "--once", "--resource-timeout", silence, "cds:a", "cds:nosuch")
	q := start(t, m.Addr(), "--server", m.Addr(), "--output", "json", "--once", "--resource-timeout", silence, "--variant", "delta", "cds:a", "cds:nosuch")
	p.ends(3)
	if log := p.stderr.String(); strings.Count(log, "xdsctl: hint: ") != 1 || !strings.Contains(log, "try cds without a name") {
		t.Errorf("standard error:\n%s", log)
	}
	q.ends(3)
	if log := q.stderr.String(); strings.Contains(log, "hint") {
		t.Errorf("standard error:\n%s", log)
	}
}

// The flags of pings reach the connections.
//
// spec: P-13
func TestKeepaliveFlags(t *testing.T) {
	t.Parallel()
	for args, want := range map[string][2]time.Duration{
		"":                                       {5 * time.Minute, 20 * time.Second},
		"--keepalive-timeout 3s":                 {5 * time.Minute, 3 * time.Second},
		"--keepalive 0":                          {-1, 20 * time.Second},
		"--keepalive 10s --keepalive-timeout 1s": {10 * time.Second, time.Second},
	} {
		var f watchFlags
		cmd := newWatch()
		cmd.ResetFlags()
		f.register(cmd.Flags())
		if err := cmd.ParseFlags(strings.Fields(args)); err != nil {
			t.Fatal(err)
		}
		c := f.config(nil, nil, nil).GRPC
		if got := [2]time.Duration{c.KeepaliveTime, c.KeepaliveTimeout}; got != want {
			t.Errorf("%q: %v, want %v", args, got, want)
		}
	}
}

// What a terminal obeys, and what turns the direction of text, does not go out raw in JSON.
//
// spec: H-12
func TestHarmlessJSON(t *testing.T) {
	t.Parallel()
	srv := server(t)
	odd := "a\u009b31m\u202e\u007f\U000e0001b"
	p := watchServer(t, srv.Target(), "cds")
	send(t, accept(t, srv), testutil.SotW(clusters, "1", "n1", cluster(odd)))
	line := p.line()
	for !strings.Contains(line, `"event":"update"`) {
		line = p.line()
	}
	if bytes.ContainsAny([]byte(line), "\u009b\u202e\u007f\U000e0001") {
		t.Errorf("%q is printed", line)
	}
	var ev struct{ Name string }
	if err := json.Unmarshal([]byte(line), &ev); err != nil || ev.Name != odd {
		t.Errorf("name %q, want %q, %v", ev.Name, odd, err)
	}
}
