package client

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/xdswatch/xdswatch/internal/engine"
	"github.com/xdswatch/xdswatch/internal/inlinekeys"
	"github.com/xdswatch/xdswatch/internal/machine"
)

const (
	// keepAfter is how long changes are collected before they are saved.
	keepAfter = 2 * time.Second
	// keepAgain is how long is waited when nothing could be saved.
	keepAgain = 5 * time.Second
	// keepAlive is how often the store is told that all is still good.
	keepAlive = time.Hour
	// maxSave is how many bytes of resources one Save has, about, and maxChanges how many changes.
	maxSave, maxChanges = 512 << 10, 4096
	// maxBacklog is how many bytes of changes wait until those of one name are made one, about.
	maxBacklog = 64 << 20
)

// keeper runs the program's store in a goroutine of its own. It implements [engine.Store].
type keeper struct {
	client *Client
	store  Store
	wake   chan struct{} // there is something to do
	stop   chan struct{}
	done   chan struct{}

	mu      sync.Mutex
	changes []machine.Keep // as the machine gave them; the newest of a name last
	size    int            // of them
	backlog int            // the size above which older changes of a name are dropped
	since   time.Time      // when the first of them came; zero if there is none
	saving  time.Time      // since of those that are being saved; zero if none are
	loads   []*machine.Load

	// Owned by the goroutine.
	shelves map[sectionKey]*shelf
	scanner inlinekeys.Scanner
	denied  map[string]bool  // types of which it was logged that something is not kept
	faults  map[fault]string // that were logged and are not over
}

// shelf is a section, as this process has used it.
type shelf struct {
	StoreSection
	saved bool // something was
}

// fault is what can go wrong with a section.
type fault struct {
	section StoreSection
	what    string
}

// sectionKey is a section as the machine knows it.
type sectionKey struct {
	source  int
	typeURL string
}

func newKeeper(c *Client) *keeper {
	k := &keeper{
		client: c, store: c.config.Store, backlog: maxBacklog,
		wake: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{}),
		shelves: map[sectionKey]*shelf{}, denied: map[string]bool{}, faults: map[fault]string{},
	}
	go k.run()
	return k
}

// Keep implements engine.Store.
func (k *keeper) Keep(kept []machine.Keep) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.changes = append(k.changes, kept...)
	if k.since.IsZero() {
		k.since = time.Now()
	}
	if k.size += sizeOf(kept); k.size > k.backlog {
		k.changes = newest(k.changes)
		k.size = sizeOf(k.changes)
		k.backlog = max(maxBacklog, 2*k.size)
	}
	k.rouse()
}

// sizeOf is how many bytes changes hold, about.
func sizeOf(kept []machine.Keep) (n int) {
	for i := range kept {
		for j := range kept[i].Changes {
			n += 128 + len(kept[i].Changes[j].Raw)
		}
	}
	return n
}

// Load implements engine.Store.
func (k *keeper) Load(loads []*machine.Load) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.loads = append(k.loads, loads...)
	k.rouse()
}

func (k *keeper) rouse() {
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// newest leaves the last change of each name. What settles a collection stays behind what came before it.
// It takes the lists of changes apart.
func newest(kept []machine.Keep) []machine.Keep {
	type changed struct{ names, settled map[string]bool }
	sections := map[sectionKey]changed{}
	last := len(kept)
	for _, b := range slices.Backward(kept) {
		at := sectionKey{b.Source, b.TypeURL}
		seen, ok := sections[at]
		if !ok {
			seen = changed{map[string]bool{}, map[string]bool{}}
			sections[at] = seen
		}
		if b.Covers != nil {
			if seen.settled[b.Settled] {
				continue
			}
			seen.settled[b.Settled] = true
		} else if b.Changes = newestChanges(b.Changes, seen.names); len(b.Changes) == 0 {
			continue
		}
		last--
		kept[last] = b
	}
	clear(kept[:last])
	return kept[last:]
}

// newestChanges leaves the last change of each name that is not among those of later changes, and adds it to these.
func newestChanges(changes []machine.Kept, later map[string]bool) []machine.Kept {
	last := len(changes)
	for _, c := range slices.Backward(changes) {
		if !later[c.Name] {
			later[c.Name] = true
			last--
			changes[last] = c
		}
	}
	clear(changes[:last])
	return changes[last:]
}

// close saves what was accepted and ends the goroutine.
func (k *keeper) close() {
	close(k.stop)
	<-k.done
}

func (k *keeper) run() {
	defer close(k.done)
	alive := time.NewTicker(keepAlive)
	defer alive.Stop()
	save := time.NewTimer(keepAfter)
	save.Stop()
	defer save.Stop()
	due := false
	for {
		select {
		case <-k.wake:
			k.load()
			if !due && k.waiting() {
				due = true
				save.Reset(keepAfter)
			}
		case <-save.C:
			if due = !k.save(); due {
				save.Reset(keepAgain)
			}
		case <-alive.C:
			if k.save() { // LKG-5: what was removed a moment ago is not good
				k.affirm()
			}
		case <-k.stop:
			k.save()
			return
		}
	}
}

func (k *keeper) waiting() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.changes) > 0
}

// save has the store keep what changed, and says whether it has.
func (k *keeper) save() (all bool) {
	k.mu.Lock()
	kept := k.changes
	k.saving = k.since
	k.changes, k.size, k.backlog, k.since = nil, 0, maxBacklog, time.Time{}
	k.mu.Unlock()
	by := map[sectionKey][]machine.Keep{}
	for _, b := range kept {
		at := sectionKey{b.Source, b.TypeURL}
		by[at] = append(by[at], b)
	}
	var left []machine.Keep
	w := saving{keeper: k}
	for _, at := range slices.SortedFunc(maps.Keys(by), byKey) {
		w.shelf = k.shelf(at)
		left = append(left, w.save(by[at])...)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	since := k.saving
	k.saving = time.Time{}
	if len(left) == 0 {
		return true
	}
	k.changes = newest(append(left, k.changes...))
	k.size, k.since = sizeOf(k.changes), since
	return false
}

// unsaved is since when something waits to be saved; nil without a store.
func (k *keeper) unsaved() *Unsaved {
	if k == nil {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.saving.IsZero() {
		return &Unsaved{Since: k.saving}
	}
	return &Unsaved{Since: k.since}
}

func byKey(a, b sectionKey) int {
	return cmp.Or(cmp.Compare(a.source, b.source), cmp.Compare(a.typeURL, b.typeURL))
}

// affirm tells the store that all that was saved is still good.
func (k *keeper) affirm() {
	for _, at := range slices.SortedFunc(maps.Keys(k.shelves), byKey) {
		if s := k.shelves[at]; s.saved {
			k.complain("the store has a fault while it keeps resources", s.StoreSection, k.guard(func() error { return k.store.Save(s.StoreSection, nil) }))
		}
	}
}

// complain logs what a store says that went wrong, once while it says the same.
func (k *keeper) complain(what string, s StoreSection, err error) {
	at := fault{s, what}
	if err == nil {
		delete(k.faults, at)
	} else if k.faults[at] != err.Error() {
		k.faults[at] = err.Error()
		k.client.config.Logger.Warn(what, "type", s.Type, "authority", s.Authority, "error", err.Error())
	}
}

// guard calls the program's store. That it does not return is an error.
func (k *keeper) guard(f func() error) (err error) {
	engine.Apart(func() { err = engine.WithText(f()) }, func(p any) {
		k.client.left("Config.Store", "", p)
		err = errStoreLeft
	})
	return err
}

var errStoreLeft = errors.New("the store panicked, or ended its goroutine (runtime.Goexit)")
