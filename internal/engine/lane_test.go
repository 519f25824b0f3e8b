package engine

import (
	"bytes"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/xdswatch/xdswatch/internal/machine"
	"github.com/xdswatch/xdswatch/transport"
)

// Lanes that are used in another order than they are numbered are of no concern to each other.
func TestLanesOutOfOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := newWireConn()
		e := start(t, conn)
		kind := (&slowKind{}).kind()
		sinks := map[int]*sink{}
		for _, number := range []int{3, 1, 0} {
			sinks[number] = &sink{}
			w := watchOf(kind, sinks[number], fmt.Sprint("x", number))
			w.Lane = int32(number)
			e.Start(w)
		}
		st := <-conn.streams
		st.requests(t)
		st.in <- things(t, "1", "x0", "x1", "x3")
		for number, s := range sinks {
			want := []string{fmt.Sprintf("x%d=X%d", number, number)}
			if got := s.told(); !slices.Equal(got[:1], want) {
				t.Errorf("lane %d was told %q", number, got)
			}
		}
	})
}

// A handler that runs for less than the timeout is not reported, and one that runs for longer is, also where its lane has
// rested.
//
// spec: U-3
func TestHandlerTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := newWireConn()
		var out bytes.Buffer
		e := New(Config{
			Servers: []Server{{
				URI: "test", Connect: func() (transport.Conn, error) { return conn, nil },
				Backoff: func() backoff.BackOff { return backoff.NewConstantBackOff(time.Second) },
			}},
			Sources: []machine.Source{{Servers: []int{0}}}, HandlerTimeout: 10 * time.Second,
			Node: func() []byte { return nil }, Logger: slog.New(slog.NewTextHandler(&out, nil)),
		})
		defer func() {
			e.Close()
			e.Wait()
		}()
		var takes time.Duration
		e.Start(watchOf((&slowKind{}).kind(), tellFunc(func() { time.Sleep(takes) }), ""))
		st := <-conn.streams
		st.requests(t)
		for i, tt := range []struct {
			takes, rests time.Duration
			says         int
		}{{0, 900 * time.Millisecond, 0}, {9900 * time.Millisecond, time.Minute, 0}, {11 * time.Second, time.Minute, 2}} {
			takes = tt.takes
			st.in <- things(t, fmt.Sprint(i), fmt.Sprint("a", i))
			time.Sleep(tt.takes + tt.rests)
			synctest.Wait()
			if n := strings.Count(out.String(), "a handler"); n != tt.says {
				t.Errorf("a handler that took %v was told of %d times: %s", tt.takes, n, out.String())
			}
		}
	})
}

// A dispatcher that has had nothing to do for a while ends, and another begins when there is something to tell.
func TestIdleDispatcherEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := newWireConn()
		e := start(t, conn)
		s := &sink{}
		e.Start(watchOf((&slowKind{}).kind(), s, "a"))
		st := <-conn.streams
		st.requests(t)
		works := func() (is bool) {
			synctest.Wait()
			e.ask(func() { is = e.lanes.all[0].works })
			return is
		}
		for _, version := range []string{"1", "2", "3"} {
			st.in <- things(t, version, "a", "b"+version)
			if !works() {
				t.Error("the dispatcher has ended at once")
			}
			time.Sleep(time.Minute)
			if works() {
				t.Error("the dispatcher of an idle lane stays")
			}
			e.Start(watchOf((&slowKind{}).kind(), s, "a"))
			if !works() {
				t.Error("no dispatcher tells a late watch")
			}
		}
		if lines := s.told(); len(slices.DeleteFunc(lines, func(l string) bool { return l != "a=A" })) != 4 {
			t.Errorf("told %q", lines)
		}
	})
}
