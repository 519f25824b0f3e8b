package client

import (
	"context"
	"testing"

	"github.com/xdswatch/xdswatch/internal/machine"
)

// BenchmarkTell tells ten thousand watches of one resource of one change of it.
func BenchmarkTell(b *testing.B) {
	v := &view{client: &Client{}}
	n := &machine.Notice{Owner: &round{event: Event[any]{Kind: EventUpdated, Name: "a", Version: "1"}}}
	letters, next := 0, new(int)
	for range 10_000 {
		s := &single{handler: Handler[any](func(ev Event[any]) { letters += len(ev.Name) })}
		s.init(context.Background(), v, isOne)
		s.answer.state.Store(answerValue)
		s.watch.Owner = s
		n.To = append(n.To, &s.watch)
	}
	for b.Loop() {
		for *next = 0; *next < len(n.To); {
			group := n.To[:min(*next+16, len(n.To))] // as a lane has them told
			n.To[*next].Owner.(*single).TellAll(n, group, next)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(n.To)), "ns/watch")
}
