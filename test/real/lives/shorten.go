package lives

import "slices"

// tries is how often a life is led before it counts as good: what runs at once in it may run
// in another order.
const tries = 3

// shorten takes out of a life, in ever smaller pieces, whatever it fails without.
func shorten(l life, fails func(life) bool) life {
	again := func(l life) bool {
		for range tries {
			if fails(l) {
				return true
			}
		}
		return false
	}
	for size := len(l.steps) / 2; size > 0; size /= 2 {
		for at := 0; at+size <= len(l.steps); {
			shorter := l
			shorter.steps = slices.Concat(l.steps[:at], l.steps[at+size:])
			if again(shorter) {
				l = shorter
			} else {
				at += size
			}
		}
	}
	return l
}
