package authority_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/xdswatch/xdswatch/authority"
	"github.com/xdswatch/xdswatch/bootstrap"
)

// envoy is a bootstrap as Envoy's format makes it, without ads_config.
func envoy() *bootstrap.Config {
	return &bootstrap.Config{
		Sources: []bootstrap.Source{
			{Authorities: []string{"a", "b"}, Servers: servers("first:1", "first:2")},
			{Authorities: []string{"b", "c"}, Servers: servers("second:1"), FallbackOnReachabilityOnly: true},
		},
		DefaultSource: &bootstrap.Source{Authorities: []string{"a"}, Servers: servers("default:1")},
	}
}

func uris(r authority.Resolved) string {
	var all []string
	for _, s := range r.Servers {
		all = append(all, s.URI)
	}
	text := strings.Join(all, " ")
	if r.FallbackOnReachabilityOnly {
		text += " reachability"
	}
	return text
}

// spec: AUTH-1
func TestSources(t *testing.T) {
	both := envoy()
	both.Servers = servers("top:1")
	both.Authorities = map[string]bootstrap.Authority{"a": {}, "": {Servers: servers("empty:1")}}
	for _, tt := range []struct {
		what, authority, want string
		config                *bootstrap.Config
	}{
		{"first match", "a", "first:1 first:2", envoy()},
		{"first match of two", "b", "first:1 first:2", envoy()},
		{"second", "c", "second:1 reachability", envoy()},
		{"default", "d", "default:1", envoy()},
		{"default of the empty one", "", "default:1", envoy()},
		{"authorities come first", "a", "top:1", both},
		{"the empty one", "", "empty:1", both},
		{"sources are next", "b", "first:1 first:2", both},
		{"and the default is last", "x", "default:1", both},
	} {
		r, err := newTable(t, tt.config).Resolve(listener, "xdstp://"+tt.authority+"/"+segment+"/x")
		if err != nil || uris(r) != tt.want || r.Authority != tt.authority || r.Peer != "" || r.Default != (tt.want == "default:1") {
			t.Errorf("%s: %+v, %v; want %s", tt.what, r, err, tt.want)
		}
	}
}

