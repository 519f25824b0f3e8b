package machine

import (
	"errors"
	"testing"
	"time"
)

// What a wildcard held that nobody watches any more goes when its source chooses a server anew for another
// type, though the last server was not told yet.
//
// spec: WILD-6 LKG-5
func TestNothingIsLeftOfWildcard(t *testing.T) {
	r := newRig(t, Config{ResourceTimeout: period, Linger: time.Minute})
	r.m = newMachine(Config{ResourceTimeout: period, Linger: time.Minute}, []Server{{}, {}}, Source{Servers: []int{0, 1}, Stored: true})
	r.typ.Stored = true
	refs := map[int]Ref{} // by server
	step := func(events ...Event) Effects {
		fx := r.step(events...)
		for _, w := range fx.Wait {
			refs[w.Server] = w.Ref
		}
		for _, o := range fx.Open {
			refs[o.Server] = o.Ref
		}
		return fx
	}
	refused := errors.New("refused")
	w := r.watch(star)
	step(Start{w})
	step(Down{Ref: refs[0], Kind: FaultConnection, Err: refused})
	step(Up{Ref: refs[1]})
	step(Written{refs[1]})
	r.now = r.now.Add(loadAfter)
	loads := step(Tick{}).Load
	if len(loads) != 1 {
		t.Fatalf("the store is asked %d times, want once", len(loads))
	}
	for _, task := range step(Loaded{Load: loads[0], Entries: []Kept{{Name: "a", Server: 1, Raw: []byte("old")}}, Last: true}).Decode {
		r.decode(task)
	}
	step(Stop{w})
	step(Retry{refs[0]}) // nobody wants it any more
	other := &Watch{Type: &Type{URL: "type.googleapis.com/other"}, Name: "b"}
	step(Start{other})
	step(Stop{other})
	for range 10 {
		r.now = r.now.Add(time.Minute)
		step(Tick{})
	}
	for _, src := range r.m.working {
		if src.heldBytes != 0 {
			t.Errorf("%d bytes count as held though nothing is watched", src.heldBytes)
		}
	}
}
