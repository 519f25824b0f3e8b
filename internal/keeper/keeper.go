// Package keeper brings what the machine accepts to the program's store, and what the store has to the
// machine, in a goroutine of its own: the store may block for long.
package keeper

import (
	"cmp"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/xdswatch/xdswatch/internal/engine"
	"github.com/xdswatch/xdswatch/internal/inlinekeys"
	"github.com/xdswatch/xdswatch/internal/machine"
)

const (
	// saveAfter is how long changes are collected before they are saved.
	saveAfter = 2 * time.Second
	// saveAgain is how long is waited when nothing could be saved.
	saveAgain = 5 * time.Second
	// affirmEvery is how often the store is told that all is still good.
	affirmEvery = time.Hour
)

// ErrNotSaved is the error of [Section.Save] if nothing was saved, and may be a moment later.
var ErrNotSaved = errors.New("xds: the store has saved nothing")

// errLeft is that of a method of the store that does not return.
var errLeft = errors.New("the store panicked, or ended its goroutine (runtime.Goexit)")

// Resource is a resource as the store has it; client.StoredResource says what the fields are.
type Resource struct {
	Name     string
	Resource []byte
	Server   string
	Updated  time.Time
	Expires  time.Time
}

// Section is a part of the program's store; client.Store says what the methods do.
type Section interface {
	Load(names []string, yield func(Resource)) error
	Save(changes []Resource) error
	Names() ([]string, error)
}

// Host is what a keeper needs of the client. The keeper calls one of its methods at a time.
type Host interface {
	// Section is that of a type's resources at a source, and their authority for the log; "" if their names
	// tell none, or each another.
	Section(source int, typeURL string) (s Section, authority string)
	// Servers are those of a source, in order of priority.
	Servers(source int) []int
	// URI is a server's, as the store knows it.
	URI(server int) string
	// Loaded hands the machine what it looked for.
	Loaded(machine.Loaded)
	// Left logs that the store did not return, given what was recovered.
	Left(p any)
}

// Keeper runs a store. It implements [engine.Store].
type Keeper struct {
	host   Host
	logger *slog.Logger
	own    []string      // types whose content the program answers for
	wake   chan struct{} // there is something to do
	stop   chan struct{}
	done   chan struct{}

	mu     sync.Mutex
	waits  backlog
	saving time.Time // since of what is being saved; zero if nothing is
	loads  []*machine.Load

	// Owned by the goroutine.
	shelves map[key]*shelf
	scanner inlinekeys.Scanner
	denied  map[string]bool  // types of which it was logged that something is not kept
	faults  map[fault]string // that were logged and are not over
}

// key is a section as the machine knows it.
type key struct {
	source  int
	typeURL string
}

func compareKeys(a, b key) int {
	return cmp.Or(cmp.Compare(a.source, b.source), cmp.Compare(a.typeURL, b.typeURL))
}

// shelf is a section, as this process has used it.
type shelf struct {
	Section
	key
	authority string
	saved     bool // something was
}

// fault is what can go wrong with a section.
type fault struct {
	key
	what string
}

// New begins to keep; see [Keeper.Close]. own are the types that may be no message that the program links: the program
// answers for their content.
func New(host Host, logger *slog.Logger, own []string) *Keeper {
	k := &Keeper{
		host: host, logger: logger, own: own,
		wake: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{}),
		waits: backlog{limit: maxBacklog}, shelves: map[key]*shelf{}, denied: map[string]bool{}, faults: map[fault]string{},
	}
	go k.run()
	return k
}

// Keep implements engine.Store.
func (k *Keeper) Keep(kept []machine.Keep) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.waits.add(kept)
	k.rouse()
}

// Load implements engine.Store.
func (k *Keeper) Load(loads []*machine.Load) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.loads = append(k.loads, loads...)
	k.rouse()
}

func (k *Keeper) rouse() {
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// Unsaved is since when something waits to be saved; zero if nothing does.
func (k *Keeper) Unsaved() time.Time {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.saving.IsZero() {
		return k.saving
	}
	return k.waits.since
}

// Close saves what was accepted and ends the goroutine.
func (k *Keeper) Close() {
	close(k.stop)
	<-k.done
}

func (k *Keeper) run() {
	defer close(k.done)
	affirm := time.NewTicker(affirmEvery)
	defer affirm.Stop()
	save := time.NewTimer(saveAfter)
	save.Stop()
	defer save.Stop()
	due := false
	for {
		select {
		case <-k.wake:
			k.load()
			if !due && !k.Unsaved().IsZero() {
				due = true
				save.Reset(saveAfter)
			}
		case <-save.C:
			if due = !k.save(); due {
				save.Reset(saveAgain)
			}
		case <-affirm.C:
			if k.save() { // LKG-5: what was removed a moment ago is not good
				k.affirm()
			}
		case <-k.stop:
			k.save()
			return
		}
	}
}

// affirm tells the store that all that was saved is still good.
func (k *Keeper) affirm() {
	for _, at := range slices.SortedFunc(maps.Keys(k.shelves), compareKeys) {
		if s := k.shelves[at]; s.saved {
			k.keep(s, nil)
		}
	}
}

// keep calls the store's Save, and logs its fault.
func (k *Keeper) keep(s *shelf, changes []Resource) error {
	err := k.guard(func() error { return s.Save(changes) })
	k.complain("the store has a fault while it keeps resources", s, err)
	return err
}

// shelf finds or makes the record of a section.
func (k *Keeper) shelf(at key) *shelf {
	s := k.shelves[at]
	if s == nil {
		s = &shelf{key: at}
		s.Section, s.authority = k.host.Section(at.source, at.typeURL)
		k.shelves[at] = s
	}
	return s
}

// complain logs what a store says that went wrong, once while it says the same.
func (k *Keeper) complain(what string, s *shelf, err error) {
	at := fault{s.key, what}
	if err == nil {
		delete(k.faults, at)
	} else if k.faults[at] != err.Error() {
		k.faults[at] = err.Error()
		k.logger.Warn(what, s.attrs("error", err.Error())...)
	}
}

// attrs are attributes of a line of the log about a shelf.
func (s *shelf) attrs(more ...any) []any {
	attrs := append([]any{"type", s.typeURL}, more...)
	if s.authority != "" {
		attrs = append(attrs, "authority", s.authority)
	}
	return attrs
}

// guard calls the program's store. That it does not return is an error.
func (k *Keeper) guard(f func() error) (err error) {
	engine.Apart(func() { err = engine.WithText(f()) }, func(p any) {
		k.host.Left(p)
		err = errLeft
	})
	return err
}
