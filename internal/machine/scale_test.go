package machine

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/xdswatch/xdswatch/internal/wire"
	"github.com/xdswatch/xdswatch/xdstp"
)

// What a machine does for one thing must not cost more because there are many others: the
// figures for each must stay what they are as their number grows.

func perItem(b *testing.B, run func(b *testing.B, n int)) {
	for _, n := range []int{1000, 4000, 16000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				run(b, n)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/each")
		})
	}
}

func scaleMachine(n int) *Machine {
	m := New(Config{ResourceTimeout: 15 * time.Second, Linger: time.Second})
	for i := range n {
		m.AddServer(Server{Delta: true})
		m.AddSource(Source{Servers: []int{i}, Scope: i}) // since they have the same names
	}
	return m
}

var (
	scaleType = &Type{URL: "type.googleapis.com/test.Foo"}
	scaleNow  = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
)

func globOf(i int) *Watch {
	return &Watch{Type: scaleType, Name: fmt.Sprintf("xdstp://a/test.Foo/%d/*", i), Wildcard: true}
}

// A step looks at the streams that something happened to or whose time has come, and at no
// other. One that nobody uses any more is never looked at again.
func TestStepLooksAtFew(t *testing.T) {
	m, now := scaleMachine(10), scaleNow
	looked := func(what string, want ...int) {
		t.Helper()
		var got []int
		for _, s := range m.agenda.due(now) {
			got = append(got, s.ref.Stream)
			m.ringDue(now, s)
			again := m.send(now, s)
			m.agenda.put(s, sooner(again, s.deadline()))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: looked at %v, want %v", what, got, want)
		}
	}
	ws := make([]*Watch, 10)
	for i := range ws {
		ws[i] = &Watch{Type: scaleType, Name: "a", Source: int32(i)}
		m.Step(now, Start{ws[i]})
		m.Step(now, Up{Ref: Ref{i, 1}})
	}
	looked("nothing happened")
	m.handle(now, Written{Ref{4, 1}})
	m.handle(now, Written{Ref{3, 1}})
	looked("two were written", 3, 4)
	now = now.Add(time.Second)
	m.handle(now, Written{Ref{5, 1}})
	looked("one was written", 5)
	now = now.Add(14 * time.Second)
	looked("two timers ran out", 3, 4)
	for _, w := range ws {
		m.Step(now, Stop{w})
	}
	looked("all linger")
	now = now.Add(time.Second)
	looked("all are over", 0, 1, 2, 3, 4, 5, 6, 7, 8, 9)
	if at, ok := m.Deadline(); ok {
		t.Errorf("a deadline is left: %v", at)
	}
}

// A new glob has what it covers. What has gone is not listed.
func TestMembers(t *testing.T) {
	m := scaleMachine(1)
	watch := func(name string) *Watch {
		w := &Watch{Type: scaleType, Name: name}
		m.Step(scaleNow, Start{w})
		return w
	}
	for i := range 100 {
		watch(fmt.Sprintf("xdstp://a/test.Foo/%d/x", i%50))
		watch(fmt.Sprintf("xdstp://a/test.Foo/%d/y", i%50))
		watch(fmt.Sprint("old", i))
	}
	m.Step(scaleNow, Start{globOf(7)})
	ts := m.streams[0].link(scaleType.URL)
	for i := range 10000 {
		m.Step(scaleNow, Stop{watch(fmt.Sprintf("xdstp://a/test.Foo/%d/z", i))})
	}
	m.Step(scaleNow, Start{globOf(8)})
	for i, want := range map[int]int{7: 2, 8: 2} {
		if n := len(globOfType(ts, i).members); n != want {
			t.Errorf("glob %d has %d members, want %d", i, n, want)
		}
	}
	sh := m.working[sourceKey{}].shares[0]
	if n, globs := len(sh.plain.members), len(sh.globs); n != 96 || globs != 2 {
		t.Errorf("the collection without a name has %d members, and there are %d globs; want 96 and 2", n, globs)
	}
	for i, sub := range sh.plain.members {
		if int(sub.at) != i {
			t.Errorf("member %d takes itself for number %d", i, sub.at)
		}
	}
}

func globOfType(ts *link, i int) *collection {
	return ts.cache.globs[pattern{before: fmt.Sprintf("xdstp://a/test.Foo/%d/", i)}]
}

