package authority_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/xdswatch/xdswatch/authority"
	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/xdstp"
)

func TestResolveCollection(t *testing.T) {
	table := newTable(t, config())
	all := authority.Resolved{
		Old: true, Form: authority.Wildcard, TypeURL: listener, Name: "*", Servers: servers("top:1", "top:2"),
	}
	for name, want := range map[string]authority.Resolved{
		"*": all,
		"":  all,
		"xdstp:///" + segment + "/x:1/*?b=1&a=2": {
			Form: authority.Glob, TypeURL: listener, Name: "xdstp:///" + segment + "/x%3A1/*?a=2&b=1", Servers: servers("empty:1"),
		},
		"xdstp:///" + segment + "/*": {
			Form: authority.Glob, TypeURL: listener, Name: "xdstp:///" + segment + "/*", Servers: servers("empty:1"),
		},
		"xdstp://b.test/" + segment + "Collection/x/y?b=1&a=2": {
			Authority: "b.test", Form: authority.List, TypeURL: listener + "Collection",
			Name:    "xdstp://b.test/" + segment + "Collection/x/y?a=2&b=1",
			Servers: servers("b:1", "b:2"), FallbackOnReachabilityOnly: true,
		},
	} {
		got, err := table.ResolveCollection(listener, name)
		if err != nil {
			t.Errorf("%q: %v", name, err)
			continue
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", name, diff)
		}
	}
}

func TestResolveCollectionBadName(t *testing.T) {
	table := newTable(t, config())
	for name, want := range map[string]error{
		"foo/*":                                        authority.ErrNotCollection,
		"backend":                                      authority.ErrNotCollection,
		"\xff":                                         authority.ErrNotUTF8,
		"file:///etc/all":                              authority.ErrNotCollection,
		"xdstp://b.test/" + segment + "/x":             authority.ErrNotCollection,
		"xdstp://b.test/" + segment:                    authority.ErrNotCollection,
		"xdstp://b.test/" + segment + "/x/*#a":         authority.ErrFragment,
		"xdstp://b.test/x.Y/*":                         authority.ErrWrongType, // spec: XDSTP-3
		"xdstp://b.test/x.YCollection/a":               authority.ErrWrongType,
		"xdstp://b.test/Collection/a":                  authority.ErrWrongType,
		"xdstp://b.test/" + segment + "Collection/x/*": authority.ErrGlobOfLists,
		"xdstp://b.test/" + segment + "/*?xds.a=b":     authority.ErrOwnParam, // spec: CTX-1
		"xdstp://nobody/" + segment + "/*":             bootstrap.ErrUnknownAuthority,
	} {
		got, err := table.ResolveCollection(listener, name)
		if !errors.Is(err, want) {
			t.Errorf("%q: error %v, want %v", name, err, want)
		}
		if diff := cmp.Diff(authority.Resolved{}, got); diff != "" {
			t.Errorf("%q: a result beside an error (-want +got):\n%s", name, diff)
		}
	}
	_, err := table.ResolveCollection(listener, "xdstp://b.test")
	if e, ok := errors.AsType[*xdstp.Error](err); !ok || e.Part != xdstp.PartType {
		t.Errorf("error %v, want one of the type", err)
	}
}

