package keeper

import (
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/xdswatch/xdswatch/internal/inlinekeys"
	"github.com/xdswatch/xdswatch/internal/machine"
	"github.com/xdswatch/xdswatch/internal/wire"
)

const (
	// maxSave is how many bytes of resources one Save has, about, and maxChanges how many changes.
	maxSave, maxChanges = 512 << 10, 4096
)

// save has the store keep what changed, and says whether it has.
func (k *Keeper) save() (all bool) {
	k.mu.Lock()
	taken := k.waits
	k.waits, k.saving = backlog{limit: maxBacklog}, taken.since
	k.mu.Unlock()
	by := map[key][]machine.Keep{}
	for _, b := range taken.kept {
		at := key{b.Source, b.TypeURL}
		by[at] = append(by[at], b)
	}
	var left []machine.Keep
	w := saving{Keeper: k}
	for _, at := range slices.SortedFunc(maps.Keys(by), compareKeys) {
		w.shelf = k.shelf(at)
		left = append(left, w.relevant(w.save(by[at]))...)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.saving = time.Time{}
	if len(left) > 0 {
		k.waits.putBack(left, taken.since)
	}
	return len(left) == 0
}

// saving is a save under way. A load saves each of its resources, so what is needed for one is used again
// for the next.
type saving struct {
	*Keeper
	*shelf

	next  []Resource
	bytes []byte        // of them
	out   wire.Resource // that is written
}

// save has a section keep what changed, and returns what is to be saved again.
func (w *saving) save(kept []machine.Keep) (left []machine.Keep) {
	batch, change := 0, 0 // the first that is not saved
	unsaved := func() []machine.Keep {
		kept[batch].Changes = kept[batch].Changes[change:]
		return kept[batch:]
	}
	server, uri := -1, ""
	w.room(kept)
	for i := range kept {
		if kept[i].Covers != nil {
			if !w.flush() {
				return unsaved()
			}
			batch, change = i, 0
			w.settle(&kept[i])
			continue
		}
		for j := range kept[i].Changes {
			c := &kept[i].Changes[j]
			if c.Server != server {
				server, uri = c.Server, w.host.URI(c.Server)
			}
			w.add(c, uri)
			if len(w.bytes) < maxSave && len(w.next) < maxChanges {
				continue
			}
			if !w.flush() {
				return unsaved()
			}
			batch, change = i, j+1
		}
	}
	if !w.flush() {
		return unsaved()
	}
	return nil
}

// room makes room for a Save of the changes, so that what a large load needs is made once.
func (w *saving) room(kept []machine.Keep) {
	n := 0
	for i := range kept {
		n += len(kept[i].Changes)
	}
	w.next = slices.Grow(w.next, min(n, maxChanges))
	w.bytes = slices.Grow(w.bytes, min(sizeOf(kept), maxSave+maxSave/8))
}

// add adds a change to the next Save.
func (w *saving) add(c *machine.Kept, server string) {
	r := Resource{Name: c.Name, Server: server, Updated: time.Unix(0, c.Updated)}
	if c.Expires != 0 {
		r.Expires = time.Unix(0, c.Expires)
	}
	begin := len(w.bytes)
	if w.encode(c); len(w.bytes) > begin {
		r.Resource = w.bytes[begin:len(w.bytes):len(w.bytes)]
	}
	w.next = append(w.next, r)
}

// flush has the store keep what was added, and says whether it has.
func (w *saving) flush() bool {
	if len(w.next) == 0 {
		return true
	}
	err := w.keep(w.shelf, w.next)
	w.next, w.bytes = w.next[:0], w.bytes[:0]
	if errors.Is(err, ErrNotSaved) {
		return false
	}
	w.saved = true
	return true
}

// settle has the store forget what a collection does not have.
func (w *saving) settle(k *machine.Keep) {
	names, _ := w.names()
	known := make(map[string]bool, len(k.Known))
	for _, name := range k.Known {
		known[name] = true
	}
	for _, name := range names {
		if !known[name] && k.Covers(name) {
			w.next = append(w.next, Resource{Name: name})
		}
	}
}

// relevant is what could not be saved, without names that are gone and that the store does not have: there may be any
// number of them.
func (w *saving) relevant(left []machine.Keep) []machine.Keep {
	removed := func(c machine.Kept) bool { return c.Raw == nil && !c.Complete }
	n := 0
	for i := range left {
		for j := range left[i].Changes {
			if removed(left[i].Changes[j]) {
				n++
			}
		}
	}
	if n <= maxChanges {
		return left
	}
	has, err := w.names()
	if err != nil {
		return left
	}
	left = newest(left) // lest what came before a removal counts
	for i := range left {
		left[i].Changes = slices.DeleteFunc(left[i].Changes, func(c machine.Kept) bool {
			_, kept := slices.BinarySearch(has, c.Name)
			return removed(c) && !kept
		})
	}
	return left
}

// names are what the store has, in order.
func (w *saving) names() (names []string, err error) {
	err = w.guard(func() (err error) {
		names, err = w.Names()
		return err
	})
	w.complain("the store cannot say what it keeps", w.shelf, err)
	slices.Sort(names)
	return names, err
}

// encode appends the Resource of a change to the bytes; nothing of what is not to be kept.
func (w *saving) encode(c *machine.Kept) {
	r := &w.out
	*r = wire.Resource{Version: append(r.Version[:0], c.Version...), Payload: c.Raw, Attributes: c.Attributes, HasBody: !c.Complete}
	switch {
	case c.Complete:
		r.Name = []byte(c.Name) // lest there be nothing
	case c.Raw == nil:
		return
	case c.Locator:
		r.TypeURL = []byte(wire.LocatorURL)
	default:
		// LKG-1: nothing with inline keys is written.
		if err := w.check(w.typeURL, c.Raw); err != nil {
			w.deny(c.Name, w.shelf, err)
			return
		}
	}
	w.bytes = wire.AppendResource(w.bytes, r)
}

// check says why a resource may not be written. Of a type of the program's own, that is no linked
// message, the program answers for the content.
func (k *Keeper) check(typeURL string, raw []byte) error {
	err := k.scanner.Check(typeURL, raw)
	if err == nil {
		return nil
	}
	if unknown, ok := errors.AsType[*inlinekeys.UnknownError](err); ok && unknown.TypeURL == typeURL && slices.Contains(k.own, typeURL) {
		return nil
	}
	return err
}

// deny logs the first of a type that is not kept.
func (k *Keeper) deny(name string, s *shelf, err error) {
	if !k.denied[s.typeURL] {
		k.denied[s.typeURL] = true
		k.logger.Warn("a resource is not kept in the store; others of the type may be kept", s.attrs("name", name, "reason", err.Error())...)
	}
}
