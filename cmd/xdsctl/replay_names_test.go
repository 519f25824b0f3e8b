package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/xdswatch/xdswatch/cmd/xdsctl/internal/recording"
	"github.com/xdswatch/xdswatch/testutil"
)

// atReplay is a bootstrap whose authorities are all at one server.
func atReplay(t *testing.T, address, features string) string {
	t.Helper()
	return file(t, "grpc.json", fmt.Sprintf(`{
		"xds_servers": [{"server_uri": %q, "channel_creds": [{"type": "insecure"}], "server_features": [%s]}],
		"node": {"id": "me"}, "authorities": {"east": {}, "west": {}}
	}`, address, features))
}

// got is what `xdsctl get` prints of subscriptions, without what differs from run to run.
func got(t *testing.T, boot string, subs ...string) string {
	t.Helper()
	status, out, errs := runOnce(t, append([]string{"get", "--bootstrap", boot, "-o", "json", "--resource-timeout", "5s"}, subs...)...)
	if status != 0 {
		t.Fatalf("status %d, %s%s", status, out, errs)
	}
	var items []map[string]any
	if err := json.Unmarshal([]byte(out), &items); err != nil {
		t.Fatal(err)
	}
	for _, it := range items {
		for _, key := range []string{"updated", "server", "version"} {
			delete(it, key)
		}
	}
	text, _ := json.MarshalIndent(items, "", " ")
	return string(text)
}

// Globs, lists, redirects and aliases are served as they were recorded, in both variants, whatever was
// recorded; heartbeats keep what has a time to live.
func TestReplayStructured(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("records and replays in four ways")
	}
	s := testutil.StartCollectionServer(t)
	w := &world{t: t}
	for _, name := range []string{at("east", "p/a"), at("east", "p/b"), at("east", "c"), at("west", "q"), "old"} {
		w.set(s, name, "1")
	}
	w.set(s, "brief", "1", func(r *discoveryv3.Resource) { r.Ttl = durationpb.New(2 * time.Second) })
	list := listAt("east", "l")
	w.list(s, list, located(at("east", "p/a")), located(at("west", "q")), inline("in", "1"))
	w.redirect(s, at("east", "r"), at("west", "q"))
	w.redirect(s, at("east", "r2"), at("west", "q"))
	subs := []string{at("east", "p/*"), list, at("east", "r"), at("east", "r2"), "cds:old"}
	for _, recorded := range []string{"", delta} {
		path := filepath.Join(t.TempDir(), "r.jsonl")
		want := got(t, atReplay(t, s.Addr(), recorded), subs...)
		frames, stop := startRecord(t, path, append([]string{"--bootstrap", atReplay(t, s.Addr(), recorded), "cds:brief", at("east", "none/*")}, subs...)...)
		until(t, "requests for what is elsewhere", func() bool {
			asked := ""
			for _, f := range frames() {
				if f.Direction == recording.Request {
					asked += string(f.Message)
				}
			}
			return strings.Contains(asked, at("west", "q")) && strings.Contains(asked, at("east", "p/a"))
		})
		if err := s.Settle(patient(t)); err != nil {
			t.Fatal(err)
		}
		stop()
		if status, out, errs := runOnce(t, "diff", path, path); status != 0 {
			t.Errorf("%s: diff: status %d, %s%s", recorded, status, out, errs)
		}
		p, address := startReplay(t, "--speed", "0", path)
		for _, replayed := range []string{"", delta} {
			boot := atReplay(t, address, replayed)
			c := startHiding(t, strings.NewReplacer(), "--bootstrap", boot, "-o", "json", "--for", "2500ms", "cds:brief")
			if have := got(t, boot, subs...); have != want {
				t.Errorf("%q as %q:\n%s\nwant\n%s", recorded, replayed, have, want)
			}
			if have := got(t, boot, at("east", "none/*")); have != "[]" {
				t.Errorf("%q as %q: an empty glob has %s", recorded, replayed, have)
			}
			c.ends(0)
			for line := range c.lines {
				if strings.Contains(line, "does-not-exist") {
					t.Errorf("%q as %q: %s", recorded, replayed, line)
				}
			}
		}
		if errs := p.stderr.String(); errs != "" {
			t.Errorf("%s: %s", recorded, errs)
		}
	}
}

