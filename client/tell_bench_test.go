package client

import (
	"context"
	"testing"

	"github.com/xdswatch/xdswatch/internal/machine"
)

// BenchmarkTell tells ten thousand watches of one resource of one change of it.
func BenchmarkTell(b *testing.B) {
	c := &Client{}
	n := &machine.Notice{Owner: &sharedEvent{Event: Event[any]{Kind: EventUpdated, Name: "a", Version: "1"}}}
	heard := 0
	var all []*single
	for range 10_000 {
		s := &single{handler: Handler[any](func(ev Event[any]) { heard += len(ev.Name) })}
		s.init(context.Background(), c, nil)
		s.answer.state.Store(answerValue)
		n.To = append(n.To, &s.watch)
		all = append(all, s)
	}
	for b.Loop() {
		for _, s := range all {
			s.Tell(n)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(all)), "ns/watch")
}