// spec: XDSTP-2
func TestResolveLocator(t *testing.T) {
	const (
		one  = "xdstp://b.test/" + segment + "/x"
		list = "xdstp:///" + segment + "Collection/x"
		glob = "xdstp:///" + segment + "/*"
	)
	b := func(name string) authority.Resolved {
		return authority.Resolved{
			Authority: "b.test", TypeURL: listener, Name: name, Servers: servers("b:1", "b:2"), FallbackOnReachabilityOnly: true,
		}
	}
	empty := func(name, typeURL string, form authority.Form) authority.Resolved {
		return authority.Resolved{Form: form, TypeURL: typeURL, Name: name, Servers: servers("empty:1")}
	}
	entry := &authority.Located{
		Resolved: empty(list, listener+"Collection", authority.List), Locator: list + "#entry=a/b", Entry: "a/b",
	}
	for text, want := range map[string]struct {
		authority.Located
		one bool
	}{
		"back#end": {authority.Located{
			Resolved: authority.Resolved{Old: true, TypeURL: listener, Name: "back#end", Servers: servers("top:1", "top:2")},
			Locator:  "back#end",
		}, true},
		one + "?b=:1&a=2":   {authority.Located{Resolved: b(one + "?a=2&b=:1"), Locator: one + "?a=2&b=:1"}, true},
		glob:                {authority.Located{Resolved: empty(glob, listener, authority.Glob), Locator: glob}, false},
		list:                {authority.Located{Resolved: empty(list, listener+"Collection", authority.List), Locator: list}, false},
		list + "#entry=a/b": {*entry, true},
		one + "#alt=xdstp:///" + segment + "Collection/x%23entry=a/b": {authority.Located{
			Resolved: b(one), Locator: one + "#alt=xdstp:///" + segment + "Collection/x%23entry=a/b", Alt: entry,
		}, true},
		glob + "#alt=" + list: {authority.Located{
			Resolved: empty(glob, listener, authority.Glob), Locator: glob + "#alt=" + list,
			Alt: &authority.Located{Resolved: empty(list, listener+"Collection", authority.List), Locator: list},
		}, false},
		list + "#entry=a%2Cb,alt=" + one: {authority.Located{
			Resolved: empty(list, listener+"Collection", authority.List), Locator: list + "#entry=a%2Cb,alt=" + one, Entry: "a,b",
			Alt: &authority.Located{Resolved: b(one), Locator: one},
		}, true},
	} {
		got, err := newTable(t, config()).ResolveLocator(listener, text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if diff := cmp.Diff(want.Located, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
		if got.One() != want.one {
			t.Errorf("%s: means one resource: %t", text, got.One())
		}
	}
}

func TestResolveLocatorBad(t *testing.T) {
	const (
		one  = "xdstp://b.test/" + segment + "/x"
		list = "xdstp:///" + segment + "Collection/x"
	)
	table := newTable(t, config())
	for text, want := range map[string]error{
		"":                                   authority.ErrEmptyName,
		"xdstp:///" + segment + "/\xff":      authority.ErrNotUTF8,
		"xdstp:///x.Y/x":                     authority.ErrWrongType,
		one + "?xds.a=b":                     authority.ErrOwnParam,
		one + "#entry=a":                     authority.ErrEntry,
		list + "#entry=":                     authority.ErrEntry,
		"xdstp:///" + segment + "/*#entry=a": authority.ErrEntry,
		"xdstp://no/" + segment + "/x":       bootstrap.ErrUnknownAuthority,
		one + "#alt=" + list:                 authority.ErrAltForm,
		list + "#alt=" + one:                 authority.ErrAltForm,
		one + "#alt=http://b.test/" + segment + "/x":    authority.ErrScheme,
		one + "#alt=file:///x":                          authority.ErrScheme,
		one + "#alt=xdstp:///x.Y/x":                     authority.ErrWrongType,
		one + "#alt=xdstp:///" + segment + "/x?xds.a=b": authority.ErrOwnParam,
		one + "#alt=xdstp://no/" + segment + "/x":       bootstrap.ErrUnknownAuthority,
	} {
		got, err := table.ResolveLocator(listener, text)
		if !errors.Is(err, want) {
			t.Errorf("%s: error %v, want %v", text, err, want)
		}
		if diff := cmp.Diff(authority.Located{}, got); diff != "" {
			t.Errorf("%s: a result beside an error (-want +got):\n%s", text, diff)
		}
	}
	_, err := table.ResolveLocator(listener, one+"#color=red")
	if e, ok := errors.AsType[*xdstp.Error](err); !ok || e.Part != xdstp.PartDirectives {
		t.Errorf("error %v, want one of the directives", err)
	}
	_, err = table.ResolveLocator(listener, one+"#alt=xdstp://no/"+segment+"/x")
	want := `resource name "` + one + `#alt=xdstp://no/` + segment + `/x" of type ` + listener + `: alternative: resource name "xdstp://no/` +
		segment + `/x": authority "no" is not in the bootstrap, which has "", "#.com", "[::1]:8", "b.test", "bare"`
	if err.Error() != want {
		t.Errorf("error %q, want %q", err, want)
	}
}

// A server may send context that a program may not.
//
// spec: CTX-1
func TestResolveReceived(t *testing.T) {
	const text = "xdstp:///" + segment + "/x?xds.resource.vip=10.0.0.1"
	table := newTable(t, config())
	l, err := xdstp.ParseLocator(text + "#alt=" + text)
	if err != nil {
		t.Fatal(err)
	}
	got, err := table.ResolveReceived(listener, l)
	if err != nil || got.Name != text || got.Alt == nil || got.Alt.Name != text {
		t.Errorf("%+v, %v", got, err)
	}
	for _, l := range []xdstp.Locator{
		{}, {Scheme: xdstp.SchemeFile, Name: xdstp.Name{ID: "x"}}, {Name: xdstp.Name{Type: segment, ID: "x", Authority: "no"}},
	} {
		if got, err := table.ResolveReceived(listener, l); err == nil {
			t.Errorf("%v is accepted: %+v", l, got)
		}
	}
}

// FuzzResolveLocator: what is accepted is canonical, never leads a fragment or another
// type onto the wire, and is resolved to the same again.
func FuzzResolveLocator(f *testing.F) {
	for _, text := range []string{
		"*", "backend", "xdstp:///" + segment + "/x?b=1&a=2", "xdstp://b.test/" + segment + "/a/*",
		"xdstp://b.test/" + segment + "Collection/a#entry=x,alt=xdstp:///" + segment + "/y",
		"xdstp://%23.com/" + segment + "/%2A%23%ff", "xdstp://[::1]:8/" + segment + "/x?xds.a=b", "http://a/b/c",
	} {
		f.Add(text)
	}
	table, err := authority.New(config())
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := table.ResolveLocator(listener, text)
		if err != nil {
			if diff := cmp.Diff(authority.Located{}, got); diff != "" {
				t.Fatalf("a result beside an error:\n%s", diff)
			}
			return
		}
		again, err := table.ResolveLocator(listener, got.Locator)
		if err != nil {
			t.Fatalf("%q is not resolved: %v", got.Locator, err)
		}
		if diff := cmp.Diff(got, again); diff != "" {
			t.Fatalf("two results:\n%s", diff)
		}
		for l := &got; l != nil; l = l.Alt {
			checkWire(t, table, l)
		}
	})
}

// checkWire sees to it that the name of a locator is one by itself.
func checkWire(t *testing.T, table *authority.Table, l *authority.Located) {
	var r authority.Resolved
	var err error
	if l.Form == authority.Single {
		r, err = table.Resolve(listener, l.Name)
	} else {
		r, err = table.ResolveCollection(listener, l.Name)
	}
	if err != nil || len(r.Servers) == 0 {
		t.Fatalf("name %q: %+v, %v", l.Name, r, err)
	}
	if diff := cmp.Diff(l.Resolved, r); diff != "" {
		t.Fatalf("the name by itself:\n%s", diff)
	}
}
