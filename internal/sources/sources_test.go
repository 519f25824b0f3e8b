package sources

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"github.com/xdswatch/xdswatch/authority"
	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/internal/engine"
	"github.com/xdswatch/xdswatch/internal/machine"
	"github.com/xdswatch/xdswatch/transport"
)

var errBad = errors.New("it cannot be configured")

// conn is a connection that is not dialled.
type conn struct{}

func (conn) Open(context.Context, string) (transport.Stream, error) { return nil, transport.ErrClosed }
func (conn) Close() error                                           { return nil }

func servers(uris ...string) (all []bootstrap.ManagementServer) {
	for _, uri := range uris {
		all = append(all, bootstrap.ManagementServer{URI: uri})
	}
	return all
}

// sourcesOf makes the sources of a bootstrap's table. "bad" cannot be configured, and "away" cannot be dialled.
func sourcesOf(t *testing.T, boot *bootstrap.Config, extend func([]machine.Source)) (*authority.Table, *Sources, []engine.Server, []machine.Source) {
	t.Helper()
	boot.Node = &corev3.Node{}
	table, err := authority.New(boot.WithDefaults())
	if err != nil {
		t.Fatal(err)
	}
	s, first, sources, err := New(Config{
		Override: func(b bootstrap.ManagementServer) bootstrap.ManagementServer { return b },
		Make: func(b bootstrap.ManagementServer) engine.Server {
			return engine.Server{URI: b.URI, Connect: func() (transport.Conn, error) {
				switch b.URI {
				case "bad":
					return nil, errBad
				case "away":
					return nil, transport.ErrTarget
				}
				return conn{}, nil
			}}
		},
		Extend: func(_ []engine.Server, all []machine.Source) error {
			extend(all)
			return nil
		},
		Params: func(authority.Key) map[string]string { return nil },
	}, table)
	if err != nil {
		t.Fatal(err)
	}
	return table, s, first, sources
}

// Equal servers have one number, whoever lists them, and a place has one source. A source with a server that cannot be
// configured is none, and its other servers are not known for it. Where no server of a source can be dialled
// it is none either.
//
// spec: AUTH-1 CFG-3 C-4 H-11
func TestSources(t *testing.T) {
	var made []machine.Source
	table, s, first, sources := sourcesOf(t, &bootstrap.Config{
		Servers: servers("one"), Authorities: map[string]bootstrap.Authority{"a": {Servers: servers("two", "one")}},
	}, func(all []machine.Source) { made = append(made, all...) })
	if len(first) != 2 || len(sources) != 2 || !slices.Equal(sources[1].Servers, []int{1, 0}) {
		t.Fatalf("of the bootstrap: %d servers, sources %v", len(first), sources)
	}
	find := func(scope string, uris ...string) (int, error) {
		own, err := table.WithPeer(bootstrap.Source{Servers: servers(uris...)})
		if err != nil {
			t.Fatal(err)
		}
		r, err := own.Resolve("type.googleapis.com/a.B", "x")
		if err != nil {
			t.Fatal(err)
		}
		return s.Find(own, Place{r.Key(), scope}, r)
	}
	for _, tt := range []struct {
		scope string
		uris  []string
		is    int
		err   error
	}{
		{"", []string{"one"}, 0, nil},
		{"", []string{"three", "bad"}, 0, errBad},
		{"", []string{"away"}, 0, transport.ErrTarget},
		{"", []string{"away", "three"}, 2, nil},
		{"", []string{"away", "three"}, 2, nil},
		{"", []string{"away"}, 0, transport.ErrTarget},
		{"s", []string{"one"}, 3, nil},
	} {
		if is, err := find(tt.scope, tt.uris...); is != tt.is || !errors.Is(err, tt.err) {
			t.Errorf("%q of %v: source %d, %v; want %d, %v", tt.scope, tt.uris, is, err, tt.is, tt.err)
		}
	}
	var known []string
	for _, b := range s.Servers() {
		known = append(known, b.URI)
	}
	if want := []string{"one", "two", "away", "three"}; !slices.Equal(known, want) {
		t.Errorf("the servers are %v, want %v", known, want)
	}
	if want := []string{"", "@away", "s"}; !slices.Equal(s.Scopes(), want) || len(made) != 2 || len(s.all) != 4 {
		t.Errorf("the scopes are %q, want %q; %d sources of %d were made", s.Scopes(), want, len(made), len(s.all))
	}
	if answers := made[0].Answers; answers(0, "") || !answers(0, "a") || answers(3, "a") {
		t.Error("other servers may say names of an authority than those that answer for it")
	}
}

