package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/xdswatch/xdswatch/testutil"
)

// world is two management servers, EAST and WEST, in a bootstrap of four authorities: east
// and west have one of them each, "" has the top-level server, which is EAST, and both has
// WEST to fall back to.
type world struct {
	t          *testing.T
	east, west *testutil.CollectionServer
	hide       *strings.Replacer
	bootstrap  string
}

func newWorld(t *testing.T, features string) *world {
	t.Helper()
	w := &world{
		t:    t,
		east: testutil.StartCollectionServer(t),
		west: testutil.StartCollectionServer(t),
	}
	w.hide = strings.NewReplacer(w.east.Addr(), "EAST", w.west.Addr(), "WEST")
	server := func(s *testutil.CollectionServer) string {
		return fmt.Sprintf(`{"server_uri": %q, "channel_creds": [{"type": "insecure"}], "server_features": [%s]}`, s.Addr(), features)
	}
	w.bootstrap = file(t, "grpc.json", fmt.Sprintf(`{
		"xds_servers": [%[1]s], "node": {"id": "me"},
		"authorities": {
			"": {}, "east": {}, "west": {"xds_servers": [%[2]s]}, "both": {"xds_servers": [%[1]s, %[2]s]}
		}
	}`, server(w.east), server(w.west)))
	return w
}

// delta is the server feature that selects the variant.
const delta = `"xdswatch.delta"`

func (w *world) start(args ...string) *program {
	w.t.Helper()
	return startHiding(w.t, w.hide, append([]string{"--bootstrap", w.bootstrap, "--output", "json"}, args...)...)
}

// at is the name of a cluster.
func at(authority, id string) string {
	return "xdstp://" + authority + "/envoy.config.cluster.v3.Cluster/" + id
}

func (w *world) set(s *testutil.CollectionServer, name, version string, change ...func(*discoveryv3.Resource)) {
	w.t.Helper()
	c := cluster(name)
	c.AltStatName = version
	r := testutil.Wrapped(name, version, c)
	for _, f := range change {
		f(r)
	}
	if err := s.Set(r); err != nil {
		w.t.Fatal(err)
	}
}

