package chaos

import (
	"fmt"
	"log"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// journal is a file of what happened, for the report of a failure. Its times are from its beginning, since a fault may set
// the clock. Safe for concurrent use.
type journal struct {
	*log.Logger
	file  *os.File
	begun time.Time
}

// Write writes a line of the logger.
func (j *journal) Write(line []byte) (int, error) {
	if _, err := fmt.Fprintf(j.file, "%11.6f ", time.Since(j.begun).Seconds()); err != nil {
		return 0, err
	}
	return j.file.Write(line)
}

// reported is how much of the journal's end a report has.
const reported = 256 << 10 // bytes

func newJournal(t testing.TB) *journal {
	f, err := os.Create(filepath.Join(t.TempDir(), "journal"))
	must(t, err)
	t.Cleanup(func() { f.Close() })
	j := &journal{file: f, begun: time.Now()}
	j.Logger = log.New(j, "", 0) // which writes one line at a time
	return j
}

// last is the end of it.
func (j *journal) last() []byte {
	size, _ := j.file.Seek(0, 1) // a report has what can be had
	b := make([]byte, min(size, reported))
	n, _ := j.file.ReadAt(b, size-int64(len(b)))
	return b[:n]
}