// BenchmarkGlobs watches globs one by one, has a response for each with one member, and
// leaves them.
func BenchmarkGlobs(b *testing.B) {
	perItem(b, func(b *testing.B, n int) {
		m, now := scaleMachine(1), scaleNow
		step := func(events ...Event) {
			fx := m.Step(now, events...)
			now = now.Add(2 * time.Millisecond)
			for _, s := range fx.Send {
				m.Step(now, Written{s.Ref})
			}
			for _, t := range fx.Decode {
				m.Step(now, Decoded{t, []Result{{Value: 1}}})
			}
			for _, r := range fx.consumed() {
				m.Step(now, Delivered{r})
			}
		}
		ref := Ref{Gen: 1}
		var ws []*Watch
		for i := range n {
			ws = append(ws, globOf(i))
			if step(Start{ws[i]}); i == 0 {
				step(Up{Ref: ref})
			}
			step(Tick{})
		}
		for i := range n {
			step(Received{ref, &wire.Response{TypeURL: scaleType.URL, Nonce: "n", Resources: []wire.Resource{{
				Name: fmt.Appendf(nil, "xdstp://a/test.Foo/%d/x", i), Version: []byte("1"),
				TypeURL: []byte(scaleType.URL), Payload: []byte("x"), HasBody: true,
			}}}})
		}
		for _, w := range ws {
			step(Stop{w})
		}
	})
}

// authorities are many that have two servers in common, the first of which they prefer.
type authorities struct {
	m    *Machine
	now  time.Time
	n    int
	refs [2]Ref // of the servers' streams
}

func newAuthorities(n int) *authorities {
	c := Config{ResourceTimeout: 15 * time.Second, Linger: time.Second}
	a := &authorities{m: newMachine(c, []Server{{Delta: true}, {Delta: true}}), now: scaleNow, n: n}
	for range n {
		a.m.AddSource(Source{Servers: []int{0, 1}})
	}
	return a
}

// step goes on until nothing is to be done but to wait.
func (a *authorities) step(events ...Event) {
	for len(events) > 0 {
		fx := a.m.Step(a.now, events...)
		a.now = a.now.Add(2 * time.Millisecond)
		events = nil
		for _, o := range fx.Open {
			a.refs[o.Stream] = o.Ref
		}
		for _, s := range fx.Send {
			events = append(events, Written{s.Ref})
		}
		for _, t := range fx.Decode {
			rs := make([]Result, len(t.Items))
			for i := range t.Items {
				rs[i] = Result{Value: 1}
			}
			events = append(events, Decoded{t, rs})
		}
		for _, r := range fx.consumed() {
			events = append(events, Delivered{r})
		}
	}
}

func authorityName(i int, id string) string { return fmt.Sprintf("xdstp://a%d/test.Foo/%s", i, id) }

func (a *authorities) watch(i int, id string) *Watch {
	name := authorityName(i, id)
	return &Watch{Type: scaleType, Name: name, Source: int32(i), Wildcard: xdstp.IsGlob(name)}
}

// watchAll begins a watch for each, one by one.
func (a *authorities) watchAll(id string) (ws []*Watch) {
	for i := range a.n {
		ws = append(ws, a.watch(i, id))
		a.step(Start{ws[i]})
	}
	return ws
}

func (a *authorities) stopAll(ws []*Watch) {
	for _, w := range ws {
		a.step(Stop{w})
	}
}

func (a *authorities) up(server int) { a.step(Up{Ref: a.refs[server]}) }

func (a *authorities) down(server int) {
	a.step(Down{Ref: a.refs[server], Kind: FaultConnection, Err: ErrNoAnswer})
}

// answer has a server say the same of all.
func (a *authorities) answer(server int, id string) {
	resp := &wire.Response{TypeURL: scaleType.URL, Nonce: "n"}
	for i := range a.n {
		resp.Resources = append(resp.Resources, wire.Resource{
			Name: []byte(authorityName(i, id)), Version: []byte("1"), TypeURL: []byte(scaleType.URL),
			Payload: []byte("x"), HasBody: true,
		})
	}
	a.step(Received{a.refs[server], resp})
}

// on is how many use a server.
func (a *authorities) on(server int) (n int) {
	for _, ch := range a.m.working {
		if ch.active == server {
			n++
		}
	}
	return n
}

