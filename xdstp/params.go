package xdstp

import (
	"cmp"
	"slices"
	"strings"
)

// Param is one context parameter of a name; both texts are decoded and may be empty.
type Param struct{ Key, Value string }

// parseParams reads the parameters that begin at offset at. As in Envoy, a pair without
// '=' has an empty value, nothing between two '&' is an empty key, and '+' is itself.
func parseParams(s string, at int, lastWins bool) ([]Param, error) {
	query := s[at:]
	if query == "" {
		return nil, nil
	}
	params := make([]Param, 0, strings.Count(query, "&")+1)
	for query != "" {
		var pair string
		pair, query, _ = strings.Cut(query, "&")
		params = append(params, parseParam(pair))
	}
	if !slices.IsSortedFunc(params, compareParams) {
		slices.SortStableFunc(params, compareParams)
	}
	repeated := firstRepeated(params)
	if repeated < 0 {
		return params, nil
	}
	// XDSTP-5: in a watch it is refused, of a server the last value holds.
	if !lastWins {
		key := params[repeated].Key
		return nil, fault(s, PartParams, at+offsetOfSecond(s[at:], key), "a key is repeated")
	}
	return keepLast(params), nil
}

func parseParam(pair string) Param {
	key, value, _ := strings.Cut(pair, "=")
	return Param{Key: unescape(key), Value: unescape(value)}
}

// compareParams is the canonical order: by the bytes of the escaped key and its '='. Keys
// being unique, the value never decides.
func compareParams(a, b Param) int {
	x, y := a.Key, b.Key
	n := 0
	for n < min(len(x), len(y)) && x[n] == y[n] {
		n++
	}
	if n == len(x) && n == len(y) {
		return 0
	}
	p, q := byte('='), byte('=') // what follows a key that is over
	if n < len(x) {
		p = firstEscaped(x[n])
	}
	if n < len(y) {
		q = firstEscaped(y[n])
	}
	if p == q { // both are escaped, in digits whose order is that of the bytes
		return cmp.Compare(x[n], y[n])
	}
	return cmp.Compare(p, q)
}

// firstEscaped is the byte with which the escaped form of c begins.
func firstEscaped(c byte) byte {
	if paramSet.has(c) {
		return '%'
	}
	return c
}

// firstRepeated is the index of the first member whose key the one before has too, or -1.
func firstRepeated(sorted []Param) int {
	for i := 1; i < len(sorted); i++ {
		if sorted[i].Key == sorted[i-1].Key {
			return i
		}
	}
	return -1
}

// offsetOfSecond is where the second pair with that key begins.
func offsetOfSecond(query, key string) int {
	at, seen := 0, false
	for pair := range strings.SplitSeq(query, "&") {
		if parseParam(pair).Key == key {
			if seen {
				return at
			}
			seen = true
		}
		at += len(pair) + 1
	}
	return 0
}

// keepLast drops all but the last of each run of equal keys, in place.
func keepLast(sorted []Param) []Param {
	kept := sorted[:0]
	for i, p := range sorted {
		if i+1 == len(sorted) || sorted[i+1].Key != p.Key {
			kept = append(kept, p)
		}
	}
	return kept
}

// inOrder gives the parameters in canonical order; the slice itself if it is so already.
func inOrder(params []Param) []Param {
	if slices.IsSortedFunc(params, compareParams) {
		return params
	}
	return slices.SortedStableFunc(slices.Values(params), compareParams)
}

// offsetOfParam is where the parameter with that key stands in the canonical text of a name.
func offsetOfParam(text, key string) int {
	at := strings.IndexByte(text, '?') + 1
	for pair := range strings.SplitSeq(text[at:], "&") {
		if parseParam(pair).Key == key {
			break
		}
		at += len(pair) + 1
	}
	return at
}

func appendParams(b []byte, params []Param) []byte {
	mark := byte('?')
	for _, p := range inOrder(params) {
		b = escape(append(b, mark), p.Key, paramSet)
		b = escape(append(b, '='), p.Value, paramSet)
		mark = '&'
	}
	return b
}
