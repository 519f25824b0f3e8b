package chaos

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// journal is a file of what happened, for the report of a failure. Safe for concurrent use.
type journal struct {
	file  *os.File
	start time.Time
}

// reported is how much of the journal's end a report has.
const reported = 256 << 10 // bytes

func newJournal(t testing.TB) *journal {
	f, err := os.Create(filepath.Join(t.TempDir(), "journal"))
	must(t, err)
	t.Cleanup(func() { f.Close() })
	return &journal{f, time.Now()}
}

// add adds a line.
func (j *journal) add(format string, args ...any) {
	fmt.Fprintf(j.file, "%8.3fs "+format+"\n", append([]any{time.Since(j.start).Seconds()}, args...)...)
}

// Write takes the lines of the client's logger.
func (j *journal) Write(p []byte) (int, error) {
	j.add("log: %s", p[:max(0, len(p)-1)])
	return len(p), nil
}

// last is the end of it.
func (j *journal) last() []byte {
	size, _ := j.file.Seek(0, 1) // a report has what can be had
	b := make([]byte, min(size, reported))
	n, _ := j.file.ReadAt(b, size-int64(len(b)))
	return b[:n]
}
