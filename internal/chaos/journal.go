package chaos

import (
	"fmt"
	"sync"
	"time"
)

// journal keeps the last things that happened, for the report of a failure. Safe for
// concurrent use.
type journal struct {
	mu      sync.Mutex
	start   time.Time
	entries [journalSize]entry // a ring
	count   int                // of all entries ever
}

// entry is something that happened; it is only made text for a report.
type entry struct {
	at     time.Duration
	format string
	args   []any
}

const (
	journalSize = 2000
	lineLength  = 240 // bytes
)

func newJournal() *journal { return &journal{start: time.Now()} }

// add keeps args, which must not change afterwards.
func (j *journal) add(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.entries[j.count%journalSize] = entry{time.Since(j.start), format, args}
	j.count++
}

// last are the newest lines, of programs that have ended.
func (j *journal) last() (lines []string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for i := max(0, j.count-journalSize); i < j.count; i++ {
		e := &j.entries[i%journalSize]
		line := fmt.Sprintf("%8.3fs ", e.at.Seconds()) + fmt.Sprintf(e.format, e.args...)
		if len(line) > lineLength {
			line = line[:lineLength] + "…"
		}
		lines = append(lines, line)
	}
	return lines
}

// Write takes the lines of the client's logger.
func (j *journal) Write(p []byte) (int, error) {
	j.add("log: %s", string(p[:max(0, len(p)-1)]))
	return len(p), nil
}

// clear forgets everything.
func (j *journal) clear() {
	j.mu.Lock()
	defer j.mu.Unlock()
	clear(j.entries[:])
	j.count = 0
}
