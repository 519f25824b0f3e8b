package machine

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/xdswatch/xdswatch/authority"
	"github.com/xdswatch/xdswatch/internal/wire"
	"github.com/xdswatch/xdswatch/resource"
	"github.com/xdswatch/xdswatch/testutil/script"
	"github.com/xdswatch/xdswatch/xdstp"
)

// tick is how much time passes with each step, so that requests that are held back for a
// moment leave within it.
const tick = 10 * time.Millisecond

// driver does to a machine what an engine would, at once unless a script holds it back.
type driver struct {
	t       *testing.T
	m       *Machine
	now     time.Time
	delta   bool
	manual  bool // streams open by "up" and "fail"
	verbose bool // says what is decoded
	many    bool // servers
	script  *script.Script
	sources map[string]int32 // by authority; old-style names have the first
	kinds   map[string]resource.AnyType
	types   map[string]*Type
	watches map[string]*Watch
	blocked map[*Watch]bool
	out     []string

	ref     Ref          // the stream that was asked for last
	waiting []Ref        // streams, for the end of their backoff
	dead    map[int]bool // servers
	numbers []Ref        // of the streams that came up, in order

	stalled   bool // writers
	unwritten []Send
	slow      bool // workers
	pondering bool // guards
	proposals []*Proposal
	undecoded []*Task
	reading   map[Ref]bool    // streams of which a response may be read
	unread    map[Ref][]Event // what came while none might
	held      []Ref           // delivery waits for a handler
	unheard   []int           // streams of whose trouble the news waits for a handler

	store map[string][]Kept // by short type
	loads []*Load           // that the store has not answered
	stuck bool              // it
}

func newDriver(t *testing.T, s *script.Script) *driver {
	server := Server{
		Delta:            s.Has("server", "delta"),
		PerType:          s.Has("server", "per-type"),
		KeepDeleted:      s.Has("server", "ignore_resource_deletion"),
		FailOnDataErrors: s.Has("server", "fail_on_data_errors"),
		ResumeVersion:    s.Has("server", "resume_version"),
		ExplicitWildcard: s.Has("server", "explicit_wildcard"),
		NodeAlways:       s.Has("client", "node-always"),
	}
	if s.Has("server", "resource_timer_is_transient_error") {
		server.TransientTimeout = 30 * time.Second
	}
	if s.Has("server", "rate_limit_settings") {
		server.Rate = Rate{Tokens: script.RateTokens, Every: script.RateEvery}
	}
	c := Config{ResourceTimeout: 15 * time.Second, Linger: time.Second}
	if s.Has("client", "no-timers") {
		c.ResourceTimeout = -1
	}
	servers := slices.Repeat([]Server{server}, s.Servers())
	source := Source{Stored: s.Has("client", "store"), Servers: s.Order(""), Params: wire.NewParams(s.Params(authority.OldLabel)), Answers: answers(s)}
	return &driver{
		t: t, m: newMachine(c, servers, source), now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), delta: server.Delta,
		manual: s.Has("server", "manual"), many: len(servers) > 1, verbose: s.Has("show", "decode"),
		kinds: script.Kinds(), types: map[string]*Type{}, watches: map[string]*Watch{},
		script: s, sources: map[string]int32{}, dead: map[int]bool{}, blocked: map[*Watch]bool{}, reading: map[Ref]bool{}, unread: map[Ref][]Event{},
		store: map[string][]Kept{},
	}
}

// run does one input line, of commands set apart by semicolons, and returns what came of it.
func (d *driver) run(input string) []string {
	d.out = nil
	var events []Event
	for _, command := range strings.Split(input, ";") {
		words := strings.Fields(command)
		if ev := d.event(words); ev != nil {
			events = append(events, ev)
		} else {
			d.act(words)
		}
	}
	events = slices.DeleteFunc(events, d.putOff)
	if len(events) > 0 {
		d.step(events...)
	}
	d.pass(tick)
	return d.out
}

// event makes the event of a command, or nil if it is none for the machine itself.
func (d *driver) event(words []string) Event {
	verb, ref := d.target(words[0])
	switch verb {
	case "watch":
		return Start{d.watch(words[1:])}
	case "unwatch":
		return Stop{d.watches[words[1]]}
	case "up":
		d.numbers = append(d.numbers, ref)
		return Up{ref, []byte{0x0a, 1, 'n'}}
	case "fail":
		return Down{Ref: ref, Kind: FaultConnection, Err: errors.New(strings.Join(words, " "))}
	case "recv":
		return Received{ref, scanned(d.t, words[1:], d.delta)}
	case "end":
		d.forget(ref)
		return Down{Ref: ref, Kind: FaultStream, Err: errors.New(strings.Join(words, " "))}
	case "describe":
		return ParamsChanged{d.typeOf(words[1]).URL, script.Values(words[2:])}
	case "retry":
		if verb != words[0] { // without a number it is for all that wait
			d.waiting = slices.DeleteFunc(d.waiting, func(r Ref) bool { return r == ref })
			return Retry{ref}
		}
	}
	return nil
}