// What becomes a member of a glob, and what is none any more, is told to who subscribes to it, and who
// subscribes again is given it again.
func TestReplayGlobChanges(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("files are looked at every 100 ms")
	}
	dir := t.TempDir()
	place := func(names ...string) {
		t.Helper()
		m := testutil.SotW("", "", "")
		for _, name := range names {
			m.Resources = append(m.Resources, packed(cluster(name)))
		}
		path := filepath.Join(dir, "c.yaml")
		b, err := testutil.EncodeFile(path, m)
		if err == nil {
			err = testutil.PlaceFile(path, b)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	glob, a, b := at("east", "p/*"), at("east", "p/a"), at("east", "p/b")
	for _, features := range []string{"", delta} {
		place(a)
		p, address := startReplay(t, dir)
		p.state()
		c := startHiding(t, strings.NewReplacer(), "--bootstrap", atReplay(t, address, features), "-o", "json", "--stdin", glob)
		c.skipTo(fmt.Sprintf(`"event":"update","type":%q,"name":%q`, clusters, a))
		c.skipTo(`"synced"`)
		place(a, b)
		c.skipTo(fmt.Sprintf(`"event":"update","type":%q,"name":%q`, clusters, b))
		place(b)
		c.skipTo(fmt.Sprintf(`"event":"does-not-exist","type":%q,"name":%q`, clusters, a))
		c.enter("unwatch " + glob)
		c.enter("watch " + at("east", "p/b"))
		c.skipTo(`"update"`)
		c.enter("unwatch " + at("east", "p/b"))
		c.enter("watch " + glob)
		c.skipTo(fmt.Sprintf(`"event":"update","type":%q,"name":%q`, clusters, b))
		c.skipTo(`"synced"`)
		c.enter("quit")
		c.ends(0)
		p.stop()
		<-p.status
	}
}

// A wildcard that is named on the wire has everything, alone and beside names and globs, in both variants, and
// the server repeats nothing.
func TestReplayNamedWildcard(t *testing.T) {
	t.Parallel()
	a, b, glob := at("east", "p/a"), at("east", "b"), at("east", "p/*")
	path := filepath.Join(t.TempDir(), "c.yaml")
	text, err := testutil.EncodeFile(path, testutil.SotW("", "", "", cluster("old"), cluster(a), cluster(b)))
	if err == nil {
		err = testutil.PlaceFile(path, text)
	}
	if err != nil {
		t.Fatal(err)
	}
	_, address := startReplay(t, path)
	want := []string{"cds:old", b, a}
	for _, features := range []string{"", delta} {
		for _, subs := range [][]string{{"cds:*"}, {"cds", a}, {"cds", glob}, {"cds:*", glob, b}} {
			args := append([]string{"get", "--bootstrap", atReplay(t, address, features), "-o", "name", "--resource-timeout", "5s"}, subs...)
			status, out, errs := runOnce(t, args...)
			if have := strings.Fields(out); status != 0 || !slices.Equal(have, want) || errs != "" {
				t.Errorf("%q, %v: status %d, %q, want %q; %s", features, subs, status, have, want, errs)
			}
		}
	}
}

// A list in a file has all its entries.
func TestReplayListOfFile(t *testing.T) {
	t.Parallel()
	name := listAt("east", "l")
	list := func(entries ...string) string {
		text := ""
		for _, e := range entries {
			text += `  - inlineEntry: {name: ` + e + `, version: "1", resource: {"@type": ` + clusters + `, name: ` + e + "}}\n"
		}
		return file(t, "l.yaml", `"@type": type.googleapis.com/envoy.service.discovery.v3.Resource
name: `+name+`
resource:
  "@type": type.googleapis.com/envoy.config.cluster.v3.ClusterCollection
  entries:
`+text)
	}
	_, address := startReplay(t, list("a", "b"))
	status, out, errs := runOnce(t, "get", "--bootstrap", atReplay(t, address, delta), "-o", "name", name)
	if want := name + "#entry=a\n" + name + "#entry=b\n"; status != 0 || out != want {
		t.Errorf("status %d, %s%s", status, out, errs)
	}
	if status, out, errs := runOnce(t, "diff", list("a", "b"), list("c", "b")); status != 3 || !strings.Contains(out, `"a"`) {
		t.Errorf("diff: status %d, %s%s", status, out, errs)
	}
}
