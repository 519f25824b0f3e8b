package keeper

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/xdswatch/xdswatch/internal/machine"
	"github.com/xdswatch/xdswatch/internal/wire"
)

// partOfLoad is how many entries the machine is given at once, so that some are decoded while others are
// read.
const partOfLoad = 512

// century is as long as a resource lives whose time to live ends after the last time that nanoseconds can count.
const century = 100 * 365 * 24 * time.Hour

// load answers what the machine looks for.
func (k *Keeper) load() {
	k.mu.Lock()
	loads := k.loads
	k.loads = nil
	k.mu.Unlock()
	if len(loads) == 0 {
		return
	}
	k.save() // LKG-5: what was removed a moment ago is not loaded
	for _, l := range loads {
		ld := loading{Keeper: k, Load: l, gone: k.removed(key{l.Source, l.TypeURL})}
		ld.run()
	}
}

// removed says of a section which names the store still has only because it could not save.
func (k *Keeper) removed(at key) func(name string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.waits.removed(at)
}

// loading is a load under way.
type loading struct {
	*Keeper
	*machine.Load

	gone    func(name string) bool // it was removed, and the store could not save that or not yet
	now     time.Time
	servers map[string]int // of the source, by URI
	part    []machine.Kept
	last    string // version
	passed  int    // entries that are not given
	why     error  // the first of them is not
}

func (l *loading) run() {
	s := l.shelf(key{l.Source, l.TypeURL})
	l.now, l.servers = time.Now(), map[string]int{}
	for _, i := range slices.Backward(l.host.Servers(l.Source)) {
		l.servers[l.host.URI(i)] = i
	}
	names := l.Names
	if l.All {
		names = nil
	}
	err := l.guard(func() error { return s.Load(names, l.take) })
	l.complain("the store cannot be read in whole", s, err)
	if l.passed > 0 {
		l.logger.Warn("resources of the store are passed over", "type", l.TypeURL, "count", l.passed, "error", l.why.Error())
	}
	l.host.Loaded(machine.Loaded{Load: l.Load, Entries: l.part, Last: true})
}

// take takes what the store has of a name.
func (l *loading) take(r Resource) {
	if l.gone(r.Name) { // LKG-5: a server said so
		return
	}
	e, err := l.entry(&r)
	if err != nil {
		l.passed, l.why = l.passed+1, cmp.Or(l.why, fmt.Errorf("%s: %w", r.Name, err))
		return
	}
	if l.part = append(l.part, e); len(l.part) == partOfLoad {
		l.host.Loaded(machine.Loaded{Load: l.Load, Entries: l.part})
		l.part = make([]machine.Kept, 0, partOfLoad)
	}
}

var (
	errOtherServer = errors.New("it is of a server that does not answer for its name now")
	errExpired     = errors.New("its time to live is over")
	errOtherType   = errors.New("it is of another type or name")
)

// entry reads what the store has of a name.
func (l *loading) entry(r *Resource) (e machine.Kept, err error) {
	server, ok := l.servers[r.Server]
	// LKG-9: another server is skipped.
	if !ok {
		return e, errOtherServer
	}
	in := wire.ScanResource(r.Resource)
	e = machine.Kept{
		Name: r.Name, Version: l.version(in.Version), Raw: in.Payload, Server: server,
		Updated:    min(r.Updated.UnixNano(), l.now.UnixNano()), // a clock may have been set back
		Attributes: in.Attributes, Locator: string(in.TypeURL) == wire.LocatorURL && l.TypeURL != wire.LocatorURL, Complete: !in.HasBody,
	}
	switch {
	case in.Fault != nil:
		return e, in.Fault
	case len(in.Name) > 0 && string(in.Name) != r.Name, len(in.TypeURL) > 0 && !e.Locator && string(in.TypeURL) != l.TypeURL:
		return e, errOtherType
	case r.Expires.IsZero():
	// LKG-6: what is over is not loaded.
	case !l.now.Before(r.Expires):
		return e, errExpired
	default:
		e.Expires = l.now.Add(min(r.Expires.Sub(l.now), century)).UnixNano()
	}
	return e, nil
}

// version is a version as a text: most of a load have the same.
func (l *loading) version(b []byte) string {
	if string(b) != l.last {
		l.last = string(b)
	}
	return l.last
}
