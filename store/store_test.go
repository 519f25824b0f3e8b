package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/xdswatch/xdswatch/client"
)

var clusters = client.StoreSection{Type: "type.googleapis.com/envoy.config.cluster.v3.Cluster", Authority: "#old", Node: "n"}

func put(name, value string) client.StoredResource {
	return client.StoredResource{Name: name, Resource: []byte(value), Server: "s", Updated: time.Unix(1, 0)}
}

// held is what a directory has of a section, as a process that starts sees it.
func held(t *testing.T, path string, o Options) (map[string]string, error) {
	t.Helper()
	return loaded(Dir(path, o), nil)
}

func loaded(d *Directory, names []string) (map[string]string, error) {
	got := map[string]string{}
	err := d.Load(clusters, names, func(r client.StoredResource) { got[r.Name] = string(r.Resource) })
	return got, err
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func same[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func files(t *testing.T, path string) (names []string) {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(path, "*"+suffix))
	must(t, err)
	return all
}

// spec: LKG-2 LKG-7
func TestKeepsAndForgets(t *testing.T) {
	path := filepath.Join(t.TempDir(), "xds")
	d := Dir(path, Options{})
	got, err := loaded(d, nil)
	must(t, err)
	same(t, "before anything is saved", got, map[string]string{})

	expires := time.Now().Add(time.Hour).Round(0)
	b := put("b", "1")
	b.Expires = expires
	must(t, d.Save(clusters, []client.StoredResource{put("a", "1"), b, put("c", "1")}))
	must(t, d.Save(clusters, []client.StoredResource{put("a", "2"), {Name: "c"}, {Name: "unknown"}}))
	other := clusters
	other.Scope = "x"
	must(t, d.Save(other, []client.StoredResource{put("a", "of x")}))

	for _, d := range []*Directory{d, Dir(path, Options{})} {
		got, err = loaded(d, nil)
		must(t, err)
		same(t, "all", got, map[string]string{"a": "2", "b": "1"})
		got, err = loaded(d, []string{"a", "c", "z"})
		must(t, err)
		same(t, "by name", got, map[string]string{"a": "2"})
		names, err := d.Names(clusters)
		must(t, err)
		slices.Sort(names)
		same(t, "names", names, []string{"a", "b"})
		must(t, d.Load(clusters, []string{"b"}, func(r client.StoredResource) {
			same(t, "all of b", r, client.StoredResource{Name: "b", Resource: []byte("1"), Server: "s", Updated: time.Unix(1, 0), Expires: time.Unix(0, expires.UnixNano())})
		}))
	}
	info, err := os.Stat(path)
	must(t, err)
	same(t, "mode of the directory", info.Mode().Perm(), 0o700)
	if len(files(t, path)) != 2 {
		t.Errorf("files are %v, want one for each section", files(t, path))
	}
	for _, f := range files(t, path) {
		info, err := os.Stat(f)
		must(t, err)
		same(t, "mode of "+f, info.Mode().Perm(), 0o600)
	}
}

// What a killed process left half written is removed by the next that writes, and nothing else.
//
// spec: LKG-7
func TestLeftovers(t *testing.T) {
	path := t.TempDir()
	must(t, os.Mkdir(filepath.Join(path, tempPrefix+"directory"), 0o700))
	for _, name := range []string{tempPrefix + "left" + suffix, tempPrefix + "x", "notes", "x" + tempPrefix} {
		must(t, os.WriteFile(filepath.Join(path, name), []byte("x"), 0o600))
	}
	list := func() (names []string) {
		entries, err := os.ReadDir(path)
		must(t, err)
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return names
	}
	before := list()
	d := Dir(path, Options{})
	_, err := loaded(d, nil)
	must(t, err)
	same(t, "after reading alone", list(), before)
	must(t, d.Save(clusters, []client.StoredResource{put("a", "1")}))
	must(t, d.Close())
	own := filepath.Base(files(t, path)[0])
	left := slices.DeleteFunc(list(), func(name string) bool { return name == own || name == "lock" })
	same(t, "after writing", left, []string{tempPrefix + "directory", tempPrefix + "x", "notes", "x" + tempPrefix})
}

// spec: LKG-7
func TestOneProcessWrites(t *testing.T) {
	path := t.TempDir()
	old, young := Dir(path, Options{}), Dir(path, Options{})
	must(t, old.Save(clusters, []client.StoredResource{put("a", "1")}))
	err := young.Save(clusters, []client.StoredResource{put("a", "2")})
	if !errors.Is(err, ErrInUse) || !errors.Is(err, client.ErrNotSaved) {
		t.Errorf("error is %v, want that it is in use and nothing was saved", err)
	}
	got, err := loaded(young, nil)
	must(t, err)
	same(t, "loaded beside the other", got, map[string]string{"a": "1"})
	must(t, old.Save(clusters, []client.StoredResource{put("b", "1")}))
	must(t, old.Close())
	must(t, young.Save(clusters, []client.StoredResource{put("a", "2")}))
	got, err = loaded(young, nil)
	must(t, err)
	same(t, "after both", got, map[string]string{"a": "2", "b": "1"})
	must(t, young.Close())
}

// A change costs about what changed, and what is outdated does not pile up.
//
// spec: LKG-9
func TestChangesTakeWhatChanged(t *testing.T) {
	path := t.TempDir()
	d := Dir(path, Options{})
	d.disk = unsynced{}
	var all []client.StoredResource
	value := strings.Repeat("x", 1000)
	for i := range 1000 {
		all = append(all, put(fmt.Sprint(i), value))
	}
	must(t, d.Save(clusters, all))
	size := func() int64 {
		info, err := os.Stat(files(t, path)[0])
		must(t, err)
		return info.Size()
	}
	first := size()
	must(t, d.Save(clusters, all))
	same(t, "bytes for what is unchanged", size()-first, 0)
	must(t, d.Save(clusters, []client.StoredResource{put("1", "new")}))
	if grown := size() - first; grown > 100 {
		t.Errorf("a change of three bytes took %d", grown)
	}
	must(t, d.Close())

	d = Dir(path, Options{}) // the next process
	d.disk = unsynced{}
	before := size()
	all[1] = put("1", "new")
	must(t, d.Save(clusters, all))
	if grown := size() - before; grown > 300 {
		t.Errorf("to say that %d are still good took %d bytes", len(all), grown)
	}
	for i := range 10 {
		for j := range all {
			all[j] = put(all[j].Name, fmt.Sprint(i)+value)
		}
		must(t, d.Save(clusters, all))
	}
	if now := size(); now > 3*first+slack {
		t.Errorf("the file has %d bytes for %d", now, first)
	}
	got, err := held(t, path, Options{})
	must(t, err)
	if len(got) != len(all) || got["7"] != "9"+value {
		t.Errorf("%d are held, want %d", len(got), len(all))
	}
}

// spec: LKG-6
func TestAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := t.TempDir()
		d := Dir(path, Options{})
		must(t, d.Save(clusters, []client.StoredResource{put("old", "1"), put("again", "1"), put("b", "1")}))
		time.Sleep(4 * 24 * time.Hour)
		must(t, d.Save(clusters, nil)) // all is still good
		must(t, d.Close())

		d = Dir(path, Options{})
		time.Sleep(4 * 24 * time.Hour)
		must(t, d.Save(clusters, []client.StoredResource{put("again", "1"), put("b", "2")}))
		got, err := held(t, path, Options{})
		must(t, err)
		same(t, "four days after it was good", got, map[string]string{"old": "1", "again": "1", "b": "2"})
		time.Sleep(4 * 24 * time.Hour)
		must(t, d.Save(clusters, nil))
		got, err = held(t, path, Options{})
		must(t, err)
		same(t, "after eight", got, map[string]string{"again": "1", "b": "2"})
		got, err = held(t, path, Options{MaxAge: -1})
		must(t, err)
		same(t, "without a bound", len(got), 3)
		must(t, d.Close())
	})
}

