package machine

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/xdswatch/xdswatch/internal/wire"
)

// The first request of pure interest leaves at once, the next a millisecond later.
//
// spec: STREAM-9
func TestPace(t *testing.T) {
	r := newRig(t, Config{})
	r.step(Start{r.watch("a")})
	r.up()
	first := r.now
	r.now = r.now.Add(100 * time.Microsecond)
	if fx := r.step(Start{r.watch("b")}, Start{r.watch("c")}); len(fx.Send) != 0 {
		t.Error("a second request left within the millisecond")
	}
	if at, ok := r.m.Deadline(); !ok || !at.Equal(first.Add(time.Millisecond)) {
		t.Errorf("deadline %v, %v; want a millisecond after the first request", at.Sub(first), ok)
	}
	r.now = first.Add(time.Millisecond)
	if fx := r.step(Tick{}); len(fx.Send) != 1 {
		t.Errorf("%d requests left after the millisecond, want 1 for both names", len(fx.Send))
	}
}

// A request in state of the world restates all names, so the more there are the longer the next
// one waits; in delta it does not.
//
// spec: STREAM-9
func TestPaceOfManyNames(t *testing.T) {
	for delta, want := range map[bool]time.Duration{false: 3 * minPace, true: minPace} {
		r := newRig(t, Config{}, Server{Delta: delta})
		var watches []Event
		for i := range 2 * namesOfPace {
			watches = append(watches, Start{r.watch(fmt.Sprint(i))})
		}
		r.step(watches...)
		r.up()
		r.step(Start{r.watch("another")})
		if at, ok := r.m.Deadline(); !ok || at.Sub(r.now) != want {
			t.Errorf("delta %v: the next request may leave after %v, %v; want %v", delta, at.Sub(r.now), ok, want)
		}
	}
}

// A request that waits for its moment when a response comes waits for the answer, and asks
// for no more time: a deadline that has passed and changes nothing would spin.
//
// spec: ACK-9
func TestPaceGivesWayToResponse(t *testing.T) {
	r := newRig(t, Config{})
	r.step(Start{r.watch("r0000")})
	r.up()
	r.step(Start{r.watch("b")})
	if _, ok := r.m.Deadline(); !ok {
		t.Fatal("the second request does not wait for its moment")
	}
	tasks := r.receive("1", 1)
	if at, ok := r.m.Deadline(); ok {
		t.Errorf("deadline %v while the response is worked on, want none", at.Sub(r.now))
	}
	r.now = r.now.Add(time.Second)
	if fx := r.decode(tasks[0]); len(fx.Send) != 1 {
		t.Errorf("%d messages left with the answer, want 1", len(fx.Send))
	}
}

// A flood of responses that say nothing is read no faster than it is answered, also while the writer has an answer.
//
// spec: S-2
func TestFloodBehindWriter(t *testing.T) {
	r := newRig(t, Config{}, Server{Delta: true})
	r.step(Start{r.watch("a")})
	r.up()
	empty := func() (fx Effects, reads bool) {
		fx = r.step(Received{r.ref, &wire.Response{TypeURL: r.typ.URL, Nonce: "n"}})
		return fx, len(r.step(Delivered{r.ref}).Read) > 0
	}
	for range 2 * stormSame { // until it is known for a flood
		if fx, _ := empty(); len(fx.Send) > 0 {
			r.step(Written{r.ref})
		}
	}
	r.now = r.now.Add(stormPause)
	if fx := r.step(Tick{}); len(fx.Send) != 1 {
		t.Fatalf("%d answers went to the writer", len(fx.Send))
	}
	for n := range 4 * maxOwed {
		if _, reads := empty(); !reads {
			if n < maxOwed/2 {
				t.Errorf("reading stops after %d responses", n)
			}
			return
		}
	}
	t.Error("reading does not stop")
}

// The text of a NACK is cut where it gets too long, between characters.
//
// spec: ACK-5
func TestMessageIsCut(t *testing.T) {
	tests := []struct {
		name  string
		lines []string
		cut   bool
	}{
		{"short", []string{"one", "two"}, false},
		{"just fits", []string{strings.Repeat("A", maxMessage)}, false},
		{"one too long", []string{strings.Repeat("A", maxMessage+1)}, true},
		{"a megabyte", []string{strings.Repeat("A", 1<<20)}, true},
		{"many", []string{strings.Repeat("A", maxMessage/2), strings.Repeat("B", maxMessage/2)}, true},
		{"wide characters", []string{strings.Repeat("€", maxMessage)}, true},
		{"not text", []string{"\xff\xfe"}, false},
	}
	for _, test := range tests {
		resp := &response{verdict: verdict{text: []byte(strings.Join(test.lines, "; "))}}
		got := resp.message()
		if len(got) > maxMessage || !utf8.ValidString(got) {
			t.Errorf("%s: %d bytes, valid %v", test.name, len(got), utf8.ValidString(got))
		}
		if cut := strings.HasSuffix(got, truncated); cut != test.cut {
			t.Errorf("%s: cut %v, want %v", test.name, cut, test.cut)
		}
	}
}
