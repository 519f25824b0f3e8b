package ondemand_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xdswatch/xdswatch/internal/ondemand"
)

// rig is a pool of texts, and what became of them.
type rig struct {
	*ondemand.Pool[string, string]
	t *testing.T

	mu  sync.Mutex
	log []string
}

func inBubble(t *testing.T, c ondemand.Config[string], test func(*testing.T, *rig)) {
	synctest.Test(t, func(t *testing.T) {
		r := &rig{t: t}
		c.Release = func(v string) { r.note("-" + v) }
		r.Pool = ondemand.New[string](c)
		defer r.Close()
		test(t, r)
	})
}

func (r *rig) note(what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.log = append(r.log, what)
}

func (r *rig) enter(key string) *ondemand.Item[string, string] {
	r.t.Helper()
	it, err := r.Enter(key, func() (string, error) {
		r.note("+" + key)
		return key, nil
	})
	if err != nil || it.Value != key {
		r.t.Fatalf("Enter %q: %v, %v", key, it, err)
	}
	return it
}

// use is a use that takes no time.
func (r *rig) use(keys ...string) {
	r.t.Helper()
	for _, key := range keys {
		r.Leave(r.enter(key), false)
		time.Sleep(time.Millisecond)
	}
}

// became compares what happened since the last call.
func (r *rig) became(want string) {
	r.t.Helper()
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	if got := strings.Join(r.log, " "); got != want {
		r.t.Errorf("became %q, want %q", got, want)
	}
	r.log = nil
}

// A thing is made once, however many wait for it, while others do not wait; an error is that of all
// who wait, and of nobody later.
//
// spec: ONDEMAND-1 ONDEMAND-2
func TestMadeOnce(t *testing.T) {
	inBubble(t, ondemand.Config[string]{Idle: time.Minute}, func(t *testing.T, r *rig) {
		fault, blocked := errors.New("fault"), make(chan struct{})
		var made atomic.Int32
		var wait sync.WaitGroup
		for range 3 {
			wait.Go(func() {
				it, err := r.Enter("a", func() (string, error) {
					made.Add(1)
					<-blocked
					return "", fault
				})
				if it != nil || err != fault {
					t.Errorf("Enter: %v, %v", it, err)
				}
			})
		}
		synctest.Wait()
		if _, ok := r.Touch("a"); ok {
			t.Error("a thing is there before it is made")
		}
		r.use("b")
		close(blocked)
		wait.Wait()
		if n := made.Load(); n != 1 {
			t.Errorf("made %d times", n)
		}
		if _, ok := r.Touch("a"); ok {
			t.Error("a thing is there that could not be made")
		}
		r.use("a", "a")
		r.became("+b +a")
	})
}

// The longest idle thing makes room, whether it was used in full or only touched; none that is used.
//
// spec: ONDEMAND-4 U-6
func TestRoom(t *testing.T) {
	inBubble(t, ondemand.Config[string]{Idle: time.Hour, Most: 3}, func(t *testing.T, r *rig) {
		r.use("a", "b", "c", "a")
		if v, ok := r.Touch("b"); v != "b" || !ok {
			t.Errorf("Touch: %q, %t", v, ok)
		}
		r.use("d")
		r.became("+a +b +c -c +d")
		a, b, d := r.enter("a"), r.enter("b"), r.enter("d")
		if it, err := r.Enter("e", nil); it != nil || err != ondemand.ErrTooMany {
			t.Errorf("one more than can be used: %v, %v", it, err)
		}
		r.Leave(b, false)
		r.Leave(a, false)
		r.use("e")
		r.Leave(d, false)
		r.became("-b +e")
	})
}

// A thing goes when it was idle for long enough since its last use, and at once if it is not to be kept.
//
// spec: ONDEMAND-4
func TestIdle(t *testing.T) {
	inBubble(t, ondemand.Config[string]{Idle: time.Minute}, func(t *testing.T, r *rig) {
		r.use("a", "b")
		a := r.enter("a")
		time.Sleep(time.Hour)
		r.became("+a +b -b")
		r.Leave(a, false)
		time.Sleep(40 * time.Second)
		r.Touch("a")
		time.Sleep(40 * time.Second)
		r.became("")
		time.Sleep(21 * time.Second)
		r.became("-a")
	})
	inBubble(t, ondemand.Config[string]{Idle: -1}, func(t *testing.T, r *rig) {
		a := r.enter("a")
		r.use("a")
		r.became("+a")
		r.Leave(a, false)
		r.became("-a")
	})
}

// A miss goes some time after it was first known, however often it is used, and not before its last user.
//
// spec: ONDEMAND-4
func TestMiss(t *testing.T) {
	inBubble(t, ondemand.Config[string]{Idle: time.Minute, Miss: 4500 * time.Millisecond}, func(t *testing.T, r *rig) {
		for range 12 {
			r.Leave(r.enter("a"), true)
			time.Sleep(time.Second)
		}
		r.became("+a -a +a -a +a")
		r.Leave(r.enter("a"), false) // it was found
		time.Sleep(30 * time.Second)
		r.became("")
		a := r.enter("a")
		r.Leave(r.enter("a"), true)
		time.Sleep(10 * time.Second)
		r.became("")
		r.Leave(a, true)
		r.became("-a")
	})
}