// settle waits until a server has told all, and was answered.
func (w *world) settle(s *testutil.CollectionServer, asked ...string) {
	w.t.Helper()
	ctx := patient(w.t)
	err := s.Await(ctx, func(testutil.Counters) bool {
		subscribed := s.Subscribed(clusters)
		return !slices.ContainsFunc(asked, func(name string) bool { return !slices.Contains(subscribed, name) })
	})
	if err == nil {
		err = s.Settle(ctx)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// forget waits until a server is not asked for a name any more.
func (w *world) forget(s *testutil.CollectionServer, name string) {
	w.t.Helper()
	gone := func(testutil.Counters) bool { return !slices.Contains(s.Subscribed(clusters), name) }
	if err := s.Await(patient(w.t), gone); err != nil {
		w.t.Fatal(err)
	}
}

// about begins the lines of structured names.
func about(event, name string) string {
	authority := strings.Split(name, "/")[2]
	return fmt.Sprintf(`{"event":%q,"type":%q,"name":%q,"authority":%q`, event, clusters, name, authority)
}

func (w *world) updated(name, version, server string) string {
	return about("update", name) + fmt.Sprintf(`,"version":%q,"resource":{"name":%q,"altStatName":%q},"server":%q}`, version, name, version, server)
}

func up(server string) string { return strings.Replace(streamUp, "SERVER", server, 1) }

// acked is the ACK of a delta response.
func acked(nonce, server string) string {
	return strings.Replace(ack("", nonce), "SERVER", server, 1)
}

func gone(name, reason string) string {
	return about("does-not-exist", name) + fmt.Sprintf(`,"reason":%q}`, reason)
}

func complete(name string) string { return about("synced", name) + "}" }

// The life of a glob: members under their own names, the glob under its own.
func TestGlob(t *testing.T) {
	t.Parallel()
	w := newWorld(t, delta)
	all, x, y := at("east", "p/*"), at("east", "p/x"), at("east", "p/y")
	w.set(w.east, x, "1")
	p := w.start("--stdin", all)
	p.expect(up("EAST"), w.updated(x, "1", "EAST"), complete(all), acked("1", "EAST"))
	w.set(w.east, y, "1")
	p.expect(w.updated(y, "1", "EAST"), acked("2", "EAST"))
	w.east.Remove(clusters, x)
	p.expect(gone(x, "removed"), acked("3", "EAST"))

	// A member that is asked for by name too is told twice. What is held is told when it is
	// decoded, which may be after the server's answer.
	p.enter("watch " + y)
	p.told(w.updated(y, "1", "EAST"))
	w.settle(w.east, y)
	w.set(w.east, y, "2")
	p.told(w.updated(y, "2", "EAST"), w.updated(y, "2", "EAST"))

	p.enter("unwatch " + all)
	w.forget(w.east, all)
	w.set(w.east, x, "2")
	w.set(w.east, y, "3")
	p.told(w.updated(y, "3", "EAST"))
	p.enter("quit")
	p.ends(0)
}

func TestEmptyGlob(t *testing.T) {
	t.Parallel()
	w := newWorld(t, delta)
	none := at("east", "none/*")
	p := w.start("--once", none)
	p.expect(up("EAST"), complete(none), acked("1", "EAST"))
	p.ends(0)
}

// A glob of which nothing is heard does not exist.
func TestGlobTimeout(t *testing.T) {
	t.Parallel()
	srv := server(t)
	name := at("good.example", "p/*")
	p := start(t, srv.Target(), "--bootstrap", grpcBootstrap(t, srv.Target(), delta), "--output", "json",
		"--once", "--resource-timeout", "50ms", name)
	p.expect(streamUp, gone(name, "timeout"))
	p.ends(3)
}

// In state of the world globs work with types whose responses hold everything.
func TestGlobSotW(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	all, x := at("west", "p/*"), at("west", "p/x")
	w.set(w.west, x, "1")
	p := w.start(all)
	p.expect(up("WEST"))
	version := w.updated(x, "1", "WEST") // of the response, here
	p.expect(version, complete(all))
	w.west.Remove(clusters, x)
	p.skipTo(gone(x, "absent"))
}

// Each authority has servers of its own, and what is not in the bootstrap is an error of
// one subscription.
func TestAuthorities(t *testing.T) {
	t.Parallel()
	w := newWorld(t, delta)
	names := map[string]string{at("east", "a"): "EAST", at("west", "a"): "WEST", at("", "a"): "EAST", "a": "EAST"}
	for name, server := range names {
		s := w.east
		if server == "WEST" {
			s = w.west
		}
		w.set(s, name, "1")
	}
	p := w.start("--stdin")
	p.enter("watch " + at("north", "p/*"))
	if got, want := p.next(), about("error", at("north", "p/*"))+`,"error":{"kind":"config","message":"`; !strings.HasPrefix(got, want) ||
		!strings.Contains(got, `authority \"north\" is not in the bootstrap`) {
		t.Errorf("got  %s\nwant %s…", got, want)
	}
	for name, server := range names {
		sub := name
		if name == "a" {
			sub = "cds:a"
		}
		p.enter("watch " + sub)
		line := p.skipTo(`"event":"update"`)
		if !strings.Contains(line, fmt.Sprintf(`"name":%q`, name)) || !strings.HasSuffix(line, fmt.Sprintf(`"server":%q}`, server)) {
			t.Errorf("%s: %s", name, line)
		}
		if _, authority, ok := strings.Cut(line, `"authority":`); ok != strings.HasPrefix(name, "xdstp:") {
			t.Errorf("%s has authority %s", name, authority)
		}
	}
}

// The server of a dump and of what changes is the one that answers: a lower one while a
// higher one is away.
func TestFallback(t *testing.T) {
	t.Parallel()
	w := newWorld(t, delta)
	a, b := at("both", "a"), at("both", "b")
	for _, s := range []*testutil.CollectionServer{w.east, w.west} {
		w.set(s, a, "1")
		w.set(s, b, "1")
	}
	p := w.start("--stdin", a)
	p.expect(up("EAST"), w.updated(a, "1", "EAST"), acked("1", "EAST"))
	w.east.Stop()
	p.skipTo(`"event":"ambient-error"`)
	p.enter("watch " + b) // which nobody has: now the other one is asked
	p.skipTo(w.updated(b, "1", "WEST"))
	w.settle(w.west, a, b)
	w.set(w.west, a, "2")
	p.skipTo(w.updated(a, "2", "WEST"))
	w.set(w.east, a, "3")
	if err := w.east.Restart(); err != nil {
		t.Fatal(err)
	}
	p.skipTo(w.updated(a, "3", "EAST"))
	p.skipTo(`{"event":"stream-down","server":"WEST","error":null}`)
	p.enter("dump")
	dump := p.skipTo(`"event":"dump"`)
	if n := strings.Count(dump, `"server":"EAST"`); n != 2 || strings.Contains(dump, "WEST") {
		t.Errorf("dump %s", dump)
	}
}

// A time to live ends without the server.
func TestTTL(t *testing.T) {
	t.Parallel()
	w := newWorld(t, delta)
	a := at("east", "a")
	p := w.start(a)
	p.expect(up("EAST"))
	w.settle(w.east, a)
	p.expect(gone(a, "removed"), acked("1", "EAST"))
	w.set(w.east, a, "1", func(r *discoveryv3.Resource) { r.Ttl = durationpb.New(50 * time.Millisecond) })
	p.expect(w.updated(a, "1", "EAST"), acked("2", "EAST"), gone(a, "ttl"))
}

// A resource that is asked for by an alias has the alias as its name.
func TestAlias(t *testing.T) {
	t.Parallel()
	w := newWorld(t, delta)
	a, b := at("east", "a"), at("east", "b")
	w.set(w.east, a, "1", func(r *discoveryv3.Resource) { r.Aliases = []string{b} })
	p := w.start(b)
	p.expect(up("EAST"), strings.Replace(w.updated(a, "1", "EAST"), fmt.Sprintf(`"name":%q`, a), fmt.Sprintf(`"name":%q`, b), 1))
}

// Collections stand in a dump by their own names, beside their members.
func TestDumpOfCollections(t *testing.T) {
	t.Parallel()
	w := newWorld(t, delta)
	all, none, x := at("east", "p/*"), at("west", "none/*"), at("east", "p/x")
	w.set(w.east, x, "1")
	p := w.start("--stdin", all)
	p.skipTo(complete(all))
	p.enter("watch " + none)
	p.skipTo(complete(none))
	p.enter("dump")
	got := updated.ReplaceAllString(p.skipTo(`"event":"dump"`), `"updated":"TIME"`)
	entry := func(name, version, server, updated string) string {
		return fmt.Sprintf(`{"type":%q,"name":%q,"authority":%q,"status":"ACKED","version":%q,"server":%q,"updated":%s,"error":null}`,
			clusters, name, strings.Split(name, "/")[2], version, server, updated)
	}
	want := `{"event":"dump","subscriptions":[` + strings.Join([]string{
		entry(all, "", "EAST", "null"), entry(x, "1", "EAST", `"TIME"`), entry(none, "", "WEST", "null"),
	}, ",") + "]}"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// The server is asked in the spelling that was given, since it may compare names as text; events have the canonical one.
// spec: C-6
func TestSpelling(t *testing.T) {
	t.Parallel()
	asked, canonical := at("good.example", "host:8080/%41"), at("good.example", "host%3A8080/A")
	srv := server(t)
	boot := grpcBootstrap(t, srv.Target(), "")
	for _, tt := range []struct {
		name, want string
		args       []string
	}{
		{"a resource", asked, []string{"watch", asked}},
		{"a type and a name", asked, []string{"watch", "cds:" + asked}},
		{"a glob", asked + "/*", []string{"watch", asked + "/*"}},
		{"parameters", asked + "?a=1&b=2", []string{"watch", asked + "?b=2&a=1"}},
		{"a directive", at("good.example", "host:8080/A"), []string{"watch", asked + "#alt=" + at("good.example", "b")}},
		{"get", asked, []string{"get", asked}},
		{"a root", asked, []string{"resolve", asked}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := startCommand(t, strings.NewReplacer(), append(tt.args, "--bootstrap", boot)...)
			_, r := acceptFirst(t, srv)
			if got := strings.Join(r.Names(), " "); got != tt.want {
				t.Errorf("asks for %s, want %s", got, tt.want)
			}
			p.stop()
		})
	}
	p := start(t, srv.Target(), "--bootstrap", boot, "--output", "json", "--stdin", asked)
	st := accept(t, srv)
	p.expect(streamUp)
	send(t, st, testutil.SotW(clusters, "1", "n1", cluster(asked)))
	p.expect(fmt.Sprintf(`{"event":"update","type":%q,"name":%q,"authority":"good.example","version":"1","resource":{"name":%q},"server":"SERVER"}`, clusters, canonical, asked), ack("1", "n1"))
	p.enter("unwatch " + canonical)
	p.enter("dump")
	p.expect(`{"event":"dump","subscriptions":[]}`)
}
