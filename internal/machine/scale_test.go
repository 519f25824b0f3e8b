package machine

import (
	"fmt"
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
