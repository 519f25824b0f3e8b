package machine

import (
	"errors"
	"testing"
	"time"
)

// Silence on a new stream counts as an answer where a server may have nothing new to say. A poll
// that is silent has no answer yet, and a file always says what it holds.
//
// spec: S-10
func TestCalm(t *testing.T) {
	tests := []struct {
		name   string
		server Server
		calm   int
	}{
		{"stream", Server{}, 1},
		{"polled", Server{Polled: true}, 0},
		{"file", Server{FullState: true}, 0},
	}
	for _, test := range tests {
		r := newRig(t, Config{}, test.server)
		r.step(Start{r.watch("r0000")})
		r.up()
		for _, task := range r.receive("1", 1) {
			r.decode(task)
		}
		r.step(Written{r.ref}, Down{Ref: r.ref, Kind: FaultStream, Err: errors.New("over")})
		r.step(Retry{r.ref})
		r.ref.Gen++
		r.up()
		r.step(Delivered{Ref{Gen: 1}})
		r.now = r.now.Add(time.Minute)
		if fx := r.step(Tick{}); len(fx.Calm) != test.calm {
			t.Errorf("%s: %d streams are calm after a minute, want %d", test.name, len(fx.Calm), test.calm)
		}
	}
}
