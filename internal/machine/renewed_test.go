package machine

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/xdswatch/xdswatch/internal/wire"
)

var errGuard = errors.New("not now")

// renewRig is two servers, of which the second stands in for the first, and a guard.
type renewRig struct {
	*rig
	a      *Watch
	refuse bool
	nonce  byte
}

func newRenewRig(t *testing.T) *renewRig {
	typ := *scaleType
	typ.Guarded = true
	r := &renewRig{rig: &rig{t: t, m: newMachine(
		Config{}, []Server{{}, {}}, Source{Servers: []int{0, 1}, ReachabilityOnly: true},
	), now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), ref: Ref{Gen: 1}, typ: &typ}}
	r.a = r.watch("a")
	r.step(Start{r.a}, Start{r.watch("b")})
	r.up()
	return r
}

// says has the server send all resources with the same bytes as ever, some of them renewed,
// and checks what the guard sees as changed and what is told.
func (r *renewRig) says(renewed map[int]bool, changed []string, kind NoticeKind, told ...string) {
	r.t.Helper()
	r.nonce++
	resp := &wire.Response{TypeURL: r.typ.URL, Version: "1", Nonce: string('a' + rune(r.nonce)), Renewed: renewed}
	for _, name := range []string{"a", "b"} {
		resp.Resources = append(resp.Resources, wire.Resource{
			Name: []byte(name), TypeURL: []byte(r.typ.URL), Payload: []byte("of " + name), HasBody: true,
		})
	}
	fx := r.step(Received{r.ref, resp})
	for _, task := range fx.Decode {
		for _, it := range task.Items {
			if it.Old != nil {
				r.t.Errorf("%s is to be compared with what is held", it.Raw)
			}
		}
		fx = r.decode(task)
	}
	if len(fx.Guard) != 1 {
		r.t.Fatalf("%d proposals", len(fx.Guard))
	}
	var got []string
	for _, c := range fx.Guard[0].Changed {
		got = append(got, c.Name)
	}
	if diff := cmp.Diff(changed, got); diff != "" {
		r.t.Errorf("changed, -want +got:\n%s", diff)
	}
	judgement := Guarded{Proposal: fx.Guard[0]}
	if r.refuse {
		judgement.Err = errGuard
	}
	kinds, names := news(r.step(judgement))
	if diff := cmp.Diff(told, names); diff != "" {
		r.t.Errorf("told, -want +got:\n%s", diff)
	}
	if slices.ContainsFunc(kinds, func(k NoticeKind) bool { return k != kind }) {
		r.t.Errorf("told %v, want %v", kinds, kind)
	}
	r.step(Written{r.ref}, Delivered{r.ref})
}

// A resource that is new though its bytes are not counts as changed to a guard. Refused, it
// is in each response that holds it until one is taken.
//
// spec: CFG-5 FILE-2
func TestRenewedRefused(t *testing.T) {
	r := newRenewRig(t)
	first, second := map[int]bool{0: true}, map[int]bool{1: true}
	r.says(first, []string{"a", "b"}, NoticeUpdated, "a", "b")
	r.says(nil, nil, 0)
	r.says(first, []string{"a"}, NoticeUpdated, "a")
	r.refuse = true
	r.says(first, []string{"a"}, NoticeAmbient, "a")
	r.says(second, []string{"a", "b"}, NoticeAmbient, "b") // of a nothing new is told
	r.refuse = false
	r.says(nil, []string{"a", "b"}, NoticeUpdated, "a", "b")
	r.says(nil, nil, 0)
}

// A renewal that was refused is owed when another server stands in.
//
// spec: CFG-5 FALLBACK-3
func TestRenewedMoves(t *testing.T) {
	r := newRenewRig(t)
	r.says(nil, []string{"a", "b"}, NoticeUpdated, "a", "b")
	r.refuse = true
	r.says(map[int]bool{1: true}, []string{"b"}, NoticeAmbient, "b")
	r.step(Down{Ref: r.ref, Kind: FaultStream, Err: ErrNoAnswer}, Retry{Ref{0, 1}})
	r.step(Down{Ref: Ref{0, 2}, Kind: FaultConnection, Err: ErrNoAnswer})
	r.ref = Ref{1, 1}
	r.up()
	r.refuse = false
	r.says(nil, []string{"b"}, NoticeUpdated, "b")
	r.says(nil, nil, 0)
}

// What was refused is forgotten with the resource.
func TestRenewedForgotten(t *testing.T) {
	r := newRenewRig(t)
	ts := r.m.streams[0].link(r.typ.URL)
	r.says(nil, []string{"a", "b"}, NoticeUpdated, "a", "b")
	r.refuse = true
	r.says(map[int]bool{0: true}, []string{"a"}, NoticeAmbient, "a")
	r.now = r.now.Add(minPace)
	r.step(Stop{r.a}, Tick{})
	r.step(Written{r.ref})
	if n := ts.cache.subs.len(); n != 1 {
		t.Errorf("%d subscriptions, want one", n)
	}
}
