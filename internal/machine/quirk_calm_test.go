package machine

import (
	"errors"
	"testing"
	"time"
)

// Silence on a new stream counts as an answer where a server may have nothing new to say. A poll
// that is silent has no answer yet, and a file always says what it holds. No stream is calm that
// has an answer.
//
// spec: S-10
func TestCalm(t *testing.T) {
	tests := []struct {
		name    string
		server  Server
		answers bool
		calm    int
	}{
		{"without a version", Server{}, false, 0},
		{"stream", Server{ResumeVersion: true}, false, 1},
		{"answered", Server{ResumeVersion: true}, true, 0},
		{"polled", Server{ResumeVersion: true, Polled: true}, false, 0},
		{"file", Server{ResumeVersion: true, FullState: true}, false, 0},
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
		if test.answers {
			r.receive("1", 1)
			r.step(Delivered{r.ref})
		}
		r.now = r.now.Add(time.Minute)
		if fx := r.step(Tick{}); len(fx.Calm) != test.calm {
			t.Errorf("%s: %d streams are calm after a minute, want %d", test.name, len(fx.Calm), test.calm)
		}
	}
}
