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
		calm    bool
	}{
		{"without a version", Server{}, false, false},
		{"stream", Server{ResumeVersion: true}, false, true},
		{"answered", Server{ResumeVersion: true}, true, false},
		{"polled", Server{ResumeVersion: true, Polled: true}, false, false},
		{"file", Server{ResumeVersion: true, AlwaysFull: true}, false, false},
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
		if r.step(Tick{}); r.m.streams[0].calm != test.calm {
			t.Errorf("%s: it is %t that the stream is calm after a minute, want %t", test.name, !test.calm, test.calm)
		}
	}
}