// A file in which nothing can be good any more is removed, whatever section it is of.
//
// spec: LKG-6
func TestOldFiles(t *testing.T) {
	path, others := t.TempDir(), clusters
	others.Authority = "gone"
	d := Dir(path, Options{})
	must(t, d.Save(others, []client.StoredResource{put("a", "1")}))
	must(t, d.Close())
	eight := time.Now().Add(-8 * 24 * time.Hour)
	must(t, os.Chtimes(files(t, path)[0], eight, eight))
	for _, tt := range []struct {
		options Options
		want    int
	}{{Options{MaxAge: -1}, 2}, {Options{}, 1}} {
		d := Dir(path, tt.options)
		must(t, d.Save(clusters, []client.StoredResource{put("a", "1")}))
		must(t, d.Close())
		same(t, "files", len(files(t, path)), tt.want)
	}
}

// spec: LKG-7
func TestFull(t *testing.T) {
	path := t.TempDir()
	d := Dir(path, Options{MaxSize: 3000})
	value := strings.Repeat("x", 1000)
	var full *FullError
	err := d.Save(clusters, []client.StoredResource{put("a", value), put("b", value), put("c", value)})
	if !errors.As(err, &full) || full.Resources != 1 {
		t.Errorf("error is %v, want that one has no room", err)
	}
	err = d.Save(clusters, []client.StoredResource{put("a", "1"), put("b", value+value+value)})
	if !errors.As(err, &full) {
		t.Errorf("error is %v, want that one has no room", err)
	}
	got, err := held(t, path, Options{})
	must(t, err)
	same(t, "held", got, map[string]string{"a": "1"})
}

