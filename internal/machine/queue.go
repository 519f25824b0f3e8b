package machine

import "slices"

// timed is something that waits for a time.
type timed[T any] interface {
	before(T) bool
	// void says that it does not wait any more.
	void() bool
}

// queue is a binary heap of what waits, by its time. What waits no more, or for another time, leaves a void one
// behind: that goes when it comes to the front, or with others when most are void.
type queue[T timed[T]] struct {
	heap []T // none is before the one at half its place
	kept int // that were not void when the void ones were last dropped
}

func (q *queue[T]) put(x T) {
	if len(q.heap) > 64+2*q.kept {
		q.tidy()
	}
	q.heap = append(q.heap, x)
	for i := len(q.heap) - 1; i > 0 && q.heap[i].before(q.heap[(i-1)/2]); i = (i - 1) / 2 {
		q.heap[i], q.heap[(i-1)/2] = q.heap[(i-1)/2], q.heap[i]
	}
}

// first is the one whose time comes first; ok is false if none waits.
func (q *queue[T]) first() (x T, ok bool) {
	for len(q.heap) > 0 {
		if !q.heap[0].void() {
			return q.heap[0], true
		}
		q.pop()
	}
	return x, false
}

// pop takes the first, void or not.
func (q *queue[T]) pop() T {
	first, last := q.heap[0], len(q.heap)-1
	q.heap[0] = q.heap[last]
	clear(q.heap[last:])
	q.heap = q.heap[:last]
	q.sink(0)
	return first
}

func (q *queue[T]) sink(i int) {
	for {
		first, down := i, 2*i+1
		for ; down <= 2*i+2 && down < len(q.heap); down++ {
			if q.heap[down].before(q.heap[first]) {
				first = down
			}
		}
		if first == i {
			return
		}
		q.heap[i], q.heap[first] = q.heap[first], q.heap[i]
		i = first
	}
}

// tidy drops those that are void.
func (q *queue[T]) tidy() {
	q.heap = slices.DeleteFunc(q.heap, T.void)
	for i := len(q.heap)/2 - 1; i >= 0; i-- {
		q.sink(i)
	}
	q.kept = len(q.heap)
}
