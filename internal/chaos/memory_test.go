package main

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"sync"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/xdswatch/xdswatch/testutil"
)

// memory is a management server in memory that keeps to the protocol to the letter. It
// serves a model's state.
type memory struct {
	*testutil.Server
	kinds []kind
	// complain is told of requests that break the protocol.
	complain func(string)
	// terse has it stay silent, in state of the world, to who begins with its version.
	terse bool

	mu      sync.Mutex // also held while sending
	version string
	items   map[string]map[string]item // by type URL and name
	open    map[*testutil.Stream]map[string]*interest
}

// interest is what a stream wants of a type, and what was sent there.
type interest struct {
	names  map[string]bool
	wild   bool
	legacy bool // an empty list still means everything
	nonce  int
	sent   map[string]string // versions by name
}

func newMemory(name string) *memory {
	m := &memory{kinds: kinds(), open: map[*testutil.Stream]map[string]*interest{}}
	m.Server = testutil.NewServer(testutil.Named(name), testutil.Unrecorded(), testutil.OnRequest(m.request))
	return m
}

// set serves a state.
func (m *memory) set(s *state) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.version, m.items = s.Version, map[string]map[string]item{}
	for _, k := range m.kinds {
		m.items[k.typ.TypeURL()] = map[string]item{}
	}
	for _, i := range s.Items {
		m.items[m.kinds[i.Kind].typ.TypeURL()][i.Name] = i
	}
	for st, types := range m.open {
		select {
		case <-st.Done():
			delete(m.open, st)
			continue
		default:
		}
		for _, url := range slices.Sorted(maps.Keys(types)) {
			m.respond(st, url, types[url], nil)
		}
	}
}

// streams are those that stand.
func (m *memory) streams() []*testutil.Stream {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.SortedFunc(maps.Keys(m.open), func(a, b *testutil.Stream) int { return a.ID - b.ID })
}

// asks lists, for each stream that stands, what is asked for there by type URL.
func (m *memory) asks() (all []map[string][]string) {
	for _, st := range m.streams() {
		if st.Err() == nil {
			all = append(all, m.asksOf(st))
		}
	}
	return all
}

func (m *memory) asksOf(st *testutil.Stream) map[string][]string {
	m.mu.Lock()
	defer m.mu.Unlock()
	asked := map[string][]string{}
	for url, in := range m.open[st] {
		names := slices.Sorted(maps.Keys(in.names))
		if in.wild {
			names = slices.Insert(names, 0, "*")
		}
		if len(names) > 0 {
			asked[url] = names
		}
	}
	return asked
}

// inMemory is the dialer of a client of several such servers.
func inMemory(servers []*memory) []grpc.DialOption {
	var all []*testutil.Server
	for _, m := range servers {
		all = append(all, m.Server)
	}
	return []grpc.DialOption{testutil.InMemory(all...)}
}

func (m *memory) request(st *testutil.Stream, r *testutil.Request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	select {
	case <-st.Done():
		return // what was said before it ended, and forgotten with it
	default:
	}
	if m.open[st] == nil {
		m.open[st] = map[string]*interest{}
	}
	in := m.open[st][r.TypeURL()]
	first := in == nil
	if first {
		if r.Nonce() != "" || r.ErrorDetail() != nil {
			m.complain(fmt.Sprintf("an answer before any response: %v", r))
		}
		in = &interest{names: map[string]bool{}, legacy: true, sent: map[string]string{}}
		m.open[st][r.TypeURL()] = in
	}
	if !first && r.Nonce() != "" && in.nonce < atoi(r.Nonce()) {
		m.complain(fmt.Sprintf("a nonce that was never given: %v", r))
	}
	if st.Delta {
		m.delta(st, r, in, first)
	} else if first || r.Nonce() == fmt.Sprint(in.nonce) || r.Nonce() == "" && in.nonce == 0 {
		m.sotw(st, r, in, first)
	}
}

// atoi reads a nonce of this server's; those of others are larger than any.
func atoi(nonce string) int {
	n, err := strconv.Atoi(nonce)
	if err != nil {
		return math.MaxInt
	}
	return n
}

func (m *memory) sotw(st *testutil.Stream, r *testutil.Request, in *interest, first bool) {
	wanted := map[string]bool{}
	for _, n := range r.Names() {
		wanted[n] = true
	}
	in.legacy = in.legacy && len(wanted) == 0
	wild := in.legacy || wanted["*"]
	delete(wanted, "*")
	changed := first || wild != in.wild || !maps.Equal(wanted, in.names)
	in.wild, in.names = wild, wanted
	if first && m.terse && r.SotW.GetVersionInfo() == m.version {
		return
	}
	if changed && (wild || len(wanted) > 0) {
		m.respond(st, r.TypeURL(), in, r.Names())
	}
}

func (m *memory) delta(st *testutil.Stream, r *testutil.Request, in *interest, first bool) {
	if first {
		maps.Copy(in.sent, r.Delta.GetInitialResourceVersions())
		in.wild = len(r.Names()) == 0
	}
	asked := slices.Clone(r.Names())
	for _, n := range r.Unsubscribed() {
		if n == "*" {
			in.wild = false
			continue
		}
		delete(in.names, n)
		if in.wild {
			asked = append(asked, n) // it is told what becomes of it
		} else {
			delete(in.sent, n)
		}
	}
	for _, n := range r.Names() {
		if n == "*" {
			in.wild = true
		} else {
			in.names[n] = true
		}
		if !first {
			delete(in.sent, n)
		}
	}
	maps.DeleteFunc(in.sent, func(n, _ string) bool { return !in.wild && !in.names[n] })
	m.respond(st, r.TypeURL(), in, asked)
}

// respond says what is new for a stream, and what was asked for.
func (m *memory) respond(st *testutil.Stream, url string, in *interest, asked []string) {
	var message proto.Message
	if st.Delta {
		message = m.deltaResponse(url, in, asked)
	} else {
		message = m.sotwResponse(url, in)
	}
	if message != nil {
		_ = st.Send(message) // a stream that is over needs none
	}
}

func (m *memory) sotwResponse(url string, in *interest) proto.Message {
	var resources []proto.Message
	for _, name := range slices.Sorted(maps.Keys(m.items[url])) {
		if in.wild || in.names[name] {
			resources = append(resources, m.items[url][name].message(m.kinds))
		}
	}
	in.nonce++
	return testutil.SotW(url, m.version, fmt.Sprint(in.nonce), resources...)
}

func (m *memory) deltaResponse(url string, in *interest, asked []string) proto.Message {
	var changed []*discoveryv3.Resource
	var removed []string
	items := m.items[url]
	for _, name := range slices.Sorted(maps.Keys(items)) {
		version := fmt.Sprint(items[name].Rev)
		if (in.wild || in.names[name]) && in.sent[name] != version {
			changed = append(changed, testutil.Wrapped(name, version, items[name].message(m.kinds)))
			in.sent[name] = version
		}
	}
	for _, name := range asked {
		if _, ok := items[name]; !ok && name != "*" {
			removed = append(removed, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(in.sent)) {
		if _, ok := items[name]; !ok {
			removed = append(removed, name)
			delete(in.sent, name)
		}
	}
	if len(changed)+len(removed) == 0 && (in.nonce > 0 || !in.wild) {
		return nil
	}
	in.nonce++
	slices.Sort(removed)
	return testutil.Delta(url, fmt.Sprint(in.nonce), changed, slices.Compact(removed)...)
}
