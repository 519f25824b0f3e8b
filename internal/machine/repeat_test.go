package machine

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/xdswatch/xdswatch/internal/wire"
)

// What the last response held at which place only saves work: a machine that remembers it
// does what one does that never knows.
func TestRepeatedOnlySavesWork(t *testing.T) {
	if testing.Short() {
		t.Skip("long: random lives, each twice")
	}
	repeats := 0
	for seed := range uint64(500) {
		got := newRepeatRun(t, seed, false)
		want := newRepeatRun(t, seed, true)
		if diff := cmp.Diff(want.play(), got.play()); diff != "" {
			t.Fatalf("seed %d (-without memory +with):\n%s", seed, diff)
		}
		repeats += got.repeats
	}
	if repeats < 1000 {
		t.Errorf("%d repeats in all, too few to tell", repeats)
	}
}

// repeatRun is watches that come and go while responses repeat much of the last one.
type repeatRun struct {
	*rig
	rand    *rand.Rand
	forget  bool // the machine is made to forget what the last response held
	watches []*Watch
	last    []wire.Resource
	lines   []string
	repeats int // entries that the last response held at the same place
}

func newRepeatRun(t *testing.T, seed uint64, forget bool) *repeatRun {
	server := Server{FailOnDataErrors: seed%5 == 0}
	r := &repeatRun{rig: newRig(t, Config{}, server), rand: rand.New(rand.NewPCG(seed, 1)), forget: forget}
	r.typ.FullState = seed%3 == 0
	for _, name := range []string{"a", "b", "c", "*"}[:3+seed%2] {
		w := r.watch(name)
		r.watches = append(r.watches, w)
		r.step(Start{w})
	}
	r.up()
	return r
}

func (r *repeatRun) play() []string {
	for range 40 {
		ts := r.m.streams[0].link(r.typ.URL)
		if r.forget && ts != nil {
			ts.last = nil
		}
		if i := r.rand.IntN(4 * len(r.watches)); i < len(r.watches) {
			r.rewatch(i)
		} else {
			r.respond()
		}
	}
	return r.lines
}

// rewatch ends a watch and, most times, begins one of the same name.
func (r *repeatRun) rewatch(i int) {
	old := r.watches[i]
	events := []Event{Stop{old}}
	if r.rand.IntN(3) > 0 {
		r.watches[i] = r.watch(old.Name)
		events = append(events, Start{r.watches[i]})
	}
	r.run("rewatch "+old.Name, r.step(events...))
}

// respond sends entries most of which the last response held at the same place.
func (r *repeatRun) respond() {
	next := make([]wire.Resource, r.rand.IntN(4))
	for i := range next {
		if next[i] = r.entry(); i < len(r.last) && r.rand.IntN(3) > 0 {
			next[i] = r.last[i]
			r.repeats++
		}
	}
	r.last = next
	version := fmt.Sprint(len(r.lines))
	fx := r.step(Received{r.ref, &wire.Response{TypeURL: r.typ.URL, Version: version, Nonce: version, Resources: next}})
	r.run("respond", fx)
}

// entry makes a resource of one of few names; its wrapper, if it has one, may name another.
// Some are refused, before they are decoded or when they are.
func (r *repeatRun) entry() wire.Resource {
	name := func() string { return string(rune('a' + r.rand.IntN(3))) }
	payload := protowire.AppendTag(nil, 1, protowire.BytesType)
	payload = protowire.AppendString(payload, name())
	payload = protowire.AppendTag(payload, 2, protowire.BytesType)
	payload = protowire.AppendString(payload, []string{"1", "2", "bad"}[r.rand.IntN(3)])
	res := wire.Resource{TypeURL: []byte(r.typ.URL), Payload: payload, HasBody: true}
	switch r.rand.IntN(5) {
	case 0:
		res.Name = []byte(name())
	case 1:
		res.TypeURL = []byte("type.googleapis.com/another")
	case 2:
		res.Payload = nil
	}
	return res
}

// run does what a step asks for until nothing follows, and writes all of it down.
func (r *repeatRun) run(what string, fx Effects) {
	line := []string{what}
	for len(fx.Notify)+len(fx.Decode)+len(fx.Send)+len(fx.consumed()) > 0 {
		for _, n := range fx.Notify {
			line = append(line, fmt.Sprintf("%d %s %q %q of %d, failed %v, %+v",
				n.Kind, n.Name, n.Version, n.Value, len(n.To)+len(n.All), n.Fault != nil, n.Exchange))
		}
		var events []Event
		for _, s := range fx.Send {
			line = append(line, fmt.Sprintf("send %q", bytes.Join(s.Message, nil)))
			events = append(events, Written{s.Ref})
		}
		for _, ref := range fx.consumed() {
			events = append(events, Delivered{ref})
		}
		for _, t := range fx.Decode {
			line = append(line, fmt.Sprintf("decode %d", len(t.Items)))
			events = append(events, Decoded{t, refuseBad(t)})
		}
		r.now = r.now.Add(minPace)
		fx = r.step(append(events, Tick{})...)
	}
	r.lines = append(r.lines, strings.Join(line, "\n"))
}

func refuseBad(t *Task) []Result {
	results := make([]Result, len(t.Items))
	for i, it := range t.Items {
		results[i] = Result{Value: string(it.Raw)}
		if bytes.HasSuffix(it.Raw, []byte("bad")) {
			results[i] = Result{Err: errors.New("it is bad")}
		}
	}
	return results
}