// Without a default source an authority that no source names is unknown, and the error
// tells those that are named.
//
// spec: AUTH-1 FED-1
func TestSourcesUnknown(t *testing.T) {
	c := envoy()
	c.DefaultSource = nil
	_, err := newTable(t, c).Resolve(listener, "xdstp://d/"+segment+"/x")
	e, ok := errors.AsType[*authority.UnknownAuthorityError](err)
	if !ok || !errors.Is(err, bootstrap.ErrUnknownAuthority) {
		t.Fatalf("error %v", err)
	}
	if diff := cmp.Diff([]string{"a", "b", "c"}, e.Known); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSourcesUnknownAmongMany(t *testing.T) {
	c := &bootstrap.Config{Servers: servers("top:1"), Authorities: map[string]bootstrap.Authority{}}
	for i := range 25 {
		c.Authorities[fmt.Sprintf("a%02d", i)] = bootstrap.Authority{}
	}
	_, err := newTable(t, c).Resolve(listener, "xdstp://d/"+segment+"/x")
	if err == nil || !strings.HasSuffix(err.Error(), `"a18", "a19" and 5 more`) {
		t.Errorf("error %v", err)
	}
}

// spec: BOOTE-2
func TestNoServersForOldNames(t *testing.T) {
	table := newTable(t, envoy())
	_, err := table.Resolve(listener, "backend")
	if !errors.Is(err, authority.ErrNoServers) {
		t.Errorf("one: error %v", err)
	}
	want := `resource name "*" of type ` + listener + `: the bootstrap has no servers for names without an authority, ` +
		`which are xds_servers of gRPC and ads_config of Envoy`
	if _, err = table.ResolveCollection(listener, ""); err == nil || err.Error() != want {
		t.Errorf("all: error %v, want %s", err, want)
	}
}

// Names of one authority have one key; those of another, and old-style ones, have others.
// Servers do not count: each authority falls back by itself.
func TestKey(t *testing.T) {
	table := newTable(t, &bootstrap.Config{
		Servers:     servers("top:1"),
		Authorities: map[string]bootstrap.Authority{"": {}, "a": {}},
	})
	seen := map[authority.Key]string{}
	for name, same := range map[string][]string{
		"x":                           {"y", "*"},
		"xdstp:///" + segment + "/x":  {"xdstp:///" + segment + "/y?a=b"},
		"xdstp://a/" + segment + "/x": {"xdstp://%61/" + segment + "/x/y"},
	} {
		first, err := table.Resolve(listener, name)
		if err != nil {
			t.Fatal(err)
		}
		if other, ok := seen[first.Key()]; ok {
			t.Errorf("%s and %s have one key", name, other)
		}
		seen[first.Key()] = name
		for _, other := range same {
			if r, err := table.Resolve(listener, other); err != nil || r.Key() != first.Key() {
				t.Errorf("%s and %s have keys %+v and %+v (%v)", name, other, first.Key(), r.Key(), err)
			}
		}
	}
}

// Every name of the bootstrap's has the key of one of its sources, and that one's servers.
// Authorities that are left to the default source share it, however many there are.
func TestAllSources(t *testing.T) {
	c := envoy()
	c.Servers = servers("top:1")
	c.Authorities = map[string]bootstrap.Authority{"": {}, "a": {Servers: servers("own:1")}}
	table := newTable(t, c)
	var got []string
	byKey := map[authority.Key]string{}
	for _, s := range table.Sources() {
		byKey[s.Key] = uris(authority.Resolved{Servers: s.Servers, FallbackOnReachabilityOnly: s.FallbackOnReachabilityOnly})
		got = append(got, fmt.Sprintf("%+v %s", s.Key, byKey[s.Key]))
	}
	want := []string{
		"{Old:true Default:false Authority: Peer:} top:1",
		"{Old:false Default:false Authority: Peer:} top:1",
		"{Old:false Default:false Authority:a Peer:} own:1",
		"{Old:false Default:false Authority:b Peer:} first:1 first:2",
		"{Old:false Default:false Authority:c Peer:} second:1 reachability",
		"{Old:false Default:true Authority: Peer:} default:1",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, name := range []string{"", "a", "b", "c", "d", "e"} {
		r, err := table.Resolve(listener, "xdstp://"+name+"/"+segment+"/x")
		if err != nil || byKey[r.Key()] != uris(r) {
			t.Errorf("authority %q: key %+v has %q, resolved %q (%v)", name, r.Key(), byKey[r.Key()], uris(r), err)
		}
	}
	if sources := newTable(t, envoy()).Sources(); sources[0].Key.Old || len(sources) != 4 {
		t.Errorf("without top-level servers: %+v", sources)
	}
}

// An authority that has parameters is told apart from others that the default source
// answers for.
//
// spec: DYN-3
func TestParametersTellApart(t *testing.T) {
	c := envoy()
	c.DynamicParameters.Authorities = map[string]map[string]string{"a": {"k": "v"}, "x": {"k": "v"}}
	table := newTable(t, c)
	for _, tt := range []struct {
		authority string
		key       authority.Key
		want      string
	}{
		{"a", authority.Key{Authority: "a"}, "first:1 first:2"},
		{"x", authority.Key{Authority: "x"}, "default:1"},
		{"y", authority.Key{Default: true}, "default:1"},
		{"", authority.Key{Default: true}, "default:1"},
	} {
		r, err := table.Resolve(listener, "xdstp://"+tt.authority+"/"+segment+"/x")
		if err != nil || r.Key() != tt.key || uris(r) != tt.want {
			t.Errorf("authority %q: %+v, %v; want key %+v", tt.authority, r, err, tt.key)
		}
	}
	c.DefaultSource = nil
	if _, err := newTable(t, c).Resolve(listener, "xdstp://x/"+segment+"/x"); !errors.Is(err, bootstrap.ErrUnknownAuthority) {
		t.Errorf("an authority that has parameters and no servers: %v", err)
	}
}

// spec: AUTH-1
func TestWithPeer(t *testing.T) {
	c := envoy()
	c.Servers = servers("top:1")
	c.DefaultSource = nil
	table := newTable(t, c)
	with := func(s bootstrap.Source) *authority.Table {
		t.Helper()
		out, err := table.WithPeer(s)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	name := func(authority string) string { return "xdstp://" + authority + "/" + segment + "/x" }
	own := bootstrap.Source{Authorities: []string{"c", "z"}, Servers: servers("peer:1")}
	for _, tt := range []struct {
		what, name, want string
		peer             bootstrap.Source
		own              bool
	}{
		{"an authority that only the peer has", name("z"), "peer:1", own, true},
		{"an authority that others have too", name("c"), "peer:1", own, true},
		{"an authority that the peer has not", name("a"), "first:1 first:2", own, false},
		{"an old-style name", "x", "peer:1", own, true},
		{"a peer of none", name("a"), "first:1 first:2", bootstrap.Source{Servers: servers("peer:1")}, false},
		{"an old-style name and a peer of none", "x", "peer:1", bootstrap.Source{Servers: servers("peer:1")}, true},
		{"the same servers", name("a"), "first:1 first:2", bootstrap.Source{Authorities: []string{"a"}, Servers: servers("first:1", "first:2")}, false},
		{"the same in another order", name("a"), "first:2 first:1", bootstrap.Source{Authorities: []string{"a"}, Servers: servers("first:2", "first:1")}, true},
		{"the same that falls back otherwise", name("c"), "second:1", bootstrap.Source{Authorities: []string{"c"}, Servers: servers("second:1")}, true},
		{"ads", "x", "top:1", bootstrap.Source{Servers: servers("top:1")}, false},
	} {
		r, err := with(tt.peer).Resolve(listener, tt.name)
		if err != nil || uris(r) != tt.want || (r.Peer != "") != tt.own {
			t.Errorf("%s: %+v, %v; want %s, its own: %t", tt.what, r, err, tt.want, tt.own)
		}
	}
	one, _ := with(own).Resolve(listener, name("z"))
	two, _ := with(bootstrap.Source{Authorities: []string{"z"}, Servers: servers("peer:1")}).Resolve(listener, name("z"))
	if one.Key() != two.Key() {
		t.Errorf("equal peers have keys %+v and %+v", one.Key(), two.Key())
	}
	if r, err := table.Resolve(listener, name("z")); err == nil {
		t.Errorf("the table without the peer found %+v", r)
	}
	if _, err := table.WithPeer(bootstrap.Source{}); err == nil {
		t.Error("a peer without servers is accepted")
	}
	_, err := with(own).Resolve(listener, name("y"))
	want := `resource name "xdstp://y/` + segment + `/x": authority "y" is not in the bootstrap, which has "a", "b", "c"; the source of the watch has "c", "z"`
	if err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

// The bootstrap of many authorities, with few servers.
func large(authorities, lists int) *bootstrap.Config {
	c := &bootstrap.Config{Servers: servers("top:1"), Authorities: map[string]bootstrap.Authority{}}
	for i := range authorities {
		list := servers(fmt.Sprintf("s%d:1", i%lists), fmt.Sprintf("s%d:2", i%lists))
		c.Authorities[fmt.Sprintf("authority-%d.test", i)] = bootstrap.Authority{Servers: list}
	}
	return c
}

// Authorities with equal servers share one list.
func TestLargeTableShares(t *testing.T) {
	const authorities, lists = 200, 10
	table := newTable(t, large(authorities, lists))
	distinct := map[*bootstrap.ManagementServer]int{}
	for i := range authorities {
		r, err := table.Resolve(listener, fmt.Sprintf("xdstp://authority-%d.test/%s/x", i, segment))
		if err != nil {
			t.Fatal(err)
		}
		if want := fmt.Sprintf("s%d:1", i%lists); r.Servers[0].URI != want {
			t.Errorf("authority %d has %s, want %s", i, r.Servers[0].URI, want)
		}
		distinct[&r.Servers[0]]++
	}
	if len(distinct) != lists {
		t.Errorf("%d lists of servers, want %d", len(distinct), lists)
	}
}

func BenchmarkNew(b *testing.B) {
	c := large(200, 10)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := authority.New(c); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkResolve(b *testing.B) {
	table, err := authority.New(large(200, 10))
	if err != nil {
		b.Fatal(err)
	}
	peer, err := table.WithPeer(bootstrap.Source{Authorities: []string{"authority-77.test"}, Servers: servers("peer:1")})
	if err != nil {
		b.Fatal(err)
	}
	const structured = "xdstp://authority-77.test/" + segment + "/prod/backend-7?env=prod"
	for _, bb := range []struct {
		what, name string
		table      *authority.Table
	}{
		{"old", "outbound|80||backend.prod", table}, {"xdstp", structured, table}, {"peer", structured, peer},
	} {
		b.Run(bb.what, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := bb.table.Resolve(listener, bb.name); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// How long a first answer is waited for is the source's that answers; a peer with the
// servers of the bootstrap's source is that source, and still waits as it says itself.
//
// spec: DNE-10
func TestInitialFetchTimeout(t *testing.T) {
	c := envoy()
	c.Servers = servers("top:1")
	c.Sources[0].InitialFetchTimeout = time.Second
	c.DefaultSource.InitialFetchTimeout = 2 * time.Second
	table := newTable(t, c)
	peer := func(uri string) *authority.Table {
		p, err := table.WithPeer(bootstrap.Source{Authorities: []string{"z"}, Servers: servers(uri), InitialFetchTimeout: 3 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	structured := func(authority string) string { return "xdstp://" + authority + "/" + segment + "/x" }
	for _, tt := range []struct {
		table *authority.Table
		name  string
		want  time.Duration
		peer  bool
	}{
		{table, "x", 0, false},
		{table, structured("a"), time.Second, false},
		{table, structured("c"), 0, false},
		{table, structured("z"), 2 * time.Second, false},
		{peer("other:1"), "x", 3 * time.Second, true},
		{peer("other:1"), structured("z"), 3 * time.Second, true},
		{peer("other:1"), structured("a"), time.Second, false},
		{peer("top:1"), "x", 3 * time.Second, false},
		{peer("default:1"), structured("z"), 3 * time.Second, false},
	} {
		r, err := tt.table.Resolve(listener, tt.name)
		if err != nil || r.InitialFetchTimeout != tt.want || (r.Peer != "") != tt.peer {
			t.Errorf("%s: %v of peer %q, want %v (%v)", tt.name, r.InitialFetchTimeout, r.Peer, tt.want, err)
		}
	}
}

// A bootstrap of nothing but sources of their own answers for no name by itself.
func TestOnlyOwnSources(t *testing.T) {
	own := &bootstrap.Source{Servers: servers("own:1")}
	table := newTable(t, &bootstrap.Config{Startup: []bootstrap.Subscription{{TypeURL: cluster, Collection: "*", Source: own}}})
	if _, err := table.ResolveCollection(listener, "*"); !errors.Is(err, authority.ErrNoServers) {
		t.Errorf("error %v", err)
	}
	p, err := table.WithPeer(*own)
	if err != nil {
		t.Fatal(err)
	}
	if r, err := p.ResolveCollection(listener, "*"); err != nil || uris(r) != "own:1" {
		t.Errorf("%+v, %v", r, err)
	}
}
