package store

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xdswatch/xdswatch/client"
)

// Processes save some of what the ones before have saved, in any order, as it was, with another time to
// live or changed. What a process held as good in the last days is loaded, as it was saved last.
//
// spec: LKG-6 LKG-2
func TestProcessesTouch(t *testing.T) {
	const day = 24 * time.Hour
	type kept struct {
		value         string
		good, expires time.Time
	}
	names := make([]string, 12)
	for i := range names {
		names[i] = fmt.Sprint("name-", i)
	}
	for seed := range uint64(30) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 0))
			path, model := t.TempDir(), map[string]kept{}
			for process := range 12 {
				d := Dir(path, Options{MaxAge: 5 * day})
				d.disk = unsynced{}
				d.section(clusters).rewrites = random.IntN(6) == 0
				saved := map[string]bool{}
				for range 1 + random.IntN(3) {
					var changes []client.StoredResource
					random.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
					for _, name := range names[:random.IntN(len(names))] {
						if random.IntN(8) == 0 {
							delete(model, name)
							changes = append(changes, client.StoredResource{Name: name})
							continue
						}
						k := kept{value: model[name].value, expires: model[name].expires}
						if k.value == "" || random.IntN(4) == 0 {
							k.value = fmt.Sprint(process, "-", random.IntN(1000))
						}
						if random.IntN(3) == 0 {
							k.expires = time.Now().Add(time.Duration(random.IntN(9)) * time.Hour)
						}
						model[name], saved[name] = k, true
						r := put(name, k.value)
						r.Expires = k.expires
						changes = append(changes, r)
					}
					if len(changes) > 0 {
						must(t, d.Save(clusters, changes))
					}
				}
				must(t, d.Save(clusters, nil)) // all of it is still good
				must(t, d.Close())
				for name := range saved {
					if k, ok := model[name]; ok {
						k.good = time.Now()
						model[name] = k
					}
				}
				time.Sleep(day + time.Hour)
				maps.DeleteFunc(model, func(_ string, k kept) bool { return time.Since(k.good) > 5*day })
				got, want := map[string]string{}, map[string]string{}
				for name, k := range model {
					want[name] = fmt.Sprint(k.value, " until ", k.expires.UnixNano())
				}
				must(t, Dir(path, Options{MaxAge: 5 * day}).Load(clusters, nil, func(r client.StoredResource) {
					got[r.Name] = fmt.Sprint(string(r.Resource), " until ", r.Expires.UnixNano())
				}))
				same(t, fmt.Sprintf("seed %d, after process %d", seed, process), got, want)
			}
		})
	}
}

// However often a program starts again, what its file says of what is good does not pile up.
//
// spec: LKG-9
func TestTouchesDoNotPileUp(t *testing.T) {
	path := t.TempDir()
	var all []client.StoredResource
	for i := range 1000 {
		all = append(all, put(fmt.Sprint(i), "x"))
	}
	most := int64(0)
	for range 400 {
		d := Dir(path, Options{})
		d.disk = unsynced{}
		must(t, d.Save(clusters, all))
		most = max(most, d.section(clusters).touched)
		must(t, d.Close())
	}
	if most < 10_000 || most > 200_000 {
		t.Errorf("400 starts with 1000 resources: the file has up to %d touches", most)
	}
}

// A tampered file may have many short records each of which touches everything.
//
// spec: H-10
func TestTouchesAreBounded(t *testing.T) {
	path := t.TempDir()
	d := Dir(path, Options{})
	d.disk = unsynced{}
	var all []client.StoredResource
	for i := range 2000 {
		all = append(all, put(fmt.Sprint(i), "x"))
	}
	must(t, d.Save(clusters, all))
	touch := touches{record: record{kind: recordTouch, time: time.Now().UnixNano(), updated: 1}, to: d.section(clusters).size}
	b := touch.flush(nil)
	must(t, d.section(clusters).append(slices.Repeat(b, 500_000)))
	must(t, d.Close())
	got, err := held(t, path, Options{})
	if err == nil || len(got) != len(all) {
		t.Errorf("%d resources are held, and the error is %v", len(got), err)
	}
}

// The age is judged at each load, also where the file was read long before, and by the process that holds what it says.
//
// spec: LKG-6
func TestAgeOfLongLivedDirectory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const hour = time.Hour
		path := t.TempDir()
		names := func(d *Directory) []string {
			t.Helper()
			loaded := []string{}
			must(t, d.Load(clusters, nil, func(r client.StoredResource) { loaded = append(loaded, r.Name) }))
			all, err := d.Names(clusters)
			must(t, err)
			same(t, "names", all, loaded)
			return loaded
		}
		writer, reader := Dir(path, Options{MaxAge: 24 * hour}), Dir(path, Options{MaxAge: 24 * hour})
		must(t, writer.Save(clusters, []client.StoredResource{put("a", "1")}))
		same(t, "read at once", names(reader), []string{"a"})
		time.Sleep(20 * hour)
		must(t, writer.Save(clusters, nil)) // it is still good
		time.Sleep(20 * hour)
		same(t, "to the writer", names(writer), []string{"a"})
		time.Sleep(20 * hour)
		same(t, "to the writer, too late", names(writer), []string{})
		same(t, "to a reader, too late", names(reader), []string{})
		must(t, writer.Save(clusters, nil)) // the machine slept, and the process holds it still
		same(t, "to the writer, good again", names(writer), []string{"a"})
		must(t, writer.Close())
	})
}
