package machine

import (
	"bytes"
	"errors"
	"testing"

	"github.com/xdswatch/xdswatch/internal/wire"
)

// A guard may refuse an error for the wildcard that nobody watches any more.
//
// spec: ERR-9
func TestRefusedErrorOfLeftWildcard(t *testing.T) {
	r := newRig(t, Config{}, Server{AlwaysFull: true, PerType: true})
	r.typ.Guarded = true
	all := r.watch(star)
	r.step(Start{all}, Start{r.watch("a")})
	r.up()
	fx := r.step(Received{r.ref, &wire.Response{
		TypeURL: r.typ.URL, Version: "1", Nonce: "1",
		Resources: []wire.Resource{{Name: []byte("b"), TypeURL: []byte(r.typ.URL), Payload: []byte("b"), HasBody: true}},
		Errors:    []wire.ResourceError{{ResourceName: wire.ResourceName{Name: []byte(star)}, Code: 13, Message: "x"}},
	}})
	fx = r.decode(fx.Decode[0])
	if len(fx.Guard) != 1 {
		t.Fatalf("%d guards are asked, want 1", len(fx.Guard))
	}
	r.step(Stop{all}, Down{Ref: r.ref, Kind: FaultStream, Err: errors.New("over")})
	r.step(Guarded{Proposal: fx.Guard[0]})
	if left := r.m.caches[cacheKey{url: r.typ.URL}].star; left.gone || left.wanted() {
		t.Errorf("the wildcard is gone: %v, wanted: %v; want neither", left.gone, left.wanted())
	}
}

// A version that was accepted, and of which something was refused later, is not claimed on a new stream.
//
// spec: SOTW-2
func TestResumeOfRefused(t *testing.T) {
	r := newRig(t, Config{}, Server{ResumeVersion: true})
	r.typ.Guarded, r.typ.FullState = true, true
	r.step(Start{r.watch(star)})
	r.up()
	for i, err := range []error{nil, errors.New("no")} {
		for _, task := range r.receive("v1", i+1) {
			fx := r.decode(task)
			if len(fx.Guard) != 1 {
				t.Fatalf("%d guards are asked, want 1", len(fx.Guard))
			}
			r.step(Guarded{fx.Guard[0], err})
		}
		r.step(Written{r.ref}, Delivered{r.ref})
	}
	r.step(Down{Ref: r.ref, Kind: FaultStream, Err: errors.New("over")})
	r.step(Retry{r.ref})
	r.ref.Gen++
	if fx := r.step(Up{Ref: r.ref}); len(fx.Send) != 1 || bytes.Contains(fx.Send[0].Message[0], []byte("v1")) {
		t.Errorf("the first request is %v, want one without the version", fx.Send)
	}
}
