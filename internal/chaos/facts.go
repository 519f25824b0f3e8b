package chaos

import (
	"fmt"
	"slices"

	"github.com/xdswatch/xdswatch/xdstp"
)

// source is the servers that may say a name, in order of priority. Of names of the authority they are all servers
// but the first, if there are others.
type source int

const (
	ofPlain source = iota
	ofAuthority
	sources
)

func sourceOf(name string) source {
	if xdstp.IsXDSTP(name) {
		return ofAuthority
	}
	return ofPlain
}

// first is the first server of a source.
func (w *world) first(from source) int { return min(int(from), w.spares) }

// active is the server of a source whose word counts: the first that can be reached; nil if none can.
func (w *world) active(from source) *site {
	for _, s := range w.sites[w.first(from):] {
		if s.reached {
			return s
		}
	}
	return nil
}

// isActive says whether a server's word counts for some names.
func (s *site) isActive() bool { return s == s.active(ofPlain) || s == s.active(ofAuthority) }

// precedes says whether a server is one of a source, and another after it is the active one.
func (s *site) precedes(from source) bool {
	active := s.active(from)
	return active != nil && s.first(from) <= s.index && s.index < active.index
}

// largeResource is more than grpc writes at once.
const largeResource = 40_000

// names is how many resources each type may have, of each form of name.
const names = 10

// fact is what a server says of a resource. Each state that it says has a revision of its own, so
// that a value tells who said it, and when. The server's process has no use for what is not exported.
type fact struct {
	Kind    int // index into kinds
	Name    string
	Present bool
	Rev     int
	Size    int  // of the padding, in bytes
	Bad     bool // a cluster that validation refuses

	by     *site
	number int  // in its name
	stayed bool // it is there, and was since all watches were last right
}

// edit is what becomes of a fact. If it says true, that is a new state.
type edit func(*fact) bool

// changed touches each resource with a probability: it then comes, changes or goes. Servers in
// state of the world cannot say of other types than listeners and clusters that a resource went,
// so there those stay (xDS protocol, "Deleting Resources"). The first of each type is always there.
func (w *world) changed(touch float64) edit {
	return func(f *fact) bool {
		first := f.number == 0
		if w.rng.Float64() >= touch && (f.Present || !first) {
			return false
		}
		f.Size = 0
		if f.Present && !first && (w.delta || kinds[f.Kind].typ.FullState()) && w.rng.IntN(3) == 0 {
			f.Present, f.stayed = false, false
			return false
		}
		f.Present = true
		if w.rng.IntN(20) == 0 && w.via != viaMemory { // where nothing is written at once
			f.Size = largeResource
		}
		return true
	}
}

// refreshed changes every resource that is there, which then has no padding, and leaves the others absent.
func refreshed(f *fact) bool {
	f.Size = 0
	return f.Present
}

// spoiled makes the clusters bad whose number is even, or all good again, as they were. What they were stays the
// last good state of them.
func spoiled(on bool) edit {
	return func(f *fact) bool {
		f.Bad = on && kinds[f.Kind].label == "cds" && f.number%2 == 0
		return false
	}
}

// lies says whether a server, named by its URI, cannot have said this of a resource: a value that it never
// gave it, or that it does not exist while the server has it, and had it since all watches were last right.
func (w *world) lies(uri, name string, what holding) bool {
	i := slices.IndexFunc(w.sites, func(s *site) bool { return s.uri == uri })
	if i < 0 {
		return true
	}
	f := w.sites[i].facts[name]
	if what.has() {
		return what.rev < 0 || what.rev >= len(w.said) || w.said[what.rev] != f
	}
	return f != nil && f.stayed
}

// allIsRight notes that everything is right, by the word of the active servers.
func (w *world) allIsRight() {
	for _, s := range w.sites {
		for _, f := range s.facts {
			if w.active(sourceOf(f.Name)) == s {
				f.stayed = f.Present
			}
		}
	}
}

// fault notes that something is wrong.
func (w *world) fault(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	w.log.Printf("FAULT: %s", text)
	w.faults = append(w.faults, text)
}
