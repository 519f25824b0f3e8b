package machine

import (
	"errors"
	"slices"
	"testing"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"

	"github.com/xdswatch/xdswatch/internal/wire"
)

var errFlaw = errors.New("a part is bad")

// flawRig is two servers, of which the second stands in for the first, and one resource with
// a flaw.
type flawRig struct {
	*rig
	nonce  byte
	stored string // what the store has
}

func newFlawRig(t *testing.T, first ...Server) *flawRig {
	stored := *scaleType
	stored.Stored = true
	r := &flawRig{rig: &rig{t: t, m: newMachine(
		Config{ResourceTimeout: silence}, append(first, Server{Delta: true}, Server{Delta: true}), Source{Servers: []int{0, 1}, ReachabilityOnly: true, Stored: true},
	), now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), ref: Ref{Gen: 1}, typ: &stored}}
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
			Name: []byte("a"), Version: []byte(payload), TypeURL: []byte(r.typ.URL), Payload: []byte(payload), HasBody: true,
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
	for _, k := range fx.Keep {
		r.stored = string(k.Changes[len(k.Changes)-1].Raw)
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

// late checks what a watch is told that begins now: bytes and versions, those of the last whole value first.
func (r *flawRig) late(want ...string) {
	r.t.Helper()
	w := r.watch("a")
	var got []string
	for _, n := range r.step(Start{w}).Notify {
		if slices.Contains(n.To, w) && n.Whole != nil {
			got = append(got, string(n.Whole.Raw)+" "+n.Whole.Version)
		}
		if slices.Contains(n.To, w) {
			got = append(got, string(n.Raw)+" "+n.Version)
		}
	}
	if !slices.Equal(got, want) {
		r.t.Errorf("a late watch is told %q, want %q", got, want)
	}
	r.step(Stop{w})
}

// dumped checks what dumps and gauges say of the resource.
func (r *flawRig) dumped(status Status, version string) {
	r.t.Helper()
	d, _ := r.m.Held(0, r.typ.URL, "a")
	counts := Counts{}
	r.m.Count(&Listing{}, counts, 100, func(a string) string { return a })
	if d.Status != status || d.Version != version || (status == StatusNacked) != (d.Fault != nil && d.Fault.Version == version && string(d.Refused) == version) {
		r.t.Errorf("dumped as %+v", d)
	}
	for key := range counts {
		if key.Status != status || !key.Held {
			r.t.Errorf("counted as %+v", key)
		}
	}
}

// inStore checks what the store has.
func (r *flawRig) inStore(want string) {
	r.t.Helper()
	if r.stored != want {
		r.t.Errorf("the store has %q, want %q", r.stored, want)
	}
}

// size checks how many bytes are counted.
func (r *flawRig) size(want int64) {
	r.t.Helper()
	if got := r.m.streams[r.ref.Stream].heldBytes(); got != want {
		r.t.Errorf("%d bytes are counted, want %d", got, want)
	}
}

// lists begins a new stream, and checks which version of the resource its first request lists.
func (r *flawRig) lists(want string) {
	r.t.Helper()
	r.step(Down{Ref: r.ref, Kind: FaultStream, Err: ErrNoAnswer}, Retry{r.ref})
	r.ref.Gen++
	var first []byte
	for _, s := range r.step(Up{Ref: r.ref}).Send {
		first = slices.Concat(s.Message...)
	}
	r.step(Written{r.ref})
	var q discoveryv3.DeltaDiscoveryRequest
	if err := proto.Unmarshal(first, &q); err != nil {
		r.t.Fatal(err)
	}
	if got := q.GetInitialResourceVersions()["a"]; got != want {
		r.t.Errorf("the version %q is listed, want %q", got, want)
	}
}

// Beside a value with flaws the last one without is kept. It is what counts as accepted, for the versions that a new stream
// lists and for the store; a late watch is told of both.
//
// spec: WATCH-3 DELTA-9 LKG-1 CSDS-2
func TestLastWhole(t *testing.T) {
	r := newFlawRig(t)
	r.want("bad 1", NoticeUpdated, true, true) // nothing was accepted yet
	r.dumped(StatusNacked, "bad 1")
	r.late("bad 1 bad 1")
	r.inStore("")
	r.lists("")
	r.want("whole", NoticeUpdated, true, false)
	r.want("bad 2", NoticeUpdated, true, true)
	r.want("bad 33", NoticeUpdated, true, true)
	r.dumped(StatusNacked, "bad 33")
	r.late("whole whole", "bad 33 bad 33")
	r.inStore("whole")
	r.size(int64(len("whole") + len("bad 33")))
	r.lists("")
	r.want("bad 33", 0, false, true)
	r.want("whole", NoticeUpdated, true, false)
	r.dumped(StatusAcked, "whole")
	r.late("whole whole")
	r.size(int64(len("whole")))
	r.lists("whole")
	r.want("bad 2", NoticeUpdated, true, true)
	r.want("", NoticeDoesNotExist, false, false)
	r.inStore("")
	r.size(0)

	// So it is if another server gives the same.
	r.want("whole", NoticeUpdated, true, false)
	r.want("bad 2", NoticeUpdated, true, true)
	r.step(Down{Ref: r.ref, Kind: FaultStream, Err: ErrNoAnswer}, Retry{r.ref})
	r.step(Down{Ref: Ref{0, r.ref.Gen + 1}, Kind: FaultConnection, Err: ErrNoAnswer})
	r.ref = Ref{1, 1}
	r.up()
	r.want("bad 2", 0, false, true)
	r.late("whole whole", "bad 2 bad 2")
	r.lists("")
}

// With fail_on_data_errors nothing is kept of the value before one with flaws, and the store forgets it.
//
// spec: ERR-3 LKG-5
func TestLastWholeGoes(t *testing.T) {
	r := newFlawRig(t, Server{Delta: true, FailOnDataErrors: true})
	r.want("whole", NoticeUpdated, true, false)
	if r.stored != "whole" {
		t.Errorf("the store has %q", r.stored)
	}
	r.want("bad", NoticeUpdated, true, true)
	if d, _ := r.m.Held(0, r.typ.URL, "a"); r.stored != "" || d.Whole != nil {
		t.Errorf("the store has %q, and the client %+v", r.stored, d.Whole)
	}
}

// The last whole value is not kept where both would be more than may be held of the server.
//
// spec: H-1
func TestLastWholeIsBounded(t *testing.T) {
	for most, kept := range map[int64]bool{11: false, 12: true} {
		r := newFlawRig(t)
		r.m.streams[0].config.MaxHeld = most
		r.want("whole", NoticeUpdated, true, false)
		r.want("bad one", NoticeUpdated, true, true)
		if d, _ := r.m.Held(0, r.typ.URL, "a"); (d.Whole != nil) != kept {
			t.Errorf("with a bound of %d the client keeps %+v", most, d.Whole)
		}
	}
}

// A value with flaws whose version is not listed goes if the server does not speak of it on a new stream.
//
// spec: DELTA-4 DELTA-9
func TestFlawedIsConfirmed(t *testing.T) {
	r := newFlawRig(t)
	r.want("bad", NoticeUpdated, true, true)
	r.step(Down{Ref: r.ref, Kind: FaultStream, Err: ErrNoAnswer}, Retry{r.ref})
	r.ref.Gen++
	r.up()
	r.step(Received{r.ref, &wire.Response{TypeURL: r.typ.URL, Nonce: "n"}})
	r.step(Written{r.ref}, Delivered{r.ref})
	r.now = r.now.Add(silence)
	if told, _ := news(r.step(Tick{})); len(told) != 1 || told[0] != NoticeDoesNotExist {
		t.Errorf("told %v, want that it does not exist", told)
	}
}
