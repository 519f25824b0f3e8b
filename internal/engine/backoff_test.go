package engine

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/xdswatch/xdswatch/transport"
)

// panicky is a policy that panics where it is told to.
type panicky struct{ next, reset bool }

func (p panicky) NextBackOff() time.Duration {
	if p.next {
		panic("on purpose")
	}
	return time.Hour
}

func (p panicky) Reset() {
	if p.reset {
		panic("on purpose")
	}
}

// A policy that cannot be used gives way to the default, and the operator is told once.
func TestBackoffPanics(t *testing.T) {
	for name, policy := range map[string]func() backoff.BackOff{
		"made":  func() backoff.BackOff { panic("on purpose") },
		"nil":   func() backoff.BackOff { return nil },
		"next":  func() backoff.BackOff { return panicky{next: true} },
		"reset": func() backoff.BackOff { return panicky{reset: true} },
	} {
		t.Run(name, func(t *testing.T) {
			told := 0
			r := &retry{make: policy, complain: func(string, ...any) { told++ }}
			r.reset()
			for range 10 {
				if d := r.pause(); d >= FirstWait*3/2 {
					t.Errorf("a pause of %v", d)
				}
			}
			if d := r.grow(); d < FirstWait/2 || d > FirstWait*3/2 {
				t.Errorf("a wait of %v", d)
			}
			if told != 1 {
				t.Errorf("the operator is told %d times", told)
			}
		})
	}
}

// Nor does it end the loop.
func TestBackoffPanicsOnTheLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := newWireConn()
		conn.refuse = errors.New("no")
		e := startServers(t, Server{
			URI: "test", Connect: func() (transport.Conn, error) { return conn, nil },
			Backoff: func() backoff.BackOff { panic("on purpose") },
		})
		e.Start(watchOf((&slowKind{}).kind(), &sink{}, "a"))
		synctest.Wait()
		e.ask(func() { conn.refuse = nil })
		e.ResetBackoff()
		<-conn.streams
	})
}
