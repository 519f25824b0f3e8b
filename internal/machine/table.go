package machine

import (
	"hash/maphash"
	"iter"
)

// table is the subscriptions of a type by name. The garbage collector marks what it holds several
// times while a heap grows, and is fastest in the order in which that was made: so the
// subscriptions are in a list, and the index over the list has no pointers.
type table struct {
	list  []*subscription
	index map[uint32]uint32 // from the hash of a name, or the next number that was free, to the place in list
}

// len is how many there are.
func (t *table) len() int { return len(t.list) }

// all yields the subscriptions; see [roster.all].
func (t *table) all() iter.Seq[*subscription] { return (*roster)(&t.list).all() }

// get returns the subscription of a name; nil if there is none.
func (t *table) get(name string) *subscription {
	sub, _ := seek(t, hashOfName(name), name)
	return sub
}

// read is get for a name that stands in a frame.
func (t *table) read(name []byte) *subscription {
	sub, _ := seek(t, uint32(maphash.Bytes(hashSeed, name)), name)
	return sub
}

func hashOfName(name string) uint32 { return uint32(maphash.String(hashSeed, name)) }

// seek finds a subscription from the hash of its name on, and its number in the index; of one that
// there is not, the number that it is to have.
func seek[N string | []byte](t *table, at uint32, name N) (*subscription, uint32) {
	for {
		i, ok := t.index[at]
		if !ok {
			return nil, at
		}
		if sub := t.list[i]; sub.name == string(name) {
			return sub, at
		}
		at++
	}
}

// put adds a subscription; there is none of its name.
func (t *table) put(sub *subscription) {
	_, at := seek(t, hashOfName(sub.name), sub.name)
	if t.index == nil {
		t.index = map[uint32]uint32{}
	}
	t.index[at] = uint32(len(t.list))
	t.list = append(t.list, sub)
}

// drop removes the subscription of a name, if there is one.
func (t *table) drop(name string) {
	sub, at := seek(t, hashOfName(name), name)
	if sub == nil {
		return
	}
	hole := t.index[at]
	delete(t.index, at)
	for at++; ; at++ { // what had to go past it may be found earlier now
		i, ok := t.index[at]
		if !ok {
			break
		}
		delete(t.index, at)
		_, to := seek(t, hashOfName(t.list[i].name), t.list[i].name)
		t.index[to] = i
	}
	last := len(t.list) - 1
	if sub = t.list[last]; int(hole) != last {
		_, at = seek(t, hashOfName(sub.name), sub.name)
		t.list[hole], t.index[at] = sub, hole
	}
	t.list[last] = nil
	t.list = t.list[:last]
}

var hashSeed = maphash.MakeSeed()

// hashOf is never 0.
func hashOf(payload []byte) uint64 { return maphash.Bytes(hashSeed, payload) | 1 }

// roster is subscriptions in no order, each of which knows its place. Nil has none and takes none.
type roster []*subscription

// all yields the subscriptions. What is put meanwhile may come or not; some may come twice if the loop drops another
// subscription than the one that came last.
func (r *roster) all() iter.Seq[*subscription] {
	return func(yield func(*subscription) bool) {
		for i := len(*r) - 1; i >= 0; i-- {
			if i < len(*r) && !yield((*r)[i]) {
				return
			}
		}
	}
}

func (r *roster) put(sub *subscription) {
	if r != nil {
		sub.at = uint32(len(*r))
		*r = append(*r, sub)
	}
}

// drop removes a subscription. The last one takes its place.
func (r *roster) drop(sub *subscription) {
	if r == nil {
		return
	}
	last := len(*r) - 1
	moved := (*r)[last]
	(*r)[sub.at], moved.at = moved, sub.at
	(*r)[last] = nil
	if *r = (*r)[:last]; last == 0 {
		*r = nil
	}
}