// fallTogether has all fall back at once, because of the first server, come back at once, and
// leave.
func fallTogether(t testing.TB, n int) {
	a := newAuthorities(n)
	ws := append(a.watchAll("x"), a.watchAll("glob/*")...)
	a.up(0)
	a.down(0)
	fell := a.on(1)
	a.up(1)
	a.answer(1, "x")
	a.step(Retry{a.refs[0]})
	a.up(0)
	a.answer(0, "x")
	if back := a.on(0); fell != n || back != n {
		t.Fatalf("%d fell back and %d came back, want %d", fell, back, n)
	}
	a.stopAll(ws)
}

// fallOvertaken has all come back by an answer that is faster than the news that its request has left.
func fallOvertaken(t testing.TB, n int) {
	a := newAuthorities(n)
	ws := a.watchAll("x")
	a.up(0)
	a.down(0)
	a.up(1)
	a.answer(1, "x")
	a.step(Retry{a.refs[0]})
	a.m.Step(a.now, Up{Ref: a.refs[0]})
	a.answer(0, "x")
	if back := a.on(0); back != n {
		t.Fatalf("%d came back, want %d", back, n)
	}
	a.stopAll(ws)
}

// fallOneByOne has each fall back alone, because of a watch that lacks something, come back
// with the others, and leave.
func fallOneByOne(t testing.TB, n int) {
	a := newAuthorities(n)
	ws := a.watchAll("x")
	a.up(0)
	a.answer(0, "x")
	a.down(0)
	first := a.watch(0, "first")
	a.step(Start{first})
	fell := a.on(1)
	a.up(1)
	ws = append(ws, a.watchAll("y")...)
	if all := a.on(1); fell != 1 || all != n {
		t.Fatalf("%d fell back at first and %d in all, want 1 and %d", fell, all, n)
	}
	a.answer(1, "y")
	a.step(Retry{a.refs[0]})
	a.up(0)
	a.answer(0, "x")
	if back := a.on(0); back != n {
		t.Fatalf("%d came back, want %d", back, n)
	}
	a.stopAll(append(ws, first))
}

var falls = []struct {
	name string
	run  func(testing.TB, int)
}{
	{"together", fallTogether},
	{"overtaken", fallOvertaken},
	{"one by one", fallOneByOne},
}

// BenchmarkFallback has authorities fall back, come back and leave.
func BenchmarkFallback(b *testing.B) {
	for _, f := range falls {
		b.Run(f.name, func(b *testing.B) {
			perItem(b, func(b *testing.B, n int) { f.run(b, n) })
		})
	}
}

// What an authority allocates to fall back and to come back does not grow with the others.
func TestFallbackAllocates(t *testing.T) {
	for _, f := range falls {
		each := func(n int) uint64 {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			f.run(t, n)
			runtime.ReadMemStats(&after)
			return (after.TotalAlloc - before.TotalAlloc) / uint64(n)
		}
		if few, many := each(200), each(1600); many > 2*few {
			t.Errorf("%s: %d bytes each with 1600, %d with 200", f.name, many, few)
		}
	}
}

// A chain that falls back looks at no entry of another.
func TestFallbackLooksAtItsOwn(t *testing.T) {
	a := newAuthorities(20)
	a.watchAll("x")
	a.up(0)
	a.answer(0, "x")
	a.down(0)
	a.step(Start{a.watch(0, "y")})
	a.up(1)
	for i := range 10 {
		a.m.handle(a.now, Start{a.watch(i, "y")})
	}
	const own = 15
	c := a.m.caches[cacheKey{0, scaleType.URL}]
	for i, sub := range c.subs.list {
		if sub.of.source != a.m.working[sourceKey{source: own}] {
			c.subs.list[i] = &subscription{name: sub.name} // which the index compares
		}
	}
	a.m.handle(a.now, Start{a.watch(own, "y")})
	if n := a.on(1); n != 11 {
		t.Errorf("%d fell back, want 11", n)
	}
}

// BenchmarkSources asks one server after another for a resource, and hears from each.
func BenchmarkSources(b *testing.B) {
	perItem(b, func(b *testing.B, n int) {
		m, now := scaleMachine(n), scaleNow
		for i := range n {
			ref := Ref{i, 1}
			m.Step(now, Start{&Watch{Type: scaleType, Name: "a", Source: int32(i)}})
			m.Step(now, Up{Ref: ref})
			m.Step(now, Written{ref})
			m.Deadline()
			m.Step(now, Received{ref, &wire.Response{TypeURL: scaleType.URL, Nonce: "n"}})
			m.Deadline()
		}
		for i := range n {
			m.Step(now, Down{Ref: Ref{i, 1}, Kind: FaultStream, Err: ErrNoAnswer})
			m.Deadline()
		}
	})
}
