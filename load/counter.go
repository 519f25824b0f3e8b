package load

import (
	"runtime"
	"sync/atomic"
	"unsafe"
)

// What is counted of requests.
const (
	issued = iota
	succeeded
	failed
	kinds
)

// totals are numbers of requests since the counting began. They only grow: what is to be reported
// is the difference from what was reported, so that a report that is lost costs nothing (LRS-c).
type totals [kinds]uint64

func (t totals) minus(o totals) totals {
	for i := range t {
		t[i] -= o[i]
	}
	return t
}

func (t totals) inProgress() uint64 { return t[issued] - t[succeeded] - t[failed] }

// cell has counters on a cache line of their own.
type cell struct {
	n [kinds]atomic.Uint64
	_ [64 - 8*kinds]byte
}

// counter counts requests without a lock. It is one cell until two processors meet in it, and then
// some for each processor.
type counter struct {
	first cell
	more  atomic.Pointer[[]cell] // nil until then
}

func (c *counter) add(kind int) {
	if more := c.more.Load(); more != nil {
		pick(*more).n[kind].Add(1)
		return
	}
	n := &c.first.n[kind]
	if v := n.Load(); !n.CompareAndSwap(v, v+1) {
		pick(c.spread()).n[kind].Add(1)
	}
}

// pick is one cell of a power of two, mostly another one than that of a goroutine which runs at the
// same time: by where the stack is, which is only a number here. A random cell costs more, since its
// cache line was mostly another processor's last.
func pick(cells []cell) *cell {
	var here byte
	at := uintptr(unsafe.Pointer(&here))
	return &cells[(at>>11^at>>15)&uintptr(len(cells)-1)]
}

// maxCells bounds the memory of one counter to 8 KiB.
const maxCells = 128

func (c *counter) spread() []cell {
	n := 2
	for n < 2*runtime.GOMAXPROCS(0) && n < maxCells {
		n *= 2
	}
	cells := make([]cell, n)
	c.more.CompareAndSwap(nil, &cells)
	return *c.more.Load()
}

// read sums up. What ends is read before what begins, so that no more requests end than begin.
func (c *counter) read() (t totals) {
	for _, kind := range [...]int{failed, succeeded, issued} {
		// The cells are looked up each time: there may be more since the last.
		if more := c.more.Load(); more != nil {
			for i := range *more {
				t[kind] += (*more)[i].n[kind].Load()
			}
		}
		t[kind] += c.first.n[kind].Load()
	}
	return t
}
