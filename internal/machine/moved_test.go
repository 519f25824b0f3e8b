package machine

import (
	"errors"
	"testing"

	"github.com/xdswatch/xdswatch/internal/wire"
)

// A server's value is decoded while another server, which is active again, gives the very same. Then nobody
// watches the name any more, and the wildcard of the first server holds it: its watch heard of the value.
//
// spec: WATCH-4
func TestSameValueOfTwoServers(t *testing.T) {
	const name = "xdstp://a/t/p/x"
	r := newRig(t, Config{})
	r.m = newMachine(Config{}, []Server{{}, {}}, Source{Servers: []int{0}}, Source{Servers: []int{1, 0}})
	r.typ.Segment = ""
	opened := map[int]Ref{} // by server
	updates := 0
	step := func(events ...Event) Effects {
		fx := r.step(events...)
		for _, o := range fx.Open {
			opened[o.Server] = o.Ref
		}
		for _, n := range fx.Notify {
			if n.Kind == NoticeUpdated && len(n.All) > 0 {
				updates++
			}
		}
		return fx
	}
	receive := func(ref Ref, names ...string) []*Task {
		resp := &wire.Response{TypeURL: r.typ.URL, Version: "1", Nonce: "1"}
		for _, name := range names {
			resp.Resources = append(resp.Resources, wire.Resource{
				Name: []byte(name), TypeURL: []byte(r.typ.URL), Payload: []byte("the value"), HasBody: true,
			})
		}
		return step(Received{ref, resp}).Decode
	}
	decode := func(tasks []*Task) {
		t.Helper()
		if len(tasks) != 1 || len(tasks[0].Items) != 1 {
			t.Fatalf("%d tasks", len(tasks))
		}
		step(Decoded{tasks[0], []Result{{Value: "the value"}}})
	}
	step(Start{r.watch(star)})
	step(Up{Ref: opened[0]})
	step(Written{opened[0]})
	receive(opened[0])
	step(Written{opened[0]}, Delivered{opened[0]})
	w := r.watch(name)
	w.Source = 1
	step(Start{w})
	step(Down{Ref: opened[1], Kind: FaultConnection, Err: errors.New("refused")})
	step(Written{opened[0]})
	late := receive(opened[0], name)
	step(Retry{opened[1]})
	step(Up{Ref: opened[1]})
	step(Written{opened[1]})
	decode(receive(opened[1], name))
	step(Written{opened[1]}, Delivered{opened[1]})
	step(Stop{w})
	r.now = r.now.Add(minPace)
	step(Tick{})
	decode(late)
	if updates != 1 {
		t.Errorf("the wildcard's watch hears of the value %d times, want once", updates)
	}
}
