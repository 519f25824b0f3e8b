package store

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/xdswatch/xdswatch/client"
)

// noting is a disk that notes what is done, in order.
type noting struct {
	osDisk
	done *[]string
}

func (n noting) note(what string) { *n.done = append(*n.done, what) }

func (n noting) create(path string) (file, error) {
	n.note("create " + kindOf(path))
	f, err := n.osDisk.create(path)
	return notingFile{f, n}, err
}

func (n noting) extend(path string) (file, error) {
	n.note("extend " + kindOf(path))
	f, err := n.osDisk.extend(path)
	return notingFile{f, n}, err
}

func (n noting) rename(from, to string) error {
	n.note("rename " + kindOf(from) + " to " + kindOf(to))
	return n.osDisk.rename(from, to)
}

func (n noting) syncDir(path string) error {
	n.note("sync directory")
	return n.osDisk.syncDir(path)
}

// kindOf tells a file of the store from one that is being made.
func kindOf(path string) string {
	if strings.HasPrefix(filepath.Base(path), tempPrefix) {
		return "new"
	}
	return "file"
}

type notingFile struct {
	file
	noting
}

func (f notingFile) Write(b []byte) (int, error) { f.note("write"); return f.file.Write(b) }
func (f notingFile) Sync() error                 { f.note("sync"); return f.file.Sync() }

// A new file is whole and on disk before it has its name, and the name is before it counts; what is appended
// is on disk before Save returns.
//
// spec: LKG-7
func TestSyncs(t *testing.T) {
	var done []string
	d := Dir(t.TempDir(), Options{})
	d.disk = noting{done: &done}
	defer d.Close()
	for _, want := range []string{
		"create new, write, sync, rename new to file, sync directory, extend file, write, sync",
		"write, sync",
	} {
		done = nil
		must(t, d.Save(clusters, []client.StoredResource{put("a", want)}))
		if got := strings.Join(done, ", "); got != want {
			t.Errorf("a save does\n%s, want\n%s", got, want)
		}
	}
}
