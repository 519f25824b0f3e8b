package machine

import (
	"math"
	"strconv"
	"testing"
	"time"
)

// With the default settings a hundred messages leave at once and then ten in a second; what
// could not leave before is one message. On a new stream nothing old is owed, and the
// bucket is as empty as it was.
//
// spec: RATE-1
func TestRate(t *testing.T) {
	r := newRig(t, Config{})
	r.m.servers[0].Rate = Rate{Tokens: 100, Every: time.Second / 10}
	r.step(Start{r.watch("r0000")})
	r.up()
	sent := 1
	for i := range 110 {
		sent += len(r.decode(r.receive(strconv.Itoa(i), 1)[0]).Send)
		r.step(Delivered{r.ref}, Written{r.ref})
	}
	if sent != 100 {
		t.Errorf("%d messages left, want 100", sent)
	}
	want := Throttled{Enforced: 1, Pending: 1}
	if got := r.m.Throttled(); len(got) != 1 || got[0] != want {
		t.Errorf("throttled %+v, want %+v", got, want)
	}
	if at, ok := r.m.Deadline(); !ok || at.Sub(r.now) != time.Second/10 {
		t.Errorf("deadline in %v (%t), want 100ms", at.Sub(r.now), ok)
	}
	r.step(Down{Ref: r.ref, Kind: FaultStream, Err: ErrDeletionKept})
	if got := r.m.Throttled()[0].Pending; got != 0 {
		t.Errorf("%d wait without a stream", got)
	}
	r.step(Retry{r.ref})
	r.now = r.now.Add(99 * time.Millisecond)
	r.ref.Gen++
	if fx := r.step(Up{Ref: r.ref}); len(fx.Send) != 0 {
		t.Error("a new stream brought a token")
	}
	r.now = r.now.Add(time.Millisecond)
	if fx := r.step(Tick{}); len(fx.Send) != 1 || len(fx.Notify) != 1 || fx.Notify[0].Kind != NoticeRequest {
		t.Errorf("%d messages, %v; want the first request", len(fx.Send), fx.Notify)
	}
}

// The bucket is full again when it was left alone for long enough, and never fuller.
//
// spec: RATE-1
func TestBucket(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		name string
		rate Rate
		at   []time.Duration // of what takes a token, as soon as there is one
		want time.Duration   // when the next one may, after the last
	}{
		{"none", Rate{}, []time.Duration{0, 0, 0}, math.MinInt64},
		{"one", Rate{1, time.Second}, []time.Duration{0}, time.Second},
		{"first of three", Rate{3, time.Second}, []time.Duration{0}, -time.Second},
		{"last of three", Rate{3, time.Second}, []time.Duration{0, 0, 0}, time.Second},
		{"half back", Rate{3, time.Second}, []time.Duration{0, 0, 0, 1500 * time.Millisecond}, 500 * time.Millisecond},
		{"no fuller than full", Rate{2, time.Second}, []time.Duration{0, time.Hour, time.Hour}, time.Second},
		{"once a year", Rate{1, 365 * 24 * time.Hour}, []time.Duration{0}, 365 * 24 * time.Hour},
		{"many, once a year", Rate{math.MaxUint32, 365 * 24 * time.Hour}, []time.Duration{0, 0}, math.MinInt64},
	} {
		var bucket throttle
		var now time.Time
		for _, at := range tt.at {
			now = start.Add(at)
			if ready := tt.rate.ready(&bucket); now.Before(ready) {
				t.Errorf("%s: no token at %v, only at %v", tt.name, at, ready.Sub(start))
			}
			tt.rate.spend(now, &bucket)
		}
		got := tt.rate.ready(&bucket).Sub(now)
		if tt.want == math.MinInt64 && got <= 0 {
			continue
		}
		if got != tt.want {
			t.Errorf("%s: the next token comes after %v, want %v", tt.name, got, tt.want)
		}
	}
}
