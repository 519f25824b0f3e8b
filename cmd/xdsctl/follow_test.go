package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/xdswatch/xdswatch/testutil"
)

// listAt is the name of a list of clusters.
func listAt(authority, id string) string {
	return "xdstp://" + authority + "/envoy.config.cluster.v3.ClusterCollection/" + id
}

func (w *world) list(s *testutil.CollectionServer, name string, entries ...testutil.ListEntry) {
	w.t.Helper()
	if err := s.List(name, entries...); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) redirect(s *testutil.CollectionServer, name, url string) {
	w.t.Helper()
	if err := s.Redirect(name, url); err != nil {
		w.t.Fatal(err)
	}
}

// located is a member that is elsewhere, and inline one that is not.
func located(url string) testutil.ListEntry { return testutil.ListEntry{Locator: url} }

func inline(name, version string) testutil.ListEntry {
	c := cluster(name)
	c.AltStatName = version
	return testutil.ListEntry{Name: name, Version: version, Resource: c}
}

// inlined is the update of an inline entry by its name.
func (w *world) inlined(name, version, server string) string {
	_, entry, _ := strings.Cut(name, "#entry=")
	return strings.Replace(w.updated(name, version, server), fmt.Sprintf(`{"name":%q`, name), fmt.Sprintf(`{"name":%q`, entry), 1)
}

// from makes an update one that another locator serves.
func from(update, name, locator string) string {
	update = strings.Replace(update, fmt.Sprintf(`{"name":%q`, name), fmt.Sprintf(`{"name":%q`, locator), 1)
	return strings.TrimSuffix(update, "}") + fmt.Sprintf(`,"locator":%q}`, locator)
}

