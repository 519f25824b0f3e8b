package script

import (
	"fmt"
	"strings"
	"time"
)

// What the headers rate_limit_settings, initial_fetch_timeout and keep-deleted-for stand for.
const (
	RateTokens    = 2
	RateEvery     = time.Second
	FetchTimeout  = 5 * time.Second
	DeletionGrace = 10 * time.Second
)

// Guard is what the header guarded stands for.
func Guard(held, left int) error {
	if left >= 2 {
		return nil
	}
	return fmt.Errorf("%d of %d are too few", left, held)
}

// Servers is how many servers there are: one, or what a server header says.
func (s *Script) Servers() int {
	two, fallback, three := s.Has("server", "two"), s.Has("server", "fallback"), s.Has("server", "three")
	switch {
	case three:
		return 3
	case two, fallback:
		return 2
	}
	return 1
}

// Order is the servers that answer for the names of an authority, by number from 0, the
// first choice first: those of an authority header, or all of them, or of two the first.
func (s *Script) Order(authority string) (servers []int) {
	n, first := s.Servers(), s.Has("server", "two")
	for _, word := range s.Headers["authority"] {
		if name, list, _ := strings.Cut(word, "="); name == authority {
			for at := range strings.SplitSeq(list, ",") {
				servers = append(servers, Number(at))
			}
			return servers
		}
	}
	for i := range n {
		if i == 0 || !first {
			servers = append(servers, i)
		}
	}
	return servers
}

// Number is which server is meant by "@", the first, "@@", the second, and so on, from 0.
func Number(at string) int { return strings.Count(at, "@") - 1 }
