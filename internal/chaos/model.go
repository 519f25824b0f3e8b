package chaos

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
)

// model knows what the servers say, and judges what watches are told. Safe for concurrent
// use.
type model struct {
	kinds []kind
	delta bool
	large int // bytes of padding of some resources
	log   *journal

	mu       sync.Mutex
	truths   []*truth // of the servers in order of priority
	active   int      // whose word counts at rest; nobody if none can be reached
	recalled bool     // nobody can, and a store has all that the first had said
	subs     map[*sub]struct{}
	faults   []string
}

// nobody is who is active when no server can be reached.
const nobody = -1

// key names a resource.
type key struct {
	kind int
	name string
}

// largeResource is more than grpc writes at once.
const largeResource = 40_000

// names is how many resources each type may have.
const names = 10

// servers is how many a world has at most.
const servers = 3

// newModel makes a model of a world's servers.
func newModel(v variant, log *journal) *model {
	m := &model{kinds: kinds(), delta: v.delta, log: log, subs: map[*sub]struct{}{}}
	if v.via != viaMemory { // where nothing is written at once
		m.large = largeResource
	}
	for n := range 1 + v.spares {
		m.truths = append(m.truths, newTruth(m, n))
	}
	return m
}

// source finds the server that an event names.
func (m *model) source(uri string) *truth {
	for _, h := range m.truths {
		if h.uri == uri {
			return h
		}
	}
	return nil
}

// truthful says whether a revision is one that the server gave a resource.
func (m *model) truthful(uri string, k key, rev int) bool {
	h := m.source(uri)
	return h != nil && h.facts[k] != nil && h.facts[k].revs[rev]
}

// sayer is the server whose revision it is.
func (m *model) sayer(rev int) int { return rev % len(m.truths) }

// missed says whether a server that says that something does not exist has it, and had it since all
// watches were last right: whoever is told so is told a lie.
func (m *model) missed(uri string, k key) bool {
	h := m.source(uri)
	return h == nil || h.facts[k] != nil && h.facts[k].stayed
}

// named is the server that the text of an error names.
func (m *model) named(err error) string {
	for _, h := range m.truths {
		if strings.Contains(err.Error(), strconv.Quote(h.uri)) {
			return h.uri
		}
	}
	return ""
}

// use says whose word counts from now on; nobody's, then maybe that a store has all that was said.
func (m *model) use(server int, recalled bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.active, m.recalled = server, recalled
}

// activeLocked is what the server says whose word counts; nil if nobody's does.
func (m *model) activeLocked() *truth {
	if m.active == nobody {
		return nil
	}
	return m.truths[m.active]
}

// faultLocked notes that something is wrong.
func (m *model) faultLocked(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	m.log.add("FAULT: %s", text)
	m.faults = append(m.faults, text)
}

// settle notes that everything is right, by the word of the server that is used.
func (m *model) settle() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if h := m.activeLocked(); h != nil {
		for _, f := range h.facts {
			f.stayed = f.Present
		}
	}
}
