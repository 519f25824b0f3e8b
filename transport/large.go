package transport

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// budget bounds what the large messages of all connections have in memory: from the time when they
// begin to come until the client is done with them. Others wait for their share; small messages pass.
type budget struct {
	mu    sync.Mutex
	used  int
	queue []*share // in the order of their coming
}

// large is the budget of the process, which bounds its memory.
var large budget

// holder is a connection. It has one share at a time: a server that sends several large messages, or
// is polled for them, holds up its own.
type holder struct{ held *share } // guarded by the budget

// share is the leave of a message to be in memory.
type share struct {
	of      *budget
	holder  *holder
	size    int
	slow    func()        // ends a message that comes too slowly
	granted chan struct{} // closed once the message may come

	// Guarded by the budget.
	timer *time.Timer // nil before it is granted
	came  int         // bytes since the timer was set
	whole bool        // nothing more has to come
	over  bool
}

// ask asks for a share. slow is called in a goroutine of its own if the message comes too slowly
// while others wait.
func (b *budget) ask(h *holder, size int, slow func()) *share {
	s := &share{of: b, holder: h, size: size, slow: slow, granted: make(chan struct{})}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.queue = append(b.queue, s)
	b.grantLocked()
	return s
}

// grantLocked gives shares to those that have waited longest. One that is larger than the budget
// has it alone.
func (b *budget) grantLocked() {
	for i := 0; i < len(b.queue); {
		s := b.queue[i]
		if s.holder.held != nil {
			i++
			continue
		}
		if b.used > 0 && b.used+s.size > largeBudget {
			return
		}
		b.queue = slices.Delete(b.queue, i, i+1)
		b.used += s.size
		s.holder.held = s
		s.timer = time.AfterFunc(largeTime, s.look)
		close(s.granted)
	}
}

// look ends a message that others wait for and that comes too slowly. One that has come whole is held
// up by the program's handlers: its share passes on.
func (s *share) look() {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	switch {
	case s.over:
	case len(s.of.queue) > 0 && s.whole:
		s.releaseLocked()
	case len(s.of.queue) > 0 && s.came < largePace:
		go s.slow()
	default:
		s.came = 0
		s.timer.Reset(largeTime)
	}
}

// progress notes that bytes of the message have come.
func (s *share) progress(n int) {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	s.came += n
}

// complete notes that all of the message has come.
func (s *share) complete() {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	s.whole = true
}

// wait returns when the message may come.
func (s *share) wait(ctx context.Context) error {
	select {
	case <-s.granted:
		return nil
	case <-ctx.Done():
		s.release()
		return context.Cause(ctx)
	}
}

// release gives the share to others, or asks for it no more. It may be called again, and on nil.
func (s *share) release() {
	if s == nil {
		return
	}
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	s.releaseLocked()
}

func (s *share) releaseLocked() {
	if s.over {
		return
	}
	s.over = true
	if s.timer == nil {
		close(s.granted) // to nobody
		s.of.queue = slices.DeleteFunc(s.of.queue, func(o *share) bool { return o == s })
	} else {
		s.timer.Stop()
		s.of.used -= s.size
		s.holder.held = nil
	}
	s.of.grantLocked()
}

// take takes the share of a message that has come whole; nil if the holder has none.
func (h *holder) take(b *budget) *share {
	b.mu.Lock()
	defer b.mu.Unlock()
	if s := h.held; s != nil && s.whole {
		return s
	}
	return nil
}

// close gives back what a message has that came whole, and that nobody will receive.
func (h *holder) close(b *budget) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if h.held != nil {
		h.held.releaseLocked()
	}
}

// errSlow is the end of a message that came too slowly.
var errSlow = fmt.Errorf("less than %d bytes of a message of more than %d came in %v while other messages waited for their turn", largePace, smallMessage, largeTime)
