package store

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/xdswatch/xdswatch/client"
)

// limited is a disk on which the files of a directory may have so many bytes.
type limited struct {
	osDisk
	dir  string
	most int64
}

func (l limited) create(path string) (file, error) {
	f, err := l.osDisk.create(path)
	return limitedFile{f, l}, err
}

func (l limited) extend(path string) (file, error) {
	f, err := l.osDisk.extend(path)
	return limitedFile{f, l}, err
}

type limitedFile struct {
	file
	limited
}

func (f limitedFile) Write(b []byte) (int, error) {
	room := f.most
	entries, err := os.ReadDir(f.dir)
	for _, e := range entries {
		info, infoErr := e.Info()
		if err = errors.Join(err, infoErr); err != nil {
			break
		}
		room -= info.Size()
	}
	if err != nil {
		return 0, err
	}
	n, err := f.file.Write(b[:min(int64(len(b)), room)])
	if err == nil && n < len(b) {
		err = syscall.ENOSPC
	}
	return n, err
}

// What a full disk has no room for takes none, and smaller changes are saved.
//
// spec: LKG-7
func TestFullDisk(t *testing.T) {
	path, value := t.TempDir(), strings.Repeat("x", 1000)
	d := Dir(path, Options{})
	d.disk = limited{dir: path, most: 2800}
	must(t, d.Save(clusters, []client.StoredResource{put("a", value)}))
	err := d.Save(clusters, []client.StoredResource{put("a", strings.Repeat(value, 8)), put("b", "1")})
	if !errors.Is(err, client.ErrNotSaved) || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("error is %v, want that there is no room", err)
	}
	for _, r := range []client.StoredResource{put("c", "1"), put("d", value), {Name: "c"}} {
		must(t, d.Save(clusters, []client.StoredResource{r}))
	}
	must(t, d.Close())
	got, err := held(t, path, Options{})
	must(t, err)
	same(t, "held", got, map[string]string{"a": value, "d": value})
}

// Where there is no room for the whole file anew, changes that fit are saved all the same, by the next process too.
//
// spec: LKG-7
func TestWastefulFileOnFullDisk(t *testing.T) {
	path := t.TempDir()
	save := func(d *Directory, changes ...client.StoredResource) {
		t.Helper()
		d.disk = limited{dir: path, most: 2_700_000}
		if err := d.Save(clusters, changes); errors.Is(err, client.ErrNotSaved) {
			t.Errorf("error is %v, want that all is saved", err)
		}
	}
	d := Dir(path, Options{})
	save(d, put("a", strings.Repeat("x", 600_000)))
	for i := range 20 { // more than a mebibyte is outdated then
		save(d, put("b", strings.Repeat(string(rune('a'+i)), 100_000)))
	}
	save(d, put("c", "1"))
	must(t, d.Close())
	save(Dir(path, Options{}), put("c", "2"), client.StoredResource{Name: "b"})
	got, err := held(t, path, Options{})
	must(t, err)
	same(t, "held", got, map[string]string{"a": strings.Repeat("x", 600_000), "c": "2"})
}

// What a process that was killed has written in part is cut off, and takes no room for the whole file anew.
//
// spec: LKG-7
func TestTornTailOnFullDisk(t *testing.T) {
	path, value := t.TempDir(), strings.Repeat("x", 1000)
	d := Dir(path, Options{})
	must(t, d.Save(clusters, []client.StoredResource{put("a", value)}))
	must(t, d.Save(clusters, []client.StoredResource{put("b", value)}))
	must(t, d.Close())
	name := files(t, path)[0]
	info, err := os.Stat(name)
	must(t, err)
	must(t, os.Truncate(name, info.Size()-100))
	d = Dir(path, Options{})
	d.disk = limited{dir: path, most: info.Size()}
	if err := d.Save(clusters, []client.StoredResource{put("c", "1")}); !errors.As(err, new(*DamageError)) || errors.Is(err, client.ErrNotSaved) {
		t.Errorf("error is %v, want that a record was damaged", err)
	}
	must(t, d.Save(clusters, []client.StoredResource{put("d", "1")}))
	must(t, d.Close())
	got, err := held(t, path, Options{})
	must(t, err)
	same(t, "held", got, map[string]string{"a": value, "c": "1", "d": "1"})
}
