package store

import (
	"cmp"
	"hash/maphash"
	"iter"
	"slices"
	"sort"
)

// entry is a resource in a file.
type entry struct {
	name    string
	off     int64  // of its record
	hash    uint64 // of resource and server
	time    int64
	updated int64
	expires int64
	size    int32  // of its record; 0 if it is outdated
	session uint32 // in which it was put or touched
}

// table is the entries of a file, in its order, with an index by name. There may be a million, of which
// each is looked up once when a program starts: so the index has no pointers, and nothing is copied when
// there are more of them, but the index.
type table struct {
	chunks [][]entry
	count  int // of entries, outdated ones too
	// slots have the hash of a name as the upper half, and the number of the newest entry of that name,
	// from 1, as the lower one; 0 if there is none. A name is in the first free slot from that of its
	// hash on. Half of them are free.
	slots []uint64
	named int // slots that are not free
}

const chunkSize = 1 << 8

var seed = maphash.MakeSeed()

func hashOf[T string | []byte](server T, resource []byte) uint64 {
	return maphash.Bytes(seed, resource)*31 + maphash.String(seed, string(server))
}

func (t *table) at(i int) *entry { return &t.chunks[i/chunkSize][i%chunkSize] }

func hashOfName(name string) uint32 { return uint32(maphash.String(seed, name)) }

// find returns the newest entry of a name; nil if there is none that counts.
func (t *table) find(name string) *entry {
	if t.count == 0 {
		return nil
	}
	if e := t.in(t.slot(hashOfName(name), name)); e != nil && e.size > 0 {
		return e
	}
	return nil
}

// in is the entry of a slot; nil if the slot is free.
func (t *table) in(slot uint32) *entry {
	if n := uint32(t.slots[slot]); n > 0 {
		return t.at(int(n - 1))
	}
	return nil
}

// slot is that of a name, or the one where it is to be.
func (t *table) slot(hash uint32, name string) uint32 {
	mask := uint32(len(t.slots) - 1)
	for i := hash & mask; ; i = (i + 1) & mask {
		if v := t.slots[i]; v == 0 || uint32(v>>32) == hash && t.in(i).name == name {
			return i
		}
	}
}

// put appends an entry, and returns the one before of its name; nil if there is none that counts.
func (t *table) put(e entry) (old *entry) {
	if 2*t.named >= len(t.slots) {
		t.grow()
	}
	hash := hashOfName(e.name)
	slot := t.slot(hash, e.name)
	if old = t.in(slot); old == nil {
		t.named++
	} else if old.size == 0 {
		old = nil
	}
	if t.count%chunkSize == 0 {
		t.chunks = append(t.chunks, make([]entry, 0, chunkSize))
	}
	last := &t.chunks[len(t.chunks)-1]
	*last = append(*last, e)
	t.count++
	t.slots[slot] = uint64(hash)<<32 | uint64(t.count)
	return old
}

// grow makes more slots.
func (t *table) grow() {
	old := t.slots
	t.slots = make([]uint64, max(64, 4*len(old)))
	mask := uint32(len(t.slots) - 1)
	for _, v := range old {
		if v == 0 {
			continue
		}
		i := uint32(v>>32) & mask
		for t.slots[i] != 0 {
			i = (i + 1) & mask
		}
		t.slots[i] = v
	}
}

// all calls each for the entries that are not outdated, in order.
func (t *table) all(yield func(*entry) bool) {
	for _, c := range t.chunks {
		for i := range c {
			if c[i].size > 0 && !yield(&c[i]) {
				return
			}
		}
	}
}

// of are the entries of some names, in the order of the file; all of them if names is nil.
func (t *table) of(names []string) iter.Seq[*entry] {
	if names == nil {
		return t.all
	}
	some := make([]*entry, 0, len(names))
	for _, name := range names {
		if e := t.find(name); e != nil {
			some = append(some, e)
		}
	}
	slices.SortFunc(some, func(a, b *entry) int { return cmp.Compare(a.off, b.off) })
	return slices.Values(some)
}

// within are the entries that begin in a range of the file and are not outdated.
func (t *table) within(from, to int64) iter.Seq[*entry] {
	return func(yield func(*entry) bool) {
		i := sort.Search(t.count, func(i int) bool { return t.at(i).off >= from })
		for ; i < t.count && t.at(i).off < to; i++ {
			if e := t.at(i); e.size > 0 && !yield(e) {
				return
			}
		}
	}
}