// target splits "recv/2" into the command and the stream that it is for: that of a number,
// or else the one that came up or was asked for last.
func (d *driver) target(word string) (string, Ref) {
	verb, number, ok := strings.Cut(word, "/")
	switch {
	case ok:
	case len(d.numbers) > 0 && (verb == "recv" || verb == "end"):
		return verb, d.numbers[len(d.numbers)-1]
	default:
		return verb, d.ref
	}
	n, err := strconv.Atoi(number)
	if err != nil || n < 1 || n > len(d.numbers) {
		d.t.Fatalf("no stream %q", number)
	}
	return verb, d.numbers[n-1]
}

func (d *driver) watch(words []string) *Watch {
	name, err := xdstp.Canonical(words[2])
	if err != nil {
		d.t.Fatal(err)
	}
	w := &Watch{Owner: words[0], Type: d.typeOf(words[1]), Name: name}
	if n, err := xdstp.Parse(name); err == nil {
		spelling := n.SpelledAs(words[2])
		w.Spelling = &spelling
	}
	if w.Wildcard = w.Name[0] == '*' || xdstp.IsGlob(w.Name); w.Wildcard {
		w.Explicit = w.Name == "**"
	}
	if authority, ok := xdstp.AuthorityOf(w.Name); ok {
		w.Source = d.sourceOf(authority)
	}
	if d.script.Has("client", "initial_fetch_timeout") {
		w.FetchTimeout = script.FetchTimeout
	}
	if d.script.Has("client", "wait-forever") && words[0] != "impatient" {
		w.FetchTimeout, w.Patient = 0, true
	}
	d.watches[words[0]] = w
	return w
}

// answers says who answers for what, as the script's bootstrap has it.
func answers(s *script.Script) func(int, string) bool {
	return func(server int, authority string) bool { return slices.Contains(s.Order(authority), server) }
}

func (d *driver) sourceOf(authority string) int32 {
	at, ok := d.sources[authority]
	if !ok {
		at = int32(d.m.AddSource(Source{
			Servers:          d.script.Order(authority),
			ReachabilityOnly: d.script.Has("server", "fallback_on_reachability_only"),
			Params:           wire.NewParams(d.script.Params(authority)),
			Answers:          answers(d.script),
			Stored:           d.script.Has("client", "store"),
		}))
		d.sources[authority] = at
	}
	return at
}

// putOff puts off a response of a stream that is not read at the moment.
func (d *driver) putOff(ev Event) bool {
	r, ok := ev.(Received)
	if !ok {
		return false
	}
	may := d.reading[r.Ref]
	delete(d.reading, r.Ref)
	if !may {
		d.unread[r.Ref] = append(d.unread[r.Ref], ev)
	}
	return !may
}

// read takes the next response of a stream, now or when it comes.
func (d *driver) read(ref Ref) {
	waiting := d.unread[ref]
	if len(waiting) == 0 {
		d.reading[ref] = true
		return
	}
	d.unread[ref] = waiting[1:]
	d.step(waiting[0])
}

// forget drops what a stream left undone when it ended.
func (d *driver) forget(ref Ref) {
	delete(d.unread, ref)
	delete(d.reading, ref)
	d.unwritten = slices.DeleteFunc(d.unwritten, func(s Send) bool { return s.Ref == ref })
}

