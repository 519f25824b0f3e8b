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
	if len(fx.Send) != 1 || len(fx.consumed()) != 1 {
		t.Errorf("%d answers and %d ends, want one each", len(fx.Send), len(fx.consumed()))
	}
}

// A late watch of everything is told what is held in order, as bytes, and then that this is all.
//
// spec: WATCH-3
func TestLateOrder(t *testing.T) {
	r := newRig(t, Config{})
	r.step(Start{r.watch("*")})
	r.up()
	for _, task := range r.receive("1", 2*chunk) {
		r.decode(task)
	}
	fx := r.step(Start{r.watch("*")})
	kinds, names := news(fx)
	if len(kinds) != 2*chunk+1 || kinds[2*chunk] != NoticeSynced || !slices.IsSorted(names[:2*chunk]) {
		t.Fatalf("%d notices are told, want %d in order, the last synced", len(kinds), 2*chunk+1)
	}
	if n := fx.Notify[1]; !n.Held || n.Value != nil || string(n.Raw) != "1 of 1" {
		t.Errorf("told %+v, want the bytes that are held", n)
	}
}
