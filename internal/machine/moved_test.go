package machine

import (
	"errors"
	"strings"
	"testing"

	"github.com/xdswatch/xdswatch/internal/wire"
)

// A server's value is decoded while another server, which is active again, gives one. Then nobody watches the name any
// more, and the wildcard of the first server holds it: its watch hears of each value once.
//
// spec: WATCH-4
func TestValuesOfTwoServers(t *testing.T) {
	for _, tt := range []struct {
		name                   string
		before, late, meantime string // payloads
		want                   int    // updates
	}{
		{"the very same", "", "the value", "the value", 1},
		{"the other one differs from what the first repeats", "the value", "the value again", "another value", 3},
	} {
		t.Run(tt.name, func(t *testing.T) { testValuesOfTwoServers(t, tt.before, tt.late, tt.meantime, tt.want) })
	}
}

func testValuesOfTwoServers(t *testing.T, before, late, meantime string, want int) {
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
	receive := func(ref Ref, payload string) []*Task {
		resp := &wire.Response{TypeURL: r.typ.URL, Version: "1", Nonce: "1"}
		if payload != "" {
			resp.Resources = []wire.Resource{{
				Name: []byte(name), TypeURL: []byte(r.typ.URL), Payload: []byte(payload), HasBody: true,
			}}
		}
		return step(Received{ref, resp}).Decode
	}
	decode := func(tasks []*Task) {
		t.Helper()
		for _, task := range tasks {
			old := string(task.Items[0].Old)
			same := old != "" && strings.HasPrefix(string(task.Items[0].Raw), old)
			step(Decoded{task, []Result{{Value: "a value", Same: same}}})
		}
	}
	step(Start{r.watch(star)})
	step(Up{Ref: opened[0]})
	step(Written{opened[0]})
	decode(receive(opened[0], before))
	step(Written{opened[0]}, Delivered{opened[0]})
	w, lacking := r.watch(name), r.watch("xdstp://a/t/p/y") // without the second it would not fall back
	w.Source, lacking.Source = 1, 1
	step(Start{w}, Start{lacking})
	step(Down{Ref: opened[1], Kind: FaultConnection, Err: errors.New("refused")})
	step(Written{opened[0]})
	tasks := receive(opened[0], late)
	step(Retry{opened[1]})
	step(Up{Ref: opened[1]})
	step(Written{opened[1]})
	decode(receive(opened[1], meantime))
	step(Written{opened[1]}, Delivered{opened[1]})
	step(Stop{w})
	r.now = r.now.Add(minPace)
	step(Tick{})
	if len(tasks) != 1 || len(tasks[0].Items) != 1 {
		t.Fatalf("%d tasks", len(tasks))
	}
	decode(tasks)
	if updates != want {
		t.Errorf("the wildcard's watch hears of %d values, want %d", updates, want)
	}
}
