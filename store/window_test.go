package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/xdswatch/xdswatch/client"
)

// A record larger than what is read at once, one that a part ends in, and damage between them cost nothing else.
//
// spec: LKG-7
func TestPartsOfFile(t *testing.T) {
	path := t.TempDir()
	d := Dir(path, Options{})
	d.disk = unsynced{}
	var all []client.StoredResource
	want := map[string]string{}
	for i := range 40 {
		r := put(fmt.Sprint("name-", i), strings.Repeat(fmt.Sprint(i%10), 1+i*i*700))
		all, want[r.Name] = append(all, r), string(r.Resource)
	}
	must(t, errors.Join(d.Save(clusters, all), d.Close()))
	var whole []client.StoredResource // of which all bytes stay until Load returns
	must(t, Dir(path, Options{}).Load(clusters, nil, func(r client.StoredResource) { whole = append(whole, r) }))
	for _, r := range whole {
		if string(r.Resource) != want[r.Name] {
			t.Errorf("%s is loaded otherwise than saved", r.Name)
		}
	}
	same(t, "loaded", len(whole), len(all))
	b, err := os.ReadFile(files(t, path)[0])
	must(t, err)
	at := bytes.Index(b, []byte(want["name-20"]))
	for name, off := range map[string]int{"head": at - 40, "body": at + 1000} {
		broken := slices.Clone(b)
		for i := range 40 {
			broken[off+i] ^= 0x55
		}
		must(t, os.WriteFile(files(t, path)[0], broken, 0o600))
		got, err := held(t, path, Options{})
		if damage := (*DamageError)(nil); !errors.As(err, &damage) || damage.Records != 1 {
			t.Errorf("with a damaged %s: %v, want that one record is damaged", name, err)
		}
		if got["name-20"] = want["name-20"]; !maps.Equal(got, want) {
			t.Errorf("with a damaged %s of one, others are missing", name)
		}
	}
}

// After a head that was damaged the next is found, also where it lies across two parts of the file.
//
// spec: LKG-7
func TestHeadAcrossParts(t *testing.T) {
	marked := binary.LittleEndian.AppendUint32(nil, mark)
	for n := partSize - 120; n < partSize; n += 8 {
		path := t.TempDir()
		d := Dir(path, Options{})
		d.disk = unsynced{}
		must(t, d.Save(clusters, []client.StoredResource{put("a", strings.Repeat("x", n)), put("b", "1")}))
		must(t, d.Close())
		b, err := os.ReadFile(files(t, path)[0])
		must(t, err)
		second := bytes.LastIndex(b, marked)
		b[bytes.LastIndex(b[:second], marked)] ^= 1
		must(t, os.WriteFile(files(t, path)[0], b, 0o600))
		if got, err := held(t, path, Options{}); err == nil || got["b"] != "1" {
			t.Errorf("behind %d bytes: b is %q, %v", n, got["b"], err)
		}
	}
}

// Names are loaded alone, however many there are, in any order, and again.
func TestLoadByName(t *testing.T) {
	path := t.TempDir()
	d := Dir(path, Options{})
	d.disk = unsynced{}
	var all []client.StoredResource
	for i := range 3 * few {
		all = append(all, put(fmt.Sprint("name-", i), strings.Repeat(fmt.Sprint(i%10), 10_000)))
	}
	must(t, errors.Join(d.Save(clusters, all), d.Close()))
	other := Dir(path, Options{})
	for _, n := range []int{1, few, 2 * few} {
		for range 2 {
			want, names := map[string]string{}, []string{"no such name"}
			for i := n; i > 0; i-- {
				r := all[i+i%2*few]
				names, want[r.Name] = append(names, r.Name), string(r.Resource)
			}
			got, err := loaded(other, names)
			must(t, err)
			same(t, fmt.Sprint(n, " names"), got, want)
		}
	}
}

// A file that was read to load from it is not read again to write to it, unless it has changed.
func TestReadOnce(t *testing.T) {
	path := t.TempDir()
	before := Dir(path, Options{})
	must(t, before.Save(clusters, []client.StoredResource{put("a", "1"), put("b", "1")}))
	d := Dir(path, Options{})
	for _, changed := range []bool{false, true} {
		_, err := loaded(d, nil)
		must(t, err)
		if changed {
			must(t, before.Save(clusters, []client.StoredResource{put("c", "1")}))
		}
		must(t, before.Close())
		was := d.section(clusters).table.at(0)
		must(t, d.Save(clusters, []client.StoredResource{put("a", "2"), put("b", "1")}))
		if again := d.section(clusters).table.at(0) != was; again != changed {
			t.Errorf("read again is %v, though that the file has changed is %v", again, changed)
		}
		must(t, d.Close())
	}
	got, err := held(t, path, Options{})
	must(t, err)
	same(t, "held", got, map[string]string{"a": "2", "b": "1", "c": "1"})
}