// spec: LKG-7 LKG-3
func TestDamage(t *testing.T) {
	whole := func() (string, []byte) {
		path := t.TempDir()
		d := Dir(path, Options{})
		must(t, d.Save(clusters, []client.StoredResource{put("a", "1"), put("b", "1"), put("c", "1")}))
		must(t, d.Save(clusters, []client.StoredResource{put("b", "2"), {Name: "c"}}))
		must(t, d.Close())
		b, err := os.ReadFile(files(t, path)[0])
		must(t, err)
		return path, b
	}
	accepted := map[string][]string{"a": {"1"}, "b": {"1", "2"}, "c": {"1"}}
	check := func(what, path string, got map[string]string) {
		for name, value := range got {
			if !slices.Contains(accepted[name], value) {
				t.Errorf("%s: %s is %q, which nobody accepted", what, name, value)
			}
		}
		// Whoever writes next repairs it.
		d := Dir(path, Options{})
		d.disk = unsynced{}
		if err := d.Save(clusters, []client.StoredResource{put("new", "1")}); errors.Is(err, client.ErrNotSaved) {
			t.Fatalf("%s: %v", what, err)
		}
		must(t, d.Close())
		again, err := held(t, path, Options{})
		if err != nil || again["new"] != "1" {
			t.Errorf("%s: after a save there is %v, %v", what, again, err)
		}
	}
	path, b := whole()
	step := 1
	if testing.Short() {
		step = 3
	}
	for n := 0; n < len(b); n += step {
		must(t, os.WriteFile(files(t, path)[0], b[:n], 0o600))
		got, err := held(t, path, Options{})
		if err == nil && n > 0 && len(got) < 1 && n > 400 {
			t.Errorf("cut after %d bytes: no error, and nothing", n)
		}
		if n%7 == 0 {
			check(fmt.Sprintf("cut after %d", n), path, got)
		}
	}
	for i := 0; i < len(b); i += step {
		broken := slices.Clone(b)
		broken[i] ^= 0x55
		must(t, os.WriteFile(files(t, path)[0], broken, 0o600))
		got, err := held(t, path, Options{})
		if err == nil {
			t.Errorf("byte %d changed: no error", i)
		}
		if i%7 == 0 {
			check(fmt.Sprintf("byte %d changed", i), path, got)
		}
	}
	for what, content := range map[string][]byte{
		"another program's": []byte("#!/bin/sh\necho hello\n"), "nothing": {}, "a lot of nothing": make([]byte, 1<<16),
	} {
		must(t, os.WriteFile(files(t, path)[0], content, 0o600))
		got, err := held(t, path, Options{})
		if len(got) > 0 || err == nil && len(content) > 0 {
			t.Errorf("%s file: %v, %v", what, got, err)
		}
		check(what, path, got)
	}
	file := files(t, path)[0]
	must(t, os.Remove(file))
	must(t, os.Symlink("/dev/zero", file))
	got, err := held(t, path, Options{})
	if len(got) > 0 || err == nil {
		t.Errorf("a link: %v, %v", got, err)
	}
}

// A file of another section under the name of this one holds nothing.
//
// spec: LKG-9 LKG-7
func TestForeignSection(t *testing.T) {
	path := t.TempDir()
	d := Dir(path, Options{})
	other := clusters
	other.Node = "another"
	must(t, d.Save(other, []client.StoredResource{put("a", "1")}))
	must(t, d.Close())
	must(t, os.Rename(filepath.Join(path, fileName(other)), filepath.Join(path, fileName(clusters))))
	got, err := held(t, path, Options{})
	var foreign *ForeignError
	if len(got) > 0 || !errors.As(err, &foreign) {
		t.Errorf("%v, %v", got, err)
	}
}

// An empty file is none that the store wrote: what it held is lost, which somebody is told, and it is
// replaced by what there is to keep.
//
// spec: LKG-7
func TestEmptyFile(t *testing.T) {
	path := t.TempDir()
	must(t, os.WriteFile(filepath.Join(path, fileName(clusters)), nil, 0o600))
	var foreign *ForeignError
	if got, err := held(t, path, Options{}); len(got) > 0 || !errors.As(err, &foreign) {
		t.Errorf("%v, %v", got, err)
	}
	d := Dir(path, Options{})
	must(t, errors.Join(ignore[*ForeignError](d.Save(clusters, []client.StoredResource{put("a", "1")})), d.Close()))
	if got, err := held(t, path, Options{}); len(got) != 1 || err != nil {
		t.Errorf("after a save: %v, %v", got, err)
	}
}
