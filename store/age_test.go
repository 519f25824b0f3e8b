package store

import (
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xdswatch/xdswatch/client"
)

// What was kept by a clock that was far ahead is as old as the day when a process first writes by a right one.
//
// spec: LKG-6
func TestClockWasAhead(t *testing.T) {
	const day = 24 * time.Hour
	path, other := t.TempDir(), clusters
	other.Scope = "which nobody uses any more"
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(365 * day) // the clock of the next bubble is right
		d := Dir(path, Options{})
		b := put("b", "1")
		b.Expires = time.Now().Add(5 * day)
		must(t, d.Save(clusters, []client.StoredResource{put("a", "1"), b, put("c", "1")}))
		must(t, d.Save(other, []client.StoredResource{put("a", "1")}))
		must(t, d.Close())
		for _, name := range files(t, path) {
			must(t, os.Chtimes(name, time.Now(), time.Now()))
		}
	})
	synctest.Test(t, func(t *testing.T) {
		held := func() map[string]time.Duration {
			got := map[string]time.Duration{}
			must(t, Dir(path, Options{}).Load(clusters, nil, func(r client.StoredResource) {
				if got[r.Name] = 0; !r.Expires.IsZero() {
					got[r.Name] = time.Until(r.Expires)
				}
			}))
			return got
		}
		for n := range 8 {
			same(t, "held", held(), map[string]time.Duration{"a": 0, "b": time.Duration(5-n) * day, "c": 0})
			d := Dir(path, Options{})
			must(t, d.Save(clusters, []client.StoredResource{put("a", "1")}))
			must(t, d.Close())
			time.Sleep(day)
		}
		same(t, "held after eight days", held(), map[string]time.Duration{"a": 0})
		d := Dir(path, Options{})
		must(t, d.Save(clusters, nil))
		must(t, d.Close())
		if got := files(t, path); len(got) != 1 {
			t.Errorf("files are %v, want none of a section that nobody uses", got)
		}
	})
}
