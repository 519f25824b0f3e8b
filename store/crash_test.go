package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/xdswatch/xdswatch/client"
)

// errDead is what everything fails with after a crash.
var errDead = errors.New("the process is dead")

// tear is after how many bytes a write may be torn: all of them would take seconds.
const tear = 9

// crashing is a disk of a process that dies after so many steps: an operation is one, and each few
// bytes that are written are another.
type crashing struct {
	left int
	osDisk
}

func (c *crashing) step(n int) (done int, err error) {
	if done = min(n, c.left); done < n {
		err = errDead
	}
	c.left -= done
	return done, err
}

func (c *crashing) create(path string) (file, error) {
	if _, err := c.step(1); err != nil {
		return nil, err
	}
	f, err := c.osDisk.create(path)
	return crashingFile{c, f}, err
}

func (c *crashing) extend(path string) (file, error) {
	if _, err := c.step(1); err != nil {
		return nil, err
	}
	f, err := c.osDisk.extend(path)
	return crashingFile{c, f}, err
}

func (c *crashing) rename(from, to string) error {
	if _, err := c.step(1); err != nil {
		return err
	}
	return os.Rename(from, to)
}

func (c *crashing) syncDir(path string) error {
	_, err := c.step(1)
	return err
}

type crashingFile struct {
	c *crashing
	file
}

func (f crashingFile) Write(b []byte) (int, error) {
	n, dead := f.c.step((len(b) + tear - 1) / tear)
	if n = min(n*tear, len(b)); dead != nil {
		n = max(n-tear/2, 0)
	}
	if _, err := f.file.Write(b[:n]); err != nil {
		return 0, err
	}
	return n, dead
}

func (f crashingFile) Truncate(size int64) error {
	if _, err := f.c.step(1); err != nil {
		return err
	}
	return f.file.Truncate(size)
}

func (f crashingFile) Sync() error {
	_, err := f.c.step(1)
	return err
}

// unsynced is a disk that does not wait for the device, for tests that write much.
type unsynced struct{ osDisk }

type unsyncedFile struct{ file }

func (unsynced) create(path string) (file, error) {
	f, err := osDisk{}.create(path)
	return unsyncedFile{f}, err
}

func (unsynced) extend(path string) (file, error) {
	f, err := osDisk{}.extend(path)
	return unsyncedFile{f}, err
}

func (unsynced) syncDir(string) error { return nil }

func (unsyncedFile) Sync() error { return nil }

// A process dies at each step of its writes, also within them. The next one finds what was
// saved, or what was being saved, of each name, and nothing else.
//
// spec: LKG-7 LKG-9
func TestCrash(t *testing.T) {
	if testing.Short() {
		t.Skip("a hundred processes")
	}
	saves := [][]client.StoredResource{
		{put("a", "a1"), put("b", "b1"), put("c", "c1")},
		{put("a", "a2"), {Name: "b"}},
		{put("c", "c1"), put("d", "d1")},
		{put("a", "a3"), put("b", "b3")},
	}
	root := t.TempDir()
	for steps := 0; ; steps++ {
		path := filepath.Join(root, fmt.Sprint(steps))
		d := Dir(path, Options{})
		c := &crashing{left: steps}
		d.disk = c
		was, maybe := map[string]string{}, map[string]string{}
		dead := false
		for i, changes := range saves {
			for _, r := range changes {
				maybe[r.Name] = string(r.Resource)
			}
			if i == 2 { // a new process, that writes the file anew
				must(t, d.Close())
				d = Dir(path, Options{})
				d.disk = c
				d.section(clusters).rewrites = true
			}
			if dead = d.Save(clusters, changes) != nil; dead {
				break
			}
			for _, r := range changes {
				was[r.Name] = string(r.Resource)
			}
		}
		_ = d.Close()
		got, err := held(t, path, Options{})
		var damage *DamageError
		if err != nil && !errors.As(err, &damage) {
			t.Fatalf("after %d steps: %v", steps, err)
		}
		for _, name := range []string{"a", "b", "c", "d"} {
			if v := got[name]; v != was[name] && v != maybe[name] {
				t.Errorf("after %d steps %s is %q, want %q or %q", steps, name, v, was[name], maybe[name])
			}
		}
		next := Dir(path, Options{})
		next.disk = unsynced{}
		if err := next.Save(clusters, []client.StoredResource{put("e", "e1")}); errors.Is(err, client.ErrNotSaved) {
			t.Fatalf("after %d steps: %v", steps, err)
		}
		must(t, next.Close())
		again, err := held(t, path, Options{})
		if err != nil || again["e"] != "e1" || len(again) != len(got)+1 {
			t.Errorf("after %d steps and a save: %v, %v; before it %v", steps, again, err, got)
		}
		must(t, os.RemoveAll(path))
		if !dead {
			t.Logf("%d steps", steps)
			break
		}
	}
}
