package engine

import (
	"strings"
	"testing"
	"time"
)

// A burst is logged, then a line a period; quiet periods fill the burst again, and no more.
func TestQuota(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	q := &quota{left: logBurst, since: start}
	for _, tt := range []struct {
		at     time.Duration
		lines  int // that want to be logged at once
		logged int
		first  int // omitted before the first that is logged
	}{
		{0, 8, logBurst, 0},
		{logPeriod - 1, 4, 0, 0},
		{logPeriod, 3, 1, 7},
		{3 * logPeriod, 3, 2, 2},
		{1000 * logPeriod, 10, logBurst, 1},
	} {
		logged := 0
		for range tt.lines {
			omitted, ok := q.take(start.Add(tt.at))
			if ok && logged == 0 && omitted != tt.first {
				t.Errorf("at %v: %d were omitted, want %d", tt.at, omitted, tt.first)
			}
			if ok {
				logged++
			}
		}
		if logged != tt.logged {
			t.Errorf("at %v: %d logged, want %d", tt.at, logged, tt.logged)
		}
	}
}

func TestBrief(t *testing.T) {
	if s := brief(strings.Repeat("x", MaxLogged)); len(s) != MaxLogged {
		t.Errorf("what has room is cut to %d bytes", len(s))
	}
	if s := brief(strings.Repeat("x", 1<<20)); s != strings.Repeat("x", MaxLogged)+"..." {
		t.Errorf("a megabyte becomes %d bytes", len(s))
	}
}
