package client_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/testutil"
)

// answering is a rig whose server has every cluster that is asked for, but those whose
// name begins with "no".
func answering(t *testing.T, test func(*testing.T, *rig)) {
	n := 0
	srv := func() *testutil.Server {
		return testutil.NewServer(testutil.OnRequest(func(st *testutil.Stream, req *testutil.Request) {
			var before []string
			if all := st.Requests(); len(all) > 1 {
				before = all[len(all)-2].Names()
			}
			if !slices.ContainsFunc(req.Names(), func(n string) bool { return !slices.Contains(before, n) }) {
				return // it asks for nothing new
			}
			n++
			m := testutil.SotW(req.TypeURL(), "1", fmt.Sprint("n", n))
			for _, name := range req.Names() {
				if !strings.HasPrefix(name, "no") {
					m.Resources = append(m.Resources, testutil.SotW("", "", "", cluster(name, "")).Resources...)
				}
			}
			_ = st.Send(m) // the stream may be over
		}))
	}
	synctest.Test(t, func(t *testing.T) { test(t, newRig(t, srv())) })
}

// Only so many names are kept; the longest idle goes first, and never one that is waited for.
// spec: ONDEMAND-4
func TestGetLimit(t *testing.T) {
	if client.GetMaxNames != 10_000 || client.GetIdle != time.Minute {
		t.Errorf("the bounds are %d names and %v", client.GetMaxNames, client.GetIdle)
	}
	answering(t, func(t *testing.T, r *rig) {
		ctx := context.Background()
		client.SetMaxNames(r.c, 3)
		get := func(name string) {
			t.Helper()
			if ev, err := r.c.Get(ctx, cds.Type, name); err != nil || ev.Name != name {
				t.Errorf("Get %q: %v, %v", name, ev.Name, err)
			}
			time.Sleep(time.Second)
			synctest.Wait()
		}
		for _, name := range []string{"a", "b", "c", "a", "d"} {
			get(name)
		}
		same(t, "kept", keptNames(r.c), "a c d") // b was idle for longest
		short, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		errs := make(chan error)
		for i := range 3 {
			go func() {
				_, err := r.c.Get(short, cds.Type, fmt.Sprint("no", i))
				errs <- err
			}()
			synctest.Wait()
		}
		time.Sleep(10 * time.Millisecond) // until the server is told
		same(t, "kept", keptNames(r.c), "no0 no1 no2")
		if _, err := r.c.Get(ctx, cds.Type, "x"); !errors.Is(err, client.ErrTooManyNames) || !strings.Contains(err.Error(), `"x"`) {
			t.Errorf("one more than can be waited for: %v", err)
		}
		for range 3 {
			if err := <-errs; !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("a name without an answer: %v", err)
			}
		}
		get("x")
	})
}

func keptNames(c *client.Client) string {
	var names []string
	for _, s := range c.Dump() {
		names = append(names, s.Name)
	}
	return strings.Join(names, " ")
}

// A client that closes ends those who wait.
func TestGetWhileClosing(t *testing.T) {
	answering(t, func(t *testing.T, r *rig) {
		time.AfterFunc(time.Second, func() { r.c.Close() })
		if _, err := r.c.Get(context.Background(), cds.Type, "no"); err != client.ErrClosed {
			t.Errorf("Get while the client closes: %v", err)
		}
	})
}

// Letting a name go costs the same however many are kept: no other is looked at.
func TestGetEvictsWithoutLooking(t *testing.T) {
	for _, n := range []int{1, client.GetMaxNames} {
		if left := client.EvictAmongBlank(n); left != n {
			t.Errorf("%d names are left, want %d", left, n)
		}
	}
}
