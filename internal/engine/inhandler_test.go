package engine

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/xdswatch/xdswatch/internal/machine"
)

func TestInHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := newWireConn()
		conn.refuse = errors.New("no")
		e := start(t, conn)
		in := make(chan bool, 1)
		e.Start(watchOf((&slowKind{}).kind(), tellFunc(func() {
			for depth := range 200 {
				in <- below(depth, InHandler)
			}
			ApartInHandler(func() { in <- InHandler() }, nil)
			Apart(func() { in <- !InHandler() }, nil)
			close(in)
		}), "a"))
		depth := 0
		for ok := range in {
			if !ok {
				t.Errorf("function %d below a handler does not know where it is", depth)
			}
			depth++
		}
		if depth != 202 || below(100, InHandler) {
			t.Error("the test is no handler")
		}
	})
}

// below calls a function some calls further down.
func below(depth int, f func() bool) bool {
	if depth == 0 {
		return f()
	}
	return below(depth-1, f)
}

type tellFunc func()

func (f tellFunc) Tell(*machine.Notice) bool { f(); return false }
func (tellFunc) Alive() bool                 { return true }
func (tellFunc) Flush(bool)                  {}