// told takes n lines that are of resources, and compares them in any order: servers answer
// when they like.
func (p *program) told(want ...string) {
	p.t.Helper()
	var got []string
	for len(got) < len(want) {
		if line := p.next(); strings.Contains(line, `"name":`) {
			got = append(got, line)
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		p.t.Fatalf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// A list brings its members, wherever they are, under their own names, and is synced under
// its own.
func TestListCollection(t *testing.T) {
	t.Parallel()
	w := newWorld(t, delta)
	all, a, b := listAt("east", "l"), at("east", "a"), at("west", "b")
	in, lost := all+"#entry=in", at("north", "c")
	w.set(w.east, a, "1")
	w.set(w.west, b, "1")
	w.list(w.east, all, located(a), located(b), inline("in", "1"))
	p := w.start("--stdin", all)
	p.told(w.updated(a, "1", "EAST"), w.updated(b, "1", "WEST"), w.inlined(in, "1", "EAST"), complete(all))

	// One that cannot be had hides no other.
	w.list(w.east, all, located(b), inline("in", "2"), located(lost))
	line := p.skipTo(about("error", lost))
	if !strings.Contains(line, `"kind":"config"`) || !strings.Contains(line, `authority \"north\" is not in the bootstrap`) {
		t.Errorf("printed %s", line)
	}
	p.enter("unwatch " + all)
	w.awaitIdle()
}

// awaitIdle waits until no stream is open at the servers.
func (w *world) awaitIdle() {
	w.t.Helper()
	for _, s := range []*testutil.CollectionServer{w.east, w.west} {
		if err := s.Await(patient(w.t), func(c testutil.Counters) bool { return c.Open == 0 }); err != nil {
			w.t.Fatal(err)
		}
	}
}

// What a list leaves out is removed, and so is all of one that is removed itself.
func TestListRemoved(t *testing.T) {
	t.Parallel()
	w := newWorld(t, delta)
	all, a := listAt("east", "l"), at("east", "a")
	in := all + "#entry=in"
	w.set(w.east, a, "1")
	w.list(w.east, all, located(a), inline("in", "1"))
	p := w.start(all)
	p.told(w.inlined(in, "1", "EAST"), w.updated(a, "1", "EAST"), complete(all))
	w.list(w.east, all, located(a))
	p.told(gone(in, "removed"))
	w.east.Remove(clusters+"Collection", all)
	p.told(gone(a, "removed"), gone(all, "removed"))
}

// With --once a list has its first answer when it is synced, also without members, or does
// not exist.
func TestListOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, delta)
	empty, none := listAt("east", "empty"), listAt("west", "none")
	w.list(w.east, empty)
	p := w.start("--once", empty)
	p.told(complete(empty))
	p.ends(0)
	p = w.start("--once", empty, none)
	p.told(complete(empty), gone(none, "removed"))
	p.ends(3)
}

// A redirect is followed into other authorities and says where it leads.
func TestRedirect(t *testing.T) {
	t.Parallel()
	w := newWorld(t, delta)
	a, b := at("east", "a"), at("west", "b")
	w.redirect(w.east, a, b)
	w.set(w.west, b, "1")
	p := w.start("--stdin", a)
	p.told(from(w.updated(a, "1", "WEST"), a, b))
	p.enter("dump")
	if dump := p.skipTo(`"event":"dump"`); !strings.Contains(dump, fmt.Sprintf(`"name":%q,"authority":"east","status":"ACKED"`, a)) ||
		!strings.Contains(dump, fmt.Sprintf(`"redirect":%q}`, b)) {
		t.Errorf("dump %s", dump)
	}
	w.set(w.east, a, "2") // a real one in its place
	p.told(w.updated(a, "2", "EAST"))
	w.redirect(w.east, a, a)
	if line := p.skipTo(`"error":{`); !strings.Contains(line, `"kind":"data"`) || !strings.Contains(line, "ring") {
		t.Errorf("printed %s", line)
	}
	p.enter("unwatch " + a)
	w.awaitIdle()
}

// The entry of a list is one resource.
func TestEntry(t *testing.T) {
	t.Parallel()
	w := newWorld(t, delta)
	all := listAt("east", "l")
	in, none := all+"#entry=in", all+"#entry=none"
	w.list(w.east, all, inline("in", "1"))
	p := w.start("--stdin", "--once", in, none)
	p.told(w.inlined(in, "1", "EAST"), gone(none, "not-found"))
	p.ends(3)

	p = w.start("--stdin", in)
	p.told(w.inlined(in, "1", "EAST"))
	p.enter("dump")
	dump := updated.ReplaceAllString(p.skipTo(`"event":"dump"`), `"updated":"TIME"`)
	if want := fmt.Sprintf(`{"type":%q,"name":%q,"authority":"east","status":"ACKED","version":"1","server":"EAST","updated":"TIME","error":null}]}`, clusters, in); !strings.HasSuffix(dump, want) {
		t.Errorf("dump %s\nwant …%s", dump, want)
	}
	p.enter("unwatch " + in)
	w.awaitIdle()
}

// The alternative serves while the server is away and nothing is held, and gives back.
func TestAlternative(t *testing.T) {
	t.Parallel()
	w := newWorld(t, delta)
	a, b := at("east", "a"), at("west", "b")
	name := a + "#alt=" + b
	w.set(w.west, b, "1")
	w.set(w.east, a, "2")
	w.east.Stop()
	once := w.start("--once", name)
	once.skipTo(from(w.updated(name, "1", "WEST"), name, b))
	once.ends(0)
	p := w.start("--stdin", name)
	p.skipTo(from(w.updated(name, "1", "WEST"), name, b))
	p.enter("dump")
	state := fmt.Sprintf(`{"type":%q,"name":%q,"authority":"east","status":"ACKED","version":"1","server":"WEST"`, clusters, name)
	if dump := p.skipTo(`"event":"dump"`); !strings.Contains(dump, state) {
		t.Errorf("dump %s\nwant %s", dump, state)
	}
	if err := w.east.Restart(); err != nil {
		t.Fatal(err)
	}
	p.skipTo(strings.Replace(w.updated(name, "2", "EAST"), fmt.Sprintf(`{"name":%q`, name), fmt.Sprintf(`{"name":%q`, a), 1))
	p.enter("unwatch " + name)
	w.awaitIdle()
}

// What cannot be followed is an error of the subscription, whose type is told where its
// name has one.
func TestBadDirectives(t *testing.T) {
	t.Parallel()
	w := newWorld(t, delta)
	for name, want := range map[string]string{
		at("east", "a") + "#entri=x":                 "neither alt= nor entry=",
		at("east", "a") + "#entry=x":                 "its type segment is another type",
		at("east", "a") + "#alt=" + at("north", "a"): `authority \"north\" is not in the bootstrap`,
		at("east", "*") + "#entry=x":                 "it has a fragment",
		listAt("north", "l"):                         `authority \"north\" is not in the bootstrap`,
		listAt("east", "*"):                          "it is both a list collection and a glob",
	} {
		p := w.start("--once", name)
		line := p.next()
		if !strings.HasPrefix(line, about("error", name)+`,"error":{"kind":"config"`) || !strings.Contains(line, want) {
			t.Errorf("%s: %s\nwant %q", name, line, want)
		}
		p.ends(3)
	}
}
