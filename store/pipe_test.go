//go:build unix

package store

import (
	"errors"
	"os"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/internal/race"
)

// A pipe that comes to stand in the place of a file, also of one that this process writes, holds nobody
// up, and what is saved after it is gone is there.
//
// spec: H-10
func TestPipeForFile(t *testing.T) {
	path := t.TempDir()
	writer, reader := Dir(path, Options{}), Dir(path, Options{})
	must(t, writer.Save(clusters, []client.StoredResource{put("a", "1")}))
	if got, err := loaded(reader, nil); err != nil || got["a"] != "1" {
		t.Fatalf("%v, %v", got, err)
	}
	name := files(t, path)[0]
	must(t, errors.Join(os.Remove(name), syscall.Mkfifo(name, 0o600)))
	for what, do := range map[string]func(){
		"a name at the writer": func() { _, _ = loaded(writer, []string{"a"}) },
		"all at the writer":    func() { _, _ = loaded(writer, nil) },
		"a name at the reader": func() { _, _ = loaded(reader, []string{"a"}) },
		"the next process":     func() { _, _ = loaded(Dir(path, Options{}), []string{"a"}) },
		"a save":               func() { _ = writer.Save(clusters, []client.StoredResource{put("b", "1")}) },
	} {
		done := make(chan struct{})
		go func() {
			defer close(done)
			do()
		}()
		select {
		case <-done:
		case <-time.After(time.Minute):
			t.Fatalf("%s: waits for the other end of a pipe", what)
		}
	}
	must(t, writer.Close())
	must(t, os.Remove(name))
	again := Dir(path, Options{})
	must(t, again.Save(clusters, []client.StoredResource{put("c", "1")}))
	must(t, again.Close())
	if got, err := loaded(Dir(path, Options{}), nil); err != nil || got["c"] != "1" {
		t.Errorf("afterwards there is %v, %v", got, err)
	}
}

// Of a large file that begins as none of this store does nothing more is read.
//
// spec: LKG-7 H-10
func TestLargeForeignFile(t *testing.T) {
	path := t.TempDir()
	d := Dir(path, Options{})
	must(t, d.Save(clusters, []client.StoredResource{put("a", "1")}))
	must(t, d.Close())
	name := files(t, path)[0]
	must(t, errors.Join(os.WriteFile(name, nil, 0o600), os.Truncate(name, 1<<30)))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := held(t, path, Options{})
	runtime.ReadMemStats(&after)
	if foreign := (*ForeignError)(nil); !errors.As(err, &foreign) {
		t.Errorf("error %v, want that the file is foreign", err)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 1<<20 {
		t.Errorf("%d bytes were allocated", took)
	}
	again := Dir(path, Options{})
	must(t, errors.Join(ignore[*ForeignError](again.Save(clusters, []client.StoredResource{put("c", "1")})), again.Close()))
	if got, err := held(t, path, Options{}); err != nil || got["c"] != "1" {
		t.Errorf("afterwards there is %v, %v", got, err)
	}
}

// ignore is nil in place of an error of a kind.
func ignore[E error](err error) error {
	if _, ok := errors.AsType[E](err); ok {
		return nil
	}
	return err
}

// A file that was extended, if only by a hole, costs about what it held, and the next save repairs it.
//
// spec: LKG-7 H-10
func TestCostOfSparseFile(t *testing.T) {
	race.SkipCost(t)
	if runtime.GOOS != "linux" {
		t.Skip("holes are found on Linux alone")
	}
	for _, size := range []int64{2 << 30, 1 << 40} {
		path := t.TempDir()
		d := Dir(path, Options{})
		must(t, errors.Join(d.Save(clusters, []client.StoredResource{put("a", "1")}), d.Close()))
		if err := os.Truncate(files(t, path)[0], size); err != nil {
			t.Skipf("the system makes no such file: %v", err)
		}
		if size < 1<<40 { // the hole is not at the end
			f, err := os.OpenFile(files(t, path)[0], os.O_WRONLY, 0)
			must(t, err)
			_, err = f.WriteAt([]byte{1}, size)
			must(t, errors.Join(err, f.Close()))
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		begin := time.Now()
		got, err := held(t, path, Options{})
		took := time.Since(begin)
		runtime.ReadMemStats(&after)
		if damage := (*DamageError)(nil); !errors.As(err, &damage) || got["a"] != "1" {
			t.Errorf("with %d bytes: %v, %v", size, got, err)
		}
		if n := after.TotalAlloc - before.TotalAlloc; n > 200<<20 || took > 20*time.Second {
			t.Errorf("with %d bytes: %d bytes were allocated in %v", size, n, took)
		}
		t.Logf("%d bytes took %v", size, took)
		again := Dir(path, Options{})
		must(t, errors.Join(ignore[*DamageError](again.Save(clusters, []client.StoredResource{put("c", "1")})), again.Close()))
		if got, err := held(t, path, Options{}); err != nil || got["a"] != "1" || got["c"] != "1" {
			t.Errorf("afterwards there is %v, %v", got, err)
		}
	}
}
