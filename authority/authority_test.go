package authority_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/xdswatch/xdswatch/authority"
	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/xdstp"
)

const (
	listener = "type.googleapis.com/envoy.config.listener.v3.Listener"
	cluster  = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
	segment  = "envoy.config.listener.v3.Listener"
)

func servers(uris ...string) []bootstrap.ManagementServer {
	var out []bootstrap.ManagementServer
	for _, uri := range uris {
		out = append(out, bootstrap.ManagementServer{URI: uri})
	}
	return out
}

func config() *bootstrap.Config {
	return &bootstrap.Config{
		Servers: servers("top:1", "top:2"),
		Authorities: map[string]bootstrap.Authority{
			"":        {Servers: servers("empty:1")},
			"b.test":  {Servers: servers("b:1", "b:2"), FallbackOnReachabilityOnly: true},
			"bare":    {FallbackOnReachabilityOnly: true},
			"#.com":   {Servers: servers("hash:1")},
			"[::1]:8": {Servers: servers("six:1")},
		},
	}
}

func newTable(t *testing.T, c *bootstrap.Config) *authority.Table {
	t.Helper()
	table, err := authority.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// spec: AUTH-3, BOOT-6, XDSTP-1, XDSTP-4
func TestResolve(t *testing.T) {
	old := func(name string) authority.Resolved {
		return authority.Resolved{Old: true, Name: name, Servers: servers("top:1", "top:2")}
	}
	tests := []struct {
		name string
		want authority.Resolved
	}{
		{"backend", old("backend")},
		{"*", old("*")},
		{"foo/*", old("foo/*")},
		{"a#b?c=d", old("a#b?c=d")},
		{"line\nend\x00 \u007f", old("line\nend\x00 \u007f")},
		{"名", old("名")},
		{"XDSTP://b.test/" + segment + "/x", old("XDSTP://b.test/" + segment + "/x")},
		{"xdstp:///" + segment + "/x", authority.Resolved{
			Name: "xdstp:///" + segment + "/x", Servers: servers("empty:1"),
		}},
		{"xdstp://b.test/" + segment + "/x:1?b=1&a=2", authority.Resolved{
			Authority: "b.test", Name: "xdstp://b.test/" + segment + "/x%3A1?a=2&b=1",
			Spelling: "xdstp://b.test/" + segment + "/x:1?a=2&b=1",
			Servers:  servers("b:1", "b:2"), FallbackOnReachabilityOnly: true,
		}},
		{"xdstp://b.test/" + segment + "/x%3a1", authority.Resolved{
			Authority: "b.test", Name: "xdstp://b.test/" + segment + "/x%3A1",
			Spelling: "xdstp://b.test/" + segment + "/x%3a1",
			Servers:  servers("b:1", "b:2"), FallbackOnReachabilityOnly: true,
		}},
		{"xdstp://b.test/" + segment, authority.Resolved{
			Authority: "b.test", Name: "xdstp://b.test/" + segment,
			Servers: servers("b:1", "b:2"), FallbackOnReachabilityOnly: true,
		}},
		{"xdstp://bare/" + segment + "/x", authority.Resolved{
			Authority: "bare", Name: "xdstp://bare/" + segment + "/x",
			Servers: servers("top:1", "top:2"), FallbackOnReachabilityOnly: true,
		}},
		{"xdstp://%23.com/" + segment + "/x%23y", authority.Resolved{
			Authority: "#.com", Name: "xdstp://%23.com/" + segment + "/x%23y",
			Servers: servers("hash:1"),
		}},
		{"xdstp://[::1]:8/" + segment + "/x", authority.Resolved{
			Authority: "[::1]:8", Name: "xdstp://[::1]:8/" + segment + "/x",
			Servers: servers("six:1"),
		}},
	}
	table := newTable(t, config())
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := table.Resolve(listener, tt.name)
			if err != nil {
				t.Fatal(err)
			}
			tt.want.TypeURL = listener
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestResolveBadName(t *testing.T) {
	tests := []struct {
		name string
		want error
	}{
		{"", authority.ErrEmptyName},
		{"caf\xe9", authority.ErrNotUTF8},
		{"xdstp://b.test/" + segment + "/caf\xe9", authority.ErrNotUTF8},
		{"xdstp://b.test/envoy.config.cluster.v3.Cluster/x", authority.ErrWrongType}, // spec: XDSTP-3
		{"xdstp://b.test/" + listener + "/x", authority.ErrWrongType},
		{"xdstp://unknown/envoy.config.cluster.v3.Cluster/x", authority.ErrWrongType},
		{"xdstp://b.test/" + segment + "/foo/*", authority.ErrGlob},
		{"xdstp://b.test/" + segment + "/%2A?a=b", authority.ErrGlob},
		{"xdstp://b.test/" + segment + "Collection/x", authority.ErrList},
		{"xdstp://b.test/" + segment + "/x#entry=y", authority.ErrFragment}, // spec: XDSTP-2
		{"xdstp://b.test/" + segment + "/x?a=b#alt=xdstp:///T", authority.ErrFragment},
	}
	table := newTable(t, config())
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := table.Resolve(listener, tt.name)
			if !errors.Is(err, tt.want) {
				t.Fatalf("error %v, want %v", err, tt.want)
			}
			if diff := cmp.Diff(authority.Resolved{}, got); diff != "" {
				t.Errorf("a result beside an error (-want +got):\n%s", diff)
			}
			e, ok := errors.AsType[*authority.NameError](err)
			if !ok || e.Name != tt.name || e.TypeURL != listener {
				t.Errorf("error %#v does not tell the name and type", err)
			}
		})
	}
}

