package script

import (
	"regexp"
	"strings"
)

// shorts yields the short forms of the header names, and what they stand for.
func (s *Script) shorts(yield func(short, long string) bool) {
	for _, word := range s.Headers["names"] {
		if short, long, ok := strings.Cut(word, "="); ok && !yield(short, long) {
			return
		}
	}
}

// expand writes names in full.
func (s *Script) expand(line string) string {
	for short, long := range s.shorts {
		at := regexp.MustCompile(`(^|[^A-Za-z0-9/._])` + regexp.QuoteMeta(short) + `([^\s"])`)
		line = at.ReplaceAllString(line, "${1}"+long+"${2}")
	}
	return line
}

// shorten is the reverse of expand; a line of which that cannot be told stays as it is.
func (s *Script) shorten(line string) string {
	out := line
	for short, long := range s.shorts {
		out = strings.ReplaceAll(out, long, short)
	}
	if s.expand(out) != line {
		return line
	}
	return out
}
