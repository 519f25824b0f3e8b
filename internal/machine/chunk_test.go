package machine

import (
	"slices"
	"testing"
)

// A large response is decoded in parts; each is told as soon as it and all before it are
// decoded, and the answer follows the last.
//
// spec: ACK-1
func TestChunks(t *testing.T) {
	r := newRig(t, Config{})
	r.step(Start{r.watch("*")})
	r.up()
	tasks := r.receive("1", 2*chunk+1)
	if len(tasks) != 3 {
		t.Fatalf("%d tasks, want 3", len(tasks))
	}
	if fx := r.decode(tasks[1]); len(fx.Notify) != 0 || len(fx.Send) != 0 {
		t.Error("the second part was told before the first")
	}
	fx := r.decode(tasks[0])
	_, names := news(fx)
	if len(names) != 2*chunk || !slices.IsSorted(names) || len(fx.Send) != 0 {
		t.Errorf("%d resources told and %d answers sent, want %d and none", len(names), len(fx.Send), 2*chunk)
	}
	fx = r.decode(tasks[2])
	kinds, _ := news(fx)
	if want := []NoticeKind{NoticeUpdated, NoticeSynced}; !slices.Equal(kinds, want) {
		t.Errorf("the last part told %v, want %v", kinds, want)
	}
	if len(fx.Send) != 1 || len(fx.Consumed) != 1 {
		t.Errorf("%d answers and %d ends, want one each", len(fx.Send), len(fx.Consumed))
	}
}

// A late watch of everything is told what is held in order, and then that this is all, in
// whatever order the workers finish.
//
// spec: WATCH-3
func TestReplayOrder(t *testing.T) {
	r := newRig(t, Config{})
	r.step(Start{r.watch("*")})
	r.up()
	for _, task := range r.receive("1", 2*chunk) {
		r.decode(task)
	}
	tasks := r.step(Start{r.watch("*")}).Decode
	if len(tasks) != 2 {
		t.Fatalf("%d tasks, want 2", len(tasks))
	}
	if kinds, _ := news(r.decode(tasks[1])); len(kinds) != 0 {
		t.Errorf("the second part told %d notices before the first, want none", len(kinds))
	}
	kinds, names := news(r.decode(tasks[0]))
	if len(kinds) != 2*chunk+1 || kinds[2*chunk] != NoticeSynced || !slices.IsSorted(names[:2*chunk]) {
		t.Errorf("both parts told %d notices, want %d in order, the last synced", len(kinds), 2*chunk+1)
	}
}
