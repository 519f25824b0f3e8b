package bootstrap

import (
	"slices"
	"strconv"
	"strings"
)

// didYouMean ends a text about a word that is not known with the one that was probably
// meant; "" if none is near.
func didYouMean(word string, known []string) string {
	if near := nearest(word, known); near != "" {
		return "; did you mean " + strconv.Quote(near) + "?"
	}
	return ""
}

// nearest is the known word that is fewest slips of the pen away, of at most one for each
// four characters and three in all, whatever the case; "" if there is none.
func nearest(word string, known []string) string {
	const longest = 100 // names are shorter; what is longer is not compared
	// U-9: a suggestion.
	best, least := "", min(3, max(1, len(word)/4))+1
	for _, k := range slices.Sorted(slices.Values(known)) {
		if len(word) > longest {
			continue
		}
		if n := slips([]rune(strings.ToLower(word)), []rune(strings.ToLower(k))); n < least {
			best, least = k, n
		}
	}
	return best
}

// slips is how many characters have to be put in, left out, replaced, or exchanged with the next
// one, to make b of a (the optimal string alignment distance).
func slips(a, b []rune) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(last[j+1]+1, row[j]+1, last[j]+cost)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
