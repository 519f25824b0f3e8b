package machine

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/xdswatch/xdswatch/internal/wire"
)

// What a late watch was told of trouble ends, also if a handler is slow, so that nobody else heard of that trouble.
//
// spec: ERR-10
func TestTroubleOfLateWatch(t *testing.T) {
	r := newRig(t, Config{})
	last := map[any]*Fault{} // that each watch was told of
	var step func(events ...Event)
	step = func(events ...Event) {
		fx := r.step(events...)
		for _, n := range fx.Notify {
			for _, w := range append(n.To, n.All...) {
				last[w.Owner] = n.Fault
			}
		}
		for _, task := range fx.Decode {
			step(Decoded{task, []Result{{Value: "v", Same: task.Items[0].Old != nil}}})
		}
	}
	stand := func() {
		step(Up{Ref: r.ref}, Written{r.ref})
		step(Written{r.ref})
		resp := &wire.Response{TypeURL: r.typ.URL, Version: "1", Nonce: "1"}
		resp.Resources = []wire.Resource{{Name: []byte("a"), TypeURL: []byte(r.typ.URL), Payload: []byte("a"), HasBody: true}}
		step(Received{r.ref, resp})
		step(Delivered{r.ref}, Written{r.ref})
	}
	fail := func(why string) {
		step(Down{Ref: r.ref, Kind: FaultConnection, Err: errors.New(why)})
		step(Retry{r.ref})
		r.ref.Gen++
	}
	step(Start{r.watch("a")})
	stand()
	fail("refused")
	step(Heard{0})
	stand() // the handler that hears of the end of the trouble is slow
	fail("lost")
	late := r.watch("a")
	late.Owner = "late"
	step(Start{late})
	if last["late"] == nil {
		t.Fatal("the late watch was not told of the trouble")
	}
	stand()
	step(Heard{0})
	if last["a"] != nil || last["late"] != nil {
		t.Errorf("the server is well, and the watches were told last %v and %v", last["a"], last["late"])
	}
}

// A watch that waits for ever hears again of a stated absence once the server is well, though the name has a timer for
// another watch: that may end before the timer does.
//
// spec: ERR-10 E-3
func TestTroubleOfPatientWatch(t *testing.T) {
	r := newRig(t, Config{ResourceTimeout: 15 * time.Second}, Server{Delta: true})
	patient, other := r.watch("a"), r.watch("a")
	patient.Owner, patient.Patient = "patient", true
	r.step(Start{patient}, Start{other})
	stand := func(removed ...string) (told []NoticeKind) {
		r.step(Up{Ref: r.ref})
		r.step(Written{r.ref})
		resp := &wire.Response{TypeURL: r.typ.URL, Nonce: "1"}
		for _, name := range removed {
			resp.Removed = append(resp.Removed, []byte(name))
		}
		for _, n := range r.step(Received{r.ref, resp}).Notify {
			if slices.Contains(n.To, patient) {
				told = append(told, n.Kind)
			}
		}
		r.step(Delivered{r.ref}, Written{r.ref})
		return told
	}
	if told := stand("a"); !slices.Equal(told, []NoticeKind{NoticeDoesNotExist}) {
		t.Fatalf("told is %v, want the absence", told)
	}
	r.step(Down{Ref: r.ref, Kind: FaultStream, Err: errors.New("gone")}, Retry{r.ref})
	r.ref.Gen++
	r.step(Down{Ref: r.ref, Kind: FaultConnection, Err: errors.New("refused")}, Retry{r.ref}, Heard{0})
	r.ref.Gen++
	told := stand()
	r.step(Stop{other})
	r.now = r.now.Add(time.Minute)
	r.step(Tick{})
	if !slices.Equal(told, []NoticeKind{NoticeDoesNotExist}) {
		t.Errorf("once the server is well again told is %v, want the absence", told)
	}
}
