package engine

import (
	"bytes"
	"errors"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/xdswatch/xdswatch/internal/machine"
	"github.com/xdswatch/xdswatch/resource"
)

func TestDecode(t *testing.T) {
	type list struct{ s []string } // cannot be compared
	kind := resource.Custom(url, resource.Options{}, func(_ resource.Source, b []byte) (any, error) {
		switch text := string(b); {
		case text == "panic":
			panic("oh")
		case text == "bad":
			return nil, errors.New("bad")
		case strings.HasPrefix(text, "list"):
			return list{nil}, nil
		default:
			return strings.ToUpper(text), nil
		}
	})
	tests := []struct {
		raw, old string
		same     bool
		err      string
	}{
		{raw: "a"},
		{raw: "Ab", old: "aB", same: true},
		{raw: "Ab", old: "aC"},
		{raw: "ab", old: "bad"},
		{raw: "list", old: "lisT"},
		{raw: "bad", err: "bad"},
		{raw: "panic", err: "the decoder panicked: a value of type string at engine.TestDecode.func1"},
	}
	for _, tt := range tests {
		frame := []byte(tt.raw)
		it := machine.Item{Raw: frame}
		if tt.old != "" {
			it.Old = []byte(tt.old)
		}
		items := []machine.Item{it}
		r := decode(kind, resource.Source{}, &items[0])
		text := ""
		if r.Err != nil {
			text = r.Err.Error()
		} else if frame[0] = '!'; !bytes.Equal(items[0].Raw, []byte(tt.raw)) {
			t.Errorf("%q: what is kept shares the frame", tt.raw)
		}
		if r.Same != tt.same || text != tt.err {
			t.Errorf("%q over %q: same %v, error %q", tt.raw, tt.old, r.Same, text)
		}
	}
}

// fixed is a policy of one wait that counts its calls.
type fixed struct {
	wait         time.Duration
	asked, reset int
}

func (f *fixed) NextBackOff() time.Duration { f.asked++; return f.wait }
func (f *fixed) Reset()                     { f.reset++ }

func TestRetry(t *testing.T) {
	f := &fixed{wait: 4 * time.Second}
	r := &retry{policy: f}
	for range 100 {
		if d := r.pause(); d < 0 || d >= f.wait {
			t.Fatalf("a pause of %v", d)
		}
	}
	if f.asked != 1 || f.reset != 1 {
		t.Errorf("the first interval was found with %d questions and %d resets", f.asked, f.reset)
	}
	if d := r.grow(); d != f.wait || r.last != f.wait {
		t.Errorf("after a failure: %v", d)
	}
	r.lived(f.wait)
	if f.reset != 1 {
		t.Error("the growth started over with a stream that did not outlive it")
	}
	r.lived(f.wait + 1)
	if f.reset != 2 || r.last != 0 {
		t.Error("the growth did not start over")
	}
	f.wait = backoff.Stop
	if d := r.grow(); d != MaxWait {
		t.Errorf("a policy that gives up makes %v", d)
	}
	zero := &retry{policy: &fixed{}}
	if d := zero.pause(); d != 0 {
		t.Errorf("a policy of no waits makes %v", d)
	}
}

// Each wait ends in its time, whichever began first.
func TestWaits(t *testing.T) {
	now := time.Now()
	q := waits{of: map[int]*retry{}}
	for i, after := range []time.Duration{3, 1, 2, 1} {
		q.of[i] = &retry{}
		q.begin(q.of[i], now.Add(after*time.Second), machine.Ref{Stream: i})
	}
	var over []int
	for range 5 {
		now = now.Add(time.Second)
		for _, ev := range q.due(now) {
			over = append(over, ev.(machine.Retry).Stream)
		}
	}
	if !slices.Equal(over, []int{1, 3, 2, 0}) || !q.next.IsZero() {
		t.Errorf("the waits of %d ended, and the next does at %v", over, q.next)
	}
}

func TestNewBackoff(t *testing.T) {
	p := NewBackoff(time.Second, 3*time.Second)()
	interval := time.Second
	for range 1000 { // it never gives up
		if d := p.NextBackOff(); d < interval/2 || d > interval*3/2 {
			t.Fatalf("%v, want %v give or take a half", d, interval)
		}
		interval = min(interval*16/10, 3*time.Second)
	}
}

// Polls that fail keep the pace of the others; only long polls, which have next to none, slow
// down.
//
// spec: REST-3
func TestNewPolling(t *testing.T) {
	for delay, most := range map[time.Duration]time.Duration{
		time.Second: 2 * time.Second, time.Hour: 2 * time.Hour,
		time.Millisecond: 4500 * time.Millisecond, 0: 4500 * time.Millisecond,
	} {
		p := NewPolling(delay, time.Second, 3*time.Second)()
		var longest time.Duration
		for range 1000 {
			d := p.NextBackOff()
			if d < delay || d > most {
				t.Fatalf("%v after a poll, with a delay of %v", d, delay)
			}
			longest = max(longest, d)
		}
		if longest < most*3/4 {
			t.Errorf("no more than %v with a delay of %v", longest, delay)
		}
	}
	if d := NewPolling(math.MaxInt64, time.Second, time.Second)().NextBackOff(); d < time.Hour {
		t.Errorf("%v with the longest delay", d)
	}
}

// A worker ends with the engine even if the loop did not take what it had done.
func TestWorkerEndsWithTheEngine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &Engine{inbox: make(chan any, 1), stop: make(chan struct{})}
		e.worker().jobs <- job{task: &machine.Task{}}
		synctest.Wait()
		if len(e.inbox) != 1 {
			t.Fatal("the worker did nothing")
		}
		e.Close() // which waits for it
	})
}

// A decoder that ends its goroutine costs its own resource and no other.
//
// spec: H-12
func TestDecoderEndsItsGoroutine(t *testing.T) {
	kind := resource.Custom("type.googleapis.com/test.Thing", resource.Options{}, func(_ resource.Source, b []byte) (string, error) {
		if string(b) == "exit" {
			runtime.Goexit()
		}
		return string(b), nil
	})
	e := &Engine{inbox: make(chan any, 1), stop: make(chan struct{})}
	w := e.worker()
	for range 3 { // the worker is there for the next job
		task := &machine.Task{}
		for _, raw := range []string{"a", "exit", "b", "exit"} {
			task.Items = append(task.Items, machine.Item{Raw: []byte(raw)})
		}
		w.jobs <- job{task: task, kind: kind}
		rs := (<-e.inbox).(done).decoded.Results
		if rs[0].Value != "a" || rs[2].Value != "b" || rs[0].Err != nil || rs[2].Err != nil {
			t.Errorf("the others are %v", rs)
		}
		if rs[1].Err != errGoexit || rs[3].Err != errGoexit {
			t.Errorf("the errors are %v and %v", rs[1].Err, rs[3].Err)
		}
	}
	e.Close() // which waits for the worker
}
