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
