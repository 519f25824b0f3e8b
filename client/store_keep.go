package client

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/xdswatch/xdswatch/internal/inlinekeys"
	"github.com/xdswatch/xdswatch/internal/machine"
	"github.com/xdswatch/xdswatch/internal/wire"
)

const (
	// keepAfter is how long changes are collected before they are saved.
	keepAfter = 2 * time.Second
	// keepAgain is how long is waited when nothing could be saved.
	keepAgain = 5 * time.Second
	// keepAlive is how often the store is told that all is still good.
	keepAlive = time.Hour
	// maxSave is how many bytes of resources one Save has, about.
	maxSave = 8 << 20
	// maxBacklog is how many changes wait until those of one name are made one.
	maxBacklog = 1 << 16
)

// keeper runs the program's store in a goroutine of its own. It implements [engine.Store].
type keeper struct {
	client *Client
	store  Store
	wake   chan struct{} // there is something to do
	stop   chan struct{}
	done   chan struct{}

	mu      sync.Mutex
	changes []machine.Kept // the newest of a name last
	backlog int            // more of them are made fewer
	loads   []*machine.Load

	// Owned by the goroutine.
	sections map[sectionKey]StoreSection
	saved    map[sectionKey]map[string]bool // names of what was saved since the start, or could not be
	scanner  inlinekeys.Scanner
	denied   map[string]bool  // types of which it was logged that something is not kept
	faults   map[fault]string // that were logged and are not over
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
		sections: map[sectionKey]StoreSection{}, saved: map[sectionKey]map[string]bool{}, denied: map[string]bool{}, faults: map[fault]string{},
	}
	go k.run()
	return k
}

