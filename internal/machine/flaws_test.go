package machine

import (
	"errors"
	"testing"
	"time"

	"github.com/xdswatch/xdswatch/internal/wire"
)

var errFlaw = errors.New("a part is bad")

// flawRig is two servers, of which the second stands in for the first, and one resource with
// a flaw.
type flawRig struct {
	*rig
	nonce byte
}

func newFlawRig(t *testing.T) *flawRig {
	r := &flawRig{rig: &rig{t: t, m: newMachine(
		Config{}, []Server{{Delta: true}, {Delta: true}}, Source{Servers: []int{0, 1}, ReachabilityOnly: true},
	), now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), ref: Ref{Gen: 1}, typ: scaleType}}
	r.step(Start{r.watch("a")})
	r.up()
	return r
}

// says has the server send the resource, or with no payload remove it, and returns what was
// told of it and whether it was decoded and refused.
func (r *flawRig) says(payload string) (told []NoticeKind, decoded, nack bool) {
	r.nonce++
	resp := &wire.Response{TypeURL: r.typ.URL, Nonce: string('a' + rune(r.nonce))}
	if payload == "" {
		resp.Removed = [][]byte{[]byte("a")}
	} else {
		resp.Resources = []wire.Resource{{
			Name: []byte("a"), Version: []byte("1"), TypeURL: []byte(r.typ.URL), Payload: []byte(payload), HasBody: true,
		}}
	}
	fx := r.step(Received{r.ref, resp})
	for _, t := range fx.Decode {
		decoded = true
		res := Result{Value: payload}
		if payload != "whole" {
			res.Flaws = []error{errFlaw}
		}
		fx = r.step(Decoded{t, []Result{res}})
	}
	for _, n := range fx.Notify {
		nack = nack || n.Kind == NoticeNack && n.Message == "resource index 0: a: "+errFlaw.Error()
		if n.Kind == NoticeEnd && payload != "" && (n.Valid > 0) == (n.Invalid > 0) {
			r.t.Errorf("%d entries valid, %d invalid", n.Valid, n.Invalid)
		}
	}
	r.step(Written{r.ref}, Delivered{r.ref})
	told, _ = news(fx)
	return told, decoded, nack
}

func (r *flawRig) want(payload string, kind NoticeKind, decoded, nack bool) {
	r.t.Helper()
	told, d, n := r.says(payload)
	if d != decoded || n != nack || len(told) > 1 || len(told) == 1 && told[0] != kind || len(told) == 0 && kind != 0 {
		r.t.Errorf("%q: told %v, decoded %v, NACKed %v; want %v, %v, %v", payload, told, d, n, kind, decoded, nack)
	}
}

// A resource parts of which cannot be used is accepted, and NACKed as often as it comes; the
// same bytes are not decoded again.
//
// spec: ACK-6 TYPE-7
func TestFlaws(t *testing.T) {
	r := newFlawRig(t)
	r.want("flawed", NoticeUpdated, true, true)
	r.want("flawed", 0, false, true)
	r.want("whole", NoticeUpdated, true, false)
	r.want("whole", 0, false, false)
	r.want("flawed", NoticeUpdated, true, true)
	r.want("", NoticeDoesNotExist, false, false)
	r.want("whole", NoticeUpdated, true, false)
	r.want("whole", 0, false, false)
}

// What is held is as flawed when another server stands in.
//
// spec: ACK-6 FALLBACK-3
func TestFlawsMove(t *testing.T) {
	r := newFlawRig(t)
	r.want("flawed", NoticeUpdated, true, true)
	r.step(Down{Ref: r.ref, Kind: FaultStream, Err: ErrNoAnswer}, Retry{Ref{0, 1}})
	r.step(Down{Ref: Ref{0, 2}, Kind: FaultConnection, Err: ErrNoAnswer})
	r.ref = Ref{1, 1}
	r.up()
	r.want("flawed", 0, false, true)
	r.want("whole", NoticeUpdated, true, false)
}