// scanned is the response that the words after recv say.
func scanned(t testing.TB, words []string, delta bool) *wire.Response {
	frame, err := script.Response(words, delta)
	if err != nil {
		t.Fatal(err)
	}
	scan := wire.ScanSotW
	if delta {
		scan = wire.ScanDelta
	}
	r, err := scan(frame)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (d *driver) typeOf(short string) *Type {
	if d.types[short] == nil {
		k := d.kinds[short]
		if k == nil {
			d.t.Fatalf("no type %q", short)
		}
		d.types[short] = &Type{
			URL: k.TypeURL(), FullState: k.FullState(), Segment: xdstp.TypeSegment(k.TypeURL()), NameField: k.NameField(), Stored: true, Guarded: d.script.Has("client", "guarded"),
		}
		switch {
		case d.script.Has("client", "keep-deleted"):
			d.types[short].DeletionKeep = -1
		case d.script.Has("client", "keep-deleted-for"):
			d.types[short].DeletionKeep = script.DeletionGrace
		}
	}
	return d.types[short]
}

// act does what holds the driver back or lets it go on.
func (d *driver) act(words []string) {
	switch words[0] {
	case "sleep":
		dur, err := time.ParseDuration(words[1])
		if err != nil {
			d.t.Fatal(err)
		}
		d.pass(dur)
	case "retry":
		for _, r := range take(&d.waiting) {
			d.step(Retry{r})
		}
	case "die", "live":
		d.dead[script.Number(words[1])] = words[0] == "die"
	case "block":
		d.blocked[d.watches[words[1]]] = true
	case "unblock":
		delete(d.blocked, d.watches[words[1]])
		for len(d.blocked) == 0 && len(d.held) > 0 {
			ref := d.held[0]
			d.held = d.held[1:]
			d.step(Delivered{ref})
		}
		for len(d.blocked) == 0 && len(d.unheard) > 0 {
			i := d.unheard[0]
			d.unheard = d.unheard[1:]
			d.step(Heard{i})
		}
	case "stall":
		d.stalled = true
	case "flow":
		d.stalled = false
		for _, s := range take(&d.unwritten) {
			d.leave(s)
		}
	case "slow":
		d.slow = true
	case "decode":
		d.slow = false
		for _, t := range take(&d.undecoded) {
			d.step(Decoded{t, d.decode(t)})
		}
	case "ponder":
		d.pondering = true
	case "judge":
		d.pondering = false
		for _, p := range take(&d.proposals) {
			d.step(Guarded{p, script.Guard(p.Held, p.Left)})
		}
	case "store":
		d.put(words[1], words[2:])
	case "stick":
		d.stuck = true
	case "load":
		d.stuck = false
		for _, ld := range take(&d.loads) {
			d.answer(ld)
		}
	case "dump":
		d.dump()
	default:
		d.t.Fatalf("no command %q", words[0])
	}
}

func take[T any](list *[]T) []T {
	taken := *list
	*list = nil
	return taken
}

// pass lets time go by, running the machine when it wants to be run.
func (d *driver) pass(dur time.Duration) {
	end := d.now.Add(dur)
	for range 10000 {
		at, ok := d.m.Deadline()
		if !ok || at.After(end) {
			d.now = end
			return
		}
		if at.After(d.now) {
			d.now = at
		}
		d.step(Tick{})
	}
	d.t.Fatal("the machine's deadline does not move")
}

// step does everything that an engine would because of some events.
func (d *driver) step(events ...Event) {
	fx := d.m.Step(d.now, events...)
	troubled := map[int]bool{}
	for _, n := range fx.Notify {
		d.tell(n)
		if n.Trouble {
			troubled[n.Stream.Stream] = true
		}
	}
	for _, p := range fx.Guard {
		if d.pondering {
			d.print("* guard: %d of %d are left", p.Left, p.Held)
			d.proposals = append(d.proposals, p)
			continue
		}
		d.step(Guarded{p, script.Guard(p.Held, p.Left)})
	}
	for _, t := range fx.Decode {
		if d.slow {
			d.undecoded = append(d.undecoded, t)
		} else {
			d.step(Decoded{t, d.decode(t)})
		}
	}
	for _, r := range fx.Close {
		d.forget(r)
		d.print("* close%s", d.whose(d.m.streams[r.Stream].server))
	}
	for _, o := range fx.Open {
		d.ref = o.Ref
		d.print("* open%s", cmp.Or(d.whose(o.Server), space(script.Short(o.Type.url()))))
		switch {
		case d.dead[o.Server]:
			d.step(d.event([]string{"fail"}))
		case !d.manual:
			d.step(d.event([]string{"up"}))
		}
	}
	for _, w := range fx.Wait {
		d.forget(w.Ref)
		d.waiting = append(d.waiting, w.Ref)
		d.print("* wait%s%s", map[bool]string{true: " after a response"}[w.Short && w.Fault != nil], map[bool]string{true: " after giving up"}[w.Short && w.Fault == nil])
	}
	for _, s := range fx.Send {
		if d.stalled {
			d.unwritten = append(d.unwritten, s)
		} else {
			d.leave(s)
		}
	}
	for _, l := range fx.Log {
		d.print("* log %s: %s", map[bool]string{true: "warn", false: "info"}[l.Warn], l.Text)
	}
	for _, k := range fx.Keep {
		for _, line := range keeps(k) {
			d.print("* %s", line)
		}
	}
	for _, ld := range fx.Load {
		d.print("* load %s %v", script.Short(ld.TypeURL), ld.Names)
		if d.stuck {
			d.loads = append(d.loads, ld)
		} else {
			d.answer(ld)
		}
	}
	for _, r := range fx.consumed() {
		if len(d.blocked) > 0 {
			d.held = append(d.held, r)
		} else {
			d.step(Delivered{r})
		}
	}
	for _, r := range fx.Read {
		d.read(r)
	}
	for _, i := range slices.Sorted(maps.Keys(troubled)) {
		if len(d.blocked) > 0 {
			d.unheard = append(d.unheard, i)
		} else {
			d.step(Heard{i})
		}
	}
}

// whose marks the server where there are two.
func (d *driver) whose(server int) string {
	if !d.many {
		return ""
	}
	return " " + strings.Repeat("@", server+1)
}

func space(word string) string {
	if word == "" {
		return ""
	}
	return " " + word
}
