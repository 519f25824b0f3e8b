package machine

import (
	"slices"
	"strings"
	"time"
)

var networks = []string{"tcp", "tcp4", "tcp6", "udp", "udp4", "udp6"}

// SameText says whether two texts of errors are the same but for what is new at each
// attempt: the time at which a certificate was looked at ("current time T is after U"), and
// the local address of a connection ("read tcp A->B").
func SameText(a, b string) bool {
	if a == b {
		return true
	}
	var before, last string // two words that the texts share
	for {
		v, a2, moreA := strings.Cut(a, " ")
		w, b2, moreB := strings.Cut(b, " ")
		switch {
		case moreA != moreB:
			return false
		case v == w:
		case before == "current" && last == "time" && isTime(v) && isTime(w):
		case slices.Contains(networks, last) && samePeer(v, w):
		default:
			return false
		}
		if !moreA {
			return true
		}
		before, last, a, b = last, v, a2, b2
	}
}

func isTime(s string) bool {
	_, err := time.Parse(time.RFC3339, s)
	return err == nil
}

// samePeer says whether both go from somewhere to the same place.
func samePeer(v, w string) bool {
	_, p, ok := strings.Cut(v, "->")
	_, q, too := strings.Cut(w, "->")
	return ok && too && p == q
}