// Whose context parameters they are is not the table's concern.
func TestResolveAnyParameters(t *testing.T) {
	const name = "xdstp://b.test/" + segment + "/x?a=b&xds.node.id=a"
	table := newTable(t, config())
	if r, err := table.Resolve(listener, name); err != nil || r.Name != name {
		t.Errorf("resolved as %q: %v", r.Name, err)
	}
	const glob = "xdstp://b.test/" + segment + "/*?xds.node.id=a"
	if r, err := table.ResolveCollection(listener, glob); err != nil || r.Name != glob {
		t.Errorf("the glob is resolved as %q: %v", r.Name, err)
	}
}

func TestResolveMalformed(t *testing.T) {
	table := newTable(t, config())
	for name, part := range map[string]xdstp.Part{
		"xdstp:b.test":                           xdstp.PartScheme,
		"xdstp://x":                              xdstp.PartType,
		"xdstp://b.test//x":                      xdstp.PartType,
		"xdstp://b.test/" + segment + "/x?a=1&a": xdstp.PartParams, // spec: XDSTP-5
	} {
		_, err := table.Resolve(listener, name)
		e, ok := errors.AsType[*xdstp.Error](err)
		if !ok || e.Part != part {
			t.Errorf("%q: error %v, want one of the %s", name, err, part)
		}
	}
}

// spec: AUTH-3
func TestResolveUnknownAuthority(t *testing.T) {
	name := "xdstp://b.tests/" + segment + "/x"
	_, err := newTable(t, config()).Resolve(listener, name)
	e, ok := errors.AsType[*authority.UnknownAuthorityError](err)
	if !ok {
		t.Fatalf("error %v, want an *UnknownAuthorityError", err)
	}
	want := &authority.UnknownAuthorityError{
		Name: name, Authority: "b.tests", Known: []string{"", "#.com", "[::1]:8", "b.test", "bare"},
	}
	if diff := cmp.Diff(want, e); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !errors.Is(err, bootstrap.ErrUnknownAuthority) {
		t.Errorf("%v is no bootstrap.ErrUnknownAuthority", err)
	}
	wantText := `resource name "` + name + `": authority "b.tests" is not in the bootstrap, ` +
		`which has "", "#.com", "[::1]:8", "b.test", "bare"`
	if err.Error() != wantText {
		t.Errorf("error %q, want %q", err, wantText)
	}
}

// Without an entry of its own the empty authority is unknown; it is not the top level.
func TestResolveEmptyAuthorityUnknown(t *testing.T) {
	table := newTable(t, &bootstrap.Config{Servers: servers("top:1")})
	_, err := table.Resolve(cluster, "xdstp:///envoy.config.cluster.v3.Cluster/x")
	if !errors.Is(err, bootstrap.ErrUnknownAuthority) || !strings.HasSuffix(err.Error(), "which has none") {
		t.Errorf("error %v, want that the bootstrap has no authorities", err)
	}
}

func TestNew(t *testing.T) {
	for what, c := range map[string]*bootstrap.Config{
		"nil":        nil,
		"no servers": {Authorities: map[string]bootstrap.Authority{"a": {Servers: servers("a:1")}}},
		"no servers of a source": {
			Servers: servers("top:1"), Sources: []bootstrap.Source{{Authorities: []string{"a"}}},
		},
		"no servers of the default source": {Servers: servers("top:1"), DefaultSource: &bootstrap.Source{}},
		"no servers of an authority": {
			DefaultSource: &bootstrap.Source{Servers: servers("d:1")}, Authorities: map[string]bootstrap.Authority{"a": {}},
		},
	} {
		if table, err := authority.New(c); err == nil || table != nil {
			t.Errorf("%s: table %v, error %v; want an error alone", what, table, err)
		}
	}
}

// The table does not change with the Config that it was made of.
func TestNewCopies(t *testing.T) {
	c := config()
	table := newTable(t, c)
	c.Servers[0].URI = "changed:1"
	c.Authorities[""].Servers[0].URI = "changed:2"
	delete(c.Authorities, "b.test")
	for name, want := range map[string]string{
		"x":                                "top:1",
		"xdstp://bare/" + segment + "/x":   "top:1",
		"xdstp:///" + segment + "/x":       "empty:1",
		"xdstp://b.test/" + segment + "/x": "b:1",
	} {
		got, err := table.Resolve(listener, name)
		if err != nil || got.Servers[0].URI != want {
			t.Errorf("%q: %v, %v; want the server %s", name, got, err, want)
		}
	}
}

// spec: METRIC-2
func TestLabel(t *testing.T) {
	c := config()
	c.DefaultSource = &bootstrap.Source{Servers: servers("rest:1")}
	table := newTable(t, c)
	for name, want := range map[string]string{
		"x":                                "#old",
		"xdstp:///" + segment + "/x":       "",
		"xdstp://b.test/" + segment + "/x": "b.test",
		"xdstp://other/" + segment + "/x":  "#default",
	} {
		got, err := table.Resolve(listener, name)
		if err != nil || got.Label() != want {
			t.Errorf("%q: label %q, %v; want %q", name, got.Label(), err, want)
		}
	}
}
