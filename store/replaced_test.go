package store

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/xdswatch/xdswatch/client"
)

// Somebody clears a directory, or moves it away, while a process writes to it. What the process saves then is
// there, and so is what it has saved before.
//
// spec: LKG-7
func TestReplacedDirectory(t *testing.T) {
	for what, replace := range map[string]func(path string) error{
		"the files are removed":     func(path string) error { return errors.Join(os.RemoveAll(path), os.Mkdir(path, 0o700)) },
		"the directory is removed":  os.RemoveAll,
		"it is moved away":          func(path string) error { return os.Rename(path, path+"-old") },
		"the file alone is removed": func(path string) error { return os.Remove(files(t, path)[0]) },
	} {
		path := filepath.Join(t.TempDir(), "store")
		d := Dir(path, Options{})
		must(t, d.Save(clusters, []client.StoredResource{put("a", "1"), put("b", "1"), put("c", "1")}))
		must(t, replace(path))
		must(t, d.Save(clusters, []client.StoredResource{put("b", "2"), {Name: "c"}}))
		want := map[string]string{"a": "1", "b": "2"}
		got, err := held(t, path, Options{})
		must(t, err)
		same(t, what, got, want)
		err = Dir(path, Options{}).Save(clusters, []client.StoredResource{put("a", "3")})
		if !errors.Is(err, ErrInUse) {
			t.Errorf("%s: another process may write: %v", what, err)
		}
		must(t, d.Save(clusters, []client.StoredResource{put("d", "1")}))
		must(t, d.Close())
		want["d"] = "1"
		got, err = held(t, path, Options{})
		must(t, err)
		same(t, what+", later", got, want)
	}
}

// A process whose directory was replaced while another one writes there leaves the other's file alone, and goes on with it
// when the other is gone.
//
// spec: LKG-7
func TestReplacedByAnother(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store")
	d, other := Dir(path, Options{}), Dir(path, Options{})
	must(t, d.Save(clusters, []client.StoredResource{put("a", "1")}))
	must(t, os.Rename(path, path+"-old"))
	must(t, other.Save(clusters, []client.StoredResource{put("a", "2"), put("b", "2")}))
	if err := d.Save(clusters, []client.StoredResource{put("c", "1")}); !errors.Is(err, ErrInUse) || !errors.Is(err, client.ErrNotSaved) {
		t.Errorf("beside another process: %v, want that it is in use", err)
	}
	must(t, other.Close())
	must(t, d.Save(clusters, []client.StoredResource{put("c", "1")}))
	must(t, d.Close())
	got, err := held(t, path, Options{})
	must(t, err)
	same(t, "after both", got, map[string]string{"a": "2", "b": "2", "c": "1"})
}

// Somebody removes the lock, so that two processes write by turns. What each saves is there, as it was saved last.
//
// spec: LKG-7
func TestRemovedLock(t *testing.T) {
	path, want := t.TempDir(), map[string]string{}
	one, two := Dir(path, Options{}), Dir(path, Options{})
	save := func(d *Directory, name, value string) {
		t.Helper()
		must(t, d.Save(clusters, []client.StoredResource{put(name, value), put("both", value)}))
		want[name], want["both"] = value, value
		got, err := held(t, path, Options{})
		must(t, err)
		same(t, "held after "+value, got, want)
	}
	save(one, "a", "1")
	must(t, os.Remove(filepath.Join(path, "lock")))
	save(two, "b", "2")
	if err := one.Save(clusters, []client.StoredResource{put("a", "3")}); !errors.Is(err, ErrInUse) {
		t.Errorf("both may write: %v", err)
	}
	must(t, two.Close())
	save(one, "c", "4")
	got, err := loaded(one, nil)
	must(t, err)
	same(t, "held by the process that writes", got, want)
	must(t, one.section(clusters).shrink())
	save(one, "d", "5")
	must(t, one.Close())
}