// What has to stay is kept for as long as it has to, and makes no room; others are not looked at.
//
// spec: ONDEMAND-4 U-6
func TestStays(t *testing.T) {
	var stay atomic.Bool
	var looks, asked atomic.Int32
	stay.Store(true)
	c := ondemand.Config[string]{Idle: 30 * time.Second, Most: 2, Stays: func() func(string) bool {
		looks.Add(1)
		return func(v string) bool { asked.Add(1); return stay.Load() && v == "a" }
	}}
	inBubble(t, c, func(t *testing.T, r *rig) {
		r.use("a", "b")
		time.Sleep(time.Hour)
		r.became("+a +b -b")
		r.use("b")
		looks.Store(0)
		asked.Store(0)
		r.use("c")
		r.became("+b -b +c")
		if l, a := looks.Load(), asked.Load(); l != 1 || a != 2 {
			t.Errorf("%d looks at %d things for room, want one at two", l, a)
		}
		c := r.enter("c")
		if _, err := r.Enter("d", nil); err != ondemand.ErrTooMany {
			t.Errorf("room beside what stays and what is used: %v", err)
		}
		r.Leave(c, false)
		stay.Store(false)
		time.Sleep(time.Minute)
		r.became("-a -c")
	})
}

// What has to stay and is not to be kept idle is looked at once a second.
//
// spec: U-6
func TestStaysBriefly(t *testing.T) {
	looks := 0
	c := ondemand.Config[string]{Idle: -1, Stays: func() func(string) bool {
		looks++
		return func(string) bool { return looks <= 60 }
	}}
	inBubble(t, c, func(t *testing.T, r *rig) {
		r.use("a")
		time.Sleep(59 * time.Second)
		r.became("+a")
		time.Sleep(time.Second)
		r.became("-a")
	})
}

// Making room costs the same however many things are used: none of them is looked at.
func TestRoomWithoutLooking(t *testing.T) {
	for _, n := range []int{1, 10_000} {
		looked := 0
		p := ondemand.New[int](ondemand.Config[int]{Idle: time.Hour, Most: n + 1, Release: func(int) {}, Stays: func() func(int) bool {
			return func(int) bool { looked++; return false }
		}})
		for i := range n + 2 {
			it, err := p.Enter(i, func() (int, error) { return i, nil })
			if err != nil {
				t.Fatal(err)
			}
			if i == n/2 {
				p.Leave(it, false)
			}
		}
		if _, ok := p.Touch(n / 2); ok || looked != 1 {
			t.Errorf("of %d things %d were looked at; the idle one is left: %t", n, looked, ok)
		}
		p.Close()
	}
}

// After Close things may be used still, and none is released.
func TestClose(t *testing.T) {
	inBubble(t, ondemand.Config[string]{Idle: time.Second, Most: 2}, func(t *testing.T, r *rig) {
		r.use("a")
		b := r.enter("b")
		r.Close()
		r.Leave(b, true)
		r.use("b")
		time.Sleep(time.Hour)
		r.became("+a +b")
	})
}

// Whatever callers do at one time, a thing that is used is there, each is released once, and in the
// end none is left.
//
// spec: ONDEMAND-1 ONDEMAND-4
func TestCrowd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type thing struct{ ended atomic.Bool }
		var live atomic.Int32
		p := ondemand.New[int](ondemand.Config[*thing]{Idle: 3 * time.Millisecond, Miss: time.Millisecond, Most: 4, Release: func(v *thing) {
			if v.ended.Swap(true) {
				t.Error("a thing is released twice")
			}
			live.Add(-1)
		}})
		var wait sync.WaitGroup
		for g := range 8 {
			wait.Go(func() {
				for i := range 300 {
					it, err := p.Enter((g*i+i/7)%6, func() (*thing, error) {
						if i%11 == 0 {
							return nil, fmt.Errorf("%d", i)
						}
						live.Add(1)
						return &thing{}, nil
					})
					if err != nil {
						continue
					}
					if time.Sleep(time.Duration(i%3) * time.Millisecond); it.Value.ended.Load() {
						t.Error("a thing is released while it is used")
					}
					p.Leave(it, i%5 == 0)
					p.Touch(i % 6)
				}
			})
		}
		wait.Wait()
		synctest.Wait()
		if n := live.Load(); n > 4 {
			t.Errorf("%d things live", n)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if n := live.Load(); n != 0 {
			t.Errorf("%d things are left", n)
		}
		if slices.ContainsFunc([]int{0, 1, 2, 3, 4, 5}, func(i int) bool { _, ok := p.Touch(i); return ok }) {
			t.Error("a thing is there that was released")
		}
	})
}

// A making that panics is an error for who waits for it, and leaves nothing behind.
func TestMakingPanics(t *testing.T) {
	inBubble(t, ondemand.Config[string]{Idle: time.Minute, Most: 1}, func(t *testing.T, r *rig) {
		waited := make(chan error, 1)
		func() {
			defer func() {
				if recover() == nil {
					t.Error("the panic was not passed on")
				}
			}()
			_, _ = r.Enter("a", func() (string, error) {
				go func() {
					_, err := r.Enter("a", func() (string, error) { return "other", nil })
					waited <- err
				}()
				synctest.Wait()
				panic("no")
			})
		}()
		if err := <-waited; err == nil || !strings.Contains(err.Error(), "panicked") {
			t.Errorf("who waited was told %v", err)
		}
		r.use("b") // there is room
	})
}
