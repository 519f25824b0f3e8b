package client

import (
	"context"
	"testing"

	"github.com/xdswatch/xdswatch/internal/machine"
)

// BenchmarkTell tells ten thousand watches of one resource of one change of it.
func BenchmarkTell(b *testing.B) {
	c := &Client{}
	n := &machine.Notice{Owner: &Event[any]{Kind: EventUpdated, Name: "a", Version: "1"}}
	heard := 0
	for range 10_000 {
		s := &single{handler: Handler[any](func(ev Event[any]) { heard += len(ev.Name) })}
		s.init(context.Background(), c, nil)
		s.answer.state.Store(answerValue)
		s.watch.Owner = s
		n.To = append(n.To, &s.watch)
	}
	for b.Loop() {
		next := 0
		n.To[0].Owner.(*single).TellAll(n, n.To, &next)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(n.To)), "ns/watch")
}
