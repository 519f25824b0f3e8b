package machine

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/xdswatch/xdswatch/internal/wire"
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
	c := Config{ResourceTimeout: 15 * time.Second, Linger: time.Second}
	for i := range n {
		c.Servers = append(c.Servers, Server{Delta: true})
		c.Sources = append(c.Sources, Source{Servers: []int{i}})
	}
	return New(c)
}

var (
	scaleType = &Type{URL: "type.googleapis.com/test.Foo"}
	scaleNow  = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
)

func globOf(i int) *Watch {
	return &Watch{Type: scaleType, Name: fmt.Sprintf("xdstp://a/test.Foo/%d/*", i), Authority: "a", Wildcard: true}
}

// A step looks at the streams that something happened to or whose time has come, and at no
// other. One that nobody uses any more is never looked at again.
func TestStepLooksAtFew(t *testing.T) {
	m, now := scaleMachine(10), scaleNow
	looked := func(what string, want ...int) {
		t.Helper()
		var got []int
		for _, s := range m.agenda.take(now) {
			got = append(got, s.index)
			m.expire(now, s)
			m.send(now, s)
			m.agenda.put(s, s.deadline())
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

// A new glob looks at what it covers. What has gone is not listed for ever.
func TestLooseEntries(t *testing.T) {
	m := scaleMachine(1)
	watch := func(name string) *Watch {
		w := &Watch{Type: scaleType, Name: name, Authority: "a"}
		m.Step(scaleNow, Start{w})
		return w
	}
	for i := range 100 {
		watch(fmt.Sprintf("xdstp://a/test.Foo/%d/x", i%50))
		watch(fmt.Sprintf("xdstp://a/test.Foo/%d/y", i%50))
		watch(fmt.Sprint("old", i))
	}
	m.Step(scaleNow, Start{globOf(7)})
	ts := m.streams[0].types[scaleType.URL]
	if n := len(globOfType(ts, 7).members); n != 2 || ts.loose.n != 98 {
		t.Errorf("the glob has %d members, %d entries are loose; want 2 and 98", n, ts.loose.n)
	}
	for i := range 10000 {
		m.Step(scaleNow, Stop{watch(fmt.Sprintf("xdstp://a/test.Foo/%d/z", i))})
	}
	if n := ts.loose.n; n > 64+3*len(ts.entries) {
		t.Errorf("%d loose entries are listed, there are %d of any kind", n, len(ts.entries))
	}
	m.Step(scaleNow, Start{globOf(8)})
	if n := len(globOfType(ts, 8).members); n != 2 {
		t.Errorf("the second glob has %d members, want 2", n)
	}
}

func globOfType(ts *typeState, i int) *collection {
	return ts.globs[pattern{before: fmt.Sprintf("xdstp://a/test.Foo/%d/", i)}]
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
				m.Step(now, Decoded{t, []Result{{Value: 1, Raw: t.Items[0].Raw}}})
			}
			for _, r := range fx.Consumed {
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
				TypeURL: []byte(scaleType.URL), Payload: []byte("x"), HasBody: true, Wrapped: true,
			}}}})
		}
		for _, w := range ws {
			step(Stop{w})
		}
	})
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
			m.Step(now, Down{Ref: Ref{i, 1}, Kind: FaultStream, Err: errNoAnswer})
			m.Deadline()
		}
	})
}
