package endpoint

import (
	"math"
	"math/bits"
	"sync/atomic"
)

// table chooses among weights in constant time, by the alias method (Walker, Vose): each place
// has an own index, which it gives with a certain chance, and another one.
type table struct {
	thresholds []uint64 // the chance of the own index, of 2⁶⁴
	others     []uint32
}

// newTable makes the table of weights whose sum is not 0.
func newTable(weights []float64, sum float64) table {
	n := len(weights)
	t := table{make([]uint64, n), make([]uint32, n)}
	chances := make([]float64, n)
	var small, large []uint32
	for i, w := range weights {
		chances[i] = w / sum * float64(n)
		if chances[i] < 1 {
			small = append(small, uint32(i))
		} else {
			large = append(large, uint32(i))
		}
	}
	for len(small) > 0 && len(large) > 0 {
		s, l := small[len(small)-1], large[len(large)-1]
		small = small[:len(small)-1]
		t.thresholds[s], t.others[s] = threshold(chances[s]), l
		// The large one gives away what the small one lacks.
		if chances[l] += chances[s] - 1; chances[l] < 1 {
			large = large[:len(large)-1]
			small = append(small, l)
		}
	}
	// What rounding has left is all its own, unless it must never be chosen.
	for _, i := range append(large, small...) {
		t.thresholds[i], t.others[i] = math.MaxUint64, i
		if weights[i] == 0 {
			t.thresholds[i], t.others[i] = 0, heaviest(weights)
		}
	}
	return t
}

func heaviest(weights []float64) uint32 {
	best := 0
	for i, w := range weights {
		if w > weights[best] {
			best = i
		}
	}
	return uint32(best)
}

func threshold(chance float64) uint64 { return uint64(chance * (1 << 63) * 2) }

func (t *table) pick(random uint64) (index int, ok bool) {
	if len(t.thresholds) == 0 {
		return 0, false
	}
	// The whole part of random/2⁶⁴·n is the place, and the rest decides between its two indexes.
	place, rest := bits.Mul64(random, uint64(len(t.thresholds)))
	if rest < t.thresholds[place] {
		return int(place), true
	}
	return int(t.others[place]), true
}

// Smooth gives numbers for [Set.Pick] that are spread evenly: any run of picks has each endpoint
// nearly as often as its weight says, which random numbers do only in the long run. Its zero value
// works. It is safe for concurrent use, without a lock.
type Smooth struct{ n atomic.Uint64 }

// Next returns the next number.
func (s *Smooth) Next() uint64 {
	const golden = 0x9E3779B97F4A7C15 // 2⁶⁴ divided by the golden ratio: a Weyl sequence
	return s.n.Add(golden)
}