// Keep implements engine.Store.
func (k *keeper) Keep(kept []machine.Kept) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.changes = append(k.changes, kept...)
	if len(k.changes) > k.backlog {
		k.changes = newest(k.changes)
		k.backlog = max(maxBacklog, 2*len(k.changes))
	}
	k.rouse()
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
func newest(changes []machine.Kept) []machine.Kept {
	type name struct {
		source        int
		typeURL, name string
		settles       bool
	}
	seen := make(map[name]bool, len(changes))
	var last []machine.Kept
	for _, c := range slices.Backward(changes) {
		at := name{c.Source, c.TypeURL, c.Name, c.Covers != nil}
		if !seen[at] {
			seen[at] = true
			last = append(last, c)
		}
	}
	slices.Reverse(last)
	return last
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
			k.affirm()
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
	changes := k.changes
	k.changes = nil
	k.mu.Unlock()
	by := map[sectionKey][]machine.Kept{}
	for _, c := range changes {
		at := sectionKey{c.Source, c.TypeURL}
		by[at] = append(by[at], c)
	}
	var left []machine.Kept
	for _, at := range slices.SortedFunc(maps.Keys(by), byKey) {
		left = append(left, k.saveSection(at, by[at])...)
	}
	if len(left) == 0 {
		return true
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.changes = newest(append(left, k.changes...))
	return false
}

func byKey(a, b sectionKey) int {
	return cmp.Or(cmp.Compare(a.source, b.source), cmp.Compare(a.typeURL, b.typeURL))
}

// saveSection returns what was not saved.
func (k *keeper) saveSection(at sectionKey, kept []machine.Kept) (left []machine.Kept) {
	section := k.section(at.source, at.typeURL)
	if k.saved[at] == nil {
		k.saved[at] = map[string]bool{}
	}
	var changes []StoredResource
	var bytes []byte // of the changes
	from := 0        // the first of kept that is not saved
	flush := func(to int) bool {
		if len(changes) > 0 {
			err := k.guard(func() error { return k.store.Save(section, changes) })
			if k.complain("the store has a fault while it keeps resources", section, err); errors.Is(err, ErrNotSaved) {
				return false
			}
		}
		from, changes, bytes = to, changes[:0], bytes[:0]
		return true
	}
	for i := range kept {
		c := &kept[i]
		if c.Covers != nil {
			if !flush(i) {
				return kept[from:]
			}
			changes = append(changes, k.settle(at, section, c)...)
			continue
		}
		begin := len(bytes)
		bytes = k.encode(bytes, section, c)
		k.saved[at][c.Name] = true
		r := StoredResource{Name: c.Name, Server: k.client.server(c.Server).URI, Updated: c.Updated, Expires: c.Expires}
		if len(bytes) > begin {
			r.Resource = bytes[begin:len(bytes):len(bytes)]
		}
		changes = append(changes, r)
		if len(bytes) >= maxSave && !flush(i+1) {
			return kept[from:]
		}
	}
	if !flush(len(kept)) {
		return kept[from:]
	}
	return nil
}

// encode appends the Resource of a change; nothing of what is not to be kept.
func (k *keeper) encode(b []byte, section StoreSection, c *machine.Kept) []byte {
	switch {
	case c.Complete:
		return wire.AppendResource(b, &wire.Resource{Name: []byte(c.Name)})
	case c.Raw == nil:
		return b
	}
	typeURL := c.TypeURL
	if c.Locator {
		typeURL = wire.LocatorURL
	} else if err := k.check(typeURL, c); err != nil {
		// LKG-1: nothing with inline keys is written.
		if !k.denied[typeURL] {
			k.denied[typeURL] = true
			k.client.config.Logger.Info("a resource is not kept in the store; others of the type may be kept", "type", typeURL, "name", c.Name, "reason", err.Error(), "section", section.Authority)
		}
		return b
	}
	return wire.AppendResource(b, &wire.Resource{
		Name: []byte(c.Name), Version: []byte(c.Version), TypeURL: []byte(typeURL), Payload: c.Raw, HasBody: true, Attributes: c.Attributes,
	})
}

// check says why a resource may not be written. Of a type of the program's own, that is no linked
// message, the program answers for the content.
func (k *keeper) check(typeURL string, c *machine.Kept) error {
	err := k.scanner.Check(typeURL, c.Raw)
	if unknown, ok := errors.AsType[*inlinekeys.UnknownError](err); ok && unknown.TypeURL == typeURL && slices.Contains(k.client.config.StoreTypes, typeURL) {
		return nil
	}
	return err
}

// settle has the store forget what a collection does not have.
func (k *keeper) settle(at sectionKey, section StoreSection, c *machine.Kept) (gone []StoredResource) {
	var names []string
	err := k.guard(func() (err error) {
		names, err = k.store.Names(section)
		return err
	})
	k.complain("the store cannot say what it keeps", section, err)
	for _, name := range names {
		if !k.saved[at][name] && c.Covers(name) {
			gone = append(gone, StoredResource{Name: name})
		}
	}
	return gone
}

// affirm tells the store that all that was saved is still good.
func (k *keeper) affirm() {
	for _, at := range slices.SortedFunc(maps.Keys(k.saved), byKey) {
		section := k.section(at.source, at.typeURL)
		k.complain("the store has a fault while it keeps resources", section, k.guard(func() error { return k.store.Save(section, nil) }))
	}
}

// load answers what the machine looks for.
func (k *keeper) load() {
	k.mu.Lock()
	loads := k.loads
	k.loads = nil
	k.mu.Unlock()
	for _, l := range loads {
		k.client.engine.Loaded(machine.Loaded{Load: l, Entries: k.entries(l)})
	}
}

func (k *keeper) entries(l *machine.Load) (entries []machine.Entry) {
	section := k.section(l.Source, l.TypeURL)
	servers := k.client.sources.serversOf(l.Source)
	byURI := map[string]int{}
	for _, i := range slices.Backward(servers) {
		byURI[k.client.server(i).URI] = i
	}
	names := l.Names
	if l.All {
		names = nil
	}
	now := time.Now()
	passed, why := 0, error(nil)
	err := k.guard(func() error {
		return k.store.Load(section, names, func(r StoredResource) {
			e, err := entryOf(&r, l.TypeURL, byURI, now)
			if err != nil {
				passed, why = passed+1, cmp.Or(why, fmt.Errorf("%s: %w", r.Name, err))
				return
			}
			entries = append(entries, e)
		})
	})
	k.complain("the store cannot be read in whole", section, err)
	if passed > 0 {
		k.client.config.Logger.Warn("resources of the store are passed over", "type", l.TypeURL, "count", passed, "error", why.Error())
	}
	return entries
}

var (
	errOtherServer = errors.New("it is of a server that does not answer for its name now")
	errExpired     = errors.New("its time to live is over")
	errOtherType   = errors.New("it is of another type or name")
)

// entryOf reads what a store has.
func entryOf(r *StoredResource, typeURL string, servers map[string]int, now time.Time) (e machine.Entry, err error) {
	server, ok := servers[r.Server]
	// LKG-9: another server is skipped.
	if !ok {
		return e, errOtherServer
	}
	in := wire.ScanResource(r.Resource)
	e = machine.Entry{
		Name: r.Name, Version: string(in.Version), Raw: in.Payload, Server: server, Updated: r.Updated,
		Attributes: in.Attributes, Locator: string(in.TypeURL) == wire.LocatorURL && typeURL != wire.LocatorURL, Complete: !in.HasBody,
	}
	switch {
	case in.Fault != nil:
		return e, in.Fault
	case string(in.Name) != r.Name, in.HasBody && !e.Locator && string(in.TypeURL) != typeURL:
		return e, errOtherType
	case r.Expires.IsZero():
	// LKG-6: what is over is not loaded.
	case !now.Before(r.Expires):
		return e, errExpired
	default:
		e.TTL = r.Expires.Sub(now)
	}
	return e, nil
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

// guard turns a panic of the program's store into an error.
func (k *keeper) guard(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			k.client.panicked("Config.Store panicked", "", "", p)
			err = errors.New("the store panicked")
		}
	}()
	return f()
}

// encodeParams writes dynamic parameters as a text.
func encodeParams(params map[string]string) string {
	values := url.Values{}
	for key, value := range params {
		values.Set(key, value)
	}
	return strings.TrimSpace(values.Encode())
}