// closing is a connection that counts that it is closed.
type closing struct {
	conn
	closed *int
}

func (c closing) Close() error {
	*c.closed++
	return nil
}

// What the machine is told of a source: its servers, each once, as the program's choice has them, whether its resources
// are stored, which those of files are not, when it falls back, and the parameters and the scope of its names.
//
// spec: CFG-3 FALLBACK-2 H-11
func TestWhatSourcesAreTold(t *testing.T) {
	table, err := authority.New((&bootstrap.Config{
		Node: &corev3.Node{Id: "n"}, Servers: servers("one"),
		Authorities: map[string]bootstrap.Authority{
			"a": {Servers: servers("uno", "two"), FallbackOnReachabilityOnly: true}, "b": {Servers: servers("two", "two")},
		},
	}).WithDefaults())
	if err != nil {
		t.Fatal(err)
	}
	closed, over := 0, error(nil)
	var known []engine.Server
	var told []machine.Source
	s, first, sources, err := New(Config{
		Override: func(b bootstrap.ManagementServer) bootstrap.ManagementServer {
			if b.URI == "uno" {
				b.URI = "one"
			}
			return b
		},
		Make: func(b bootstrap.ManagementServer) engine.Server {
			return engine.Server{URI: b.URI, Connect: func() (transport.Conn, error) { return closing{closed: &closed}, nil }}
		},
		Extend: func(added []engine.Server, all []machine.Source) error {
			known, told = append(known, added...), append(told, all...)
			return over
		},
		Params: func(k authority.Key) map[string]string {
			if k.Authority != "a" {
				return nil
			}
			return map[string]string{"k": "v"}
		},
		Stored: true,
	}, table)
	if err != nil {
		t.Fatal(err)
	}
	known, told = append(known, first...), append(told, sources...)
	find := func(scope, name string, peer ...bootstrap.ManagementServer) error {
		own := table
		if len(peer) > 0 {
			var err error
			if own, err = table.WithPeer(bootstrap.Source{Servers: peer, FallbackOnReachabilityOnly: true}); err != nil {
				t.Fatal(err)
			}
		}
		r, err := own.Resolve("type.googleapis.com/a.B", name)
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Find(own, Place{r.Key(), scope}, r)
		return err
	}
	file := bootstrap.ManagementServer{URI: "file", Carrier: &bootstrap.File{Path: "/x"}}
	for _, err := range []error{
		find("", "x", append(servers("two", "two"), file)...), find("s", "x"), find("s", "xdstp://b/a.B/x"), find("s", "x", servers("three", "three")...),
	} {
		if err != nil {
			t.Error(err)
		}
	}
	word := func(is bool, text string) string {
		if is {
			return text
		}
		return ""
	}
	var got []string
	for _, m := range told {
		got = append(got, fmt.Sprintf("%v scope %d%s%s%s", m.Servers, m.Scope,
			word(m.Stored, " stored"), word(m.ReachabilityOnly, " reachability only"), word(m.Params != nil, " params")))
	}
	want := []string{
		"[0] scope 0 stored", "[0 1] scope 0 stored reachability only params", "[1] scope 0 stored", "[1 2] scope 1 reachability only",
		"[0] scope 2 stored", "[1] scope 2 stored", "[3] scope 3 stored reachability only",
	}
	if !slices.Equal(got, want) {
		t.Errorf("the machine is told\n%q, want\n%q", got, want)
	}
	if len(known) != 4 || closed != 4 {
		t.Errorf("there are %d servers, and %d connections are closed; want 4", len(known), closed)
	}
	// The authorities a and b have servers that are not the same lists.
	if answers := told[0].Answers; !answers(0, "a") || answers(0, "b") || !answers(1, "b") {
		t.Error("who answers for an authority is not asked as the program's choice has the servers")
	}
	if over = errors.New("over"); !errors.Is(find("t", "x"), over) {
		t.Error("it is not told that the machine takes no more")
	}
}
