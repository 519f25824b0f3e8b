package machine

import (
	"slices"
	"testing"
	"time"

	"github.com/xdswatch/xdswatch/internal/wire"
)

// The timer of a name starts when the message that asks for it has left, and not when another
// watch of the name begins.
//
// spec: DNE-2
func TestTimerStartsWithMessage(t *testing.T) {
	r := newRig(t, Config{ResourceTimeout: time.Minute})
	r.step(Start{r.watch("a")})
	r.up()
	for i, name := range []string{"b", "c"} {
		r.now = r.now.Add(time.Second)
		if fx := r.step(Start{r.watch(name)}); len(fx.Send) != 1 {
			t.Fatalf("%s: %d messages, want 1", name, len(fx.Send))
		}
		r.step(Start{r.watch(name)})
		if n := len(r.m.streams[0].alarms.heap); n != 1+i {
			t.Errorf("%s: %d timers run while the message is with the writer, want %d", name, n, 1+i)
		}
		r.step(Written{r.ref})
		if n := len(r.m.streams[0].alarms.heap); n != 2+i {
			t.Errorf("%s: %d timers run when the message has left, want %d", name, n, 2+i)
		}
	}
}

// So does that of a name that comes back to a server while the message is with the writer.
//
// spec: DNE-2 FALLBACK-5
func TestTimerAfterRevert(t *testing.T) {
	a := newAuthorities(1)
	x, y, z := a.watch(0, "x"), a.watch(0, "y"), a.watch(0, "z")
	other := a.watch(a.m.AddSource(Source{Servers: []int{1}}), "x") // keeps the second server's stream
	a.step(Start{x}, Start{other})
	a.up(1)
	a.now = a.now.Add(time.Minute)
	a.step(Tick{})
	a.up(0)
	a.down(0)
	a.step(Retry{a.refs[0]})
	a.up(0)
	if fx := a.m.Step(a.now, Start{y}); !slices.ContainsFunc(fx.Send, func(s Send) bool { return s.Ref == a.refs[0] }) {
		t.Fatal("the first server is not asked for the second name")
	}
	a.m.Step(a.now, Written{a.refs[1]}, Start{z}) // the time of y runs at the second server
	fx := a.m.Step(a.now, Received{a.refs[0], &wire.Response{TypeURL: scaleType.URL, Nonce: "n"}})
	a.m.Step(a.now, Delivered{fx.consumed()[0]})
	if n := a.on(0); n != 2 {
		t.Fatal("the first server's response is not heeded")
	}
	a.m.Step(a.now, Written{a.refs[1]}) // what was asked of the second server does not matter any more
	expired := func(after time.Duration) (names []string) {
		a.now = a.now.Add(after)
		for _, n := range a.m.Step(a.now, Tick{}).Notify {
			if n.Kind == NoticeDoesNotExist {
				names = append(names, n.Name)
			}
		}
		return names
	}
	if got, want := expired(time.Minute), []string{x.Name}; !slices.Equal(got, want) {
		t.Errorf("%v ran out of time while a message was with the writer, want %v", got, want)
	}
	a.m.Step(a.now, Written{a.refs[0]})
	if got, want := expired(time.Minute), []string{y.Name}; !slices.Equal(got, want) {
		t.Errorf("%v ran out of time after it had left, want %v", got, want)
	}
}
