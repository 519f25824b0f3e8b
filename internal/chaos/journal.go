package chaos

import (
	"log"
	"os"
	"path/filepath"
	"testing"
)

// journal is a file of what happened, for the report of a failure. Safe for concurrent use.
type journal struct {
	*log.Logger
	file *os.File
}

// reported is how much of the journal's end a report has.
const reported = 256 << 10 // bytes

func newJournal(t testing.TB) *journal {
	f, err := os.Create(filepath.Join(t.TempDir(), "journal"))
	must(t, err)
	t.Cleanup(func() { f.Close() })
	return &journal{log.New(f, "", log.Ltime|log.Lmicroseconds), f}
}

// last is the end of it.
func (j *journal) last() []byte {
	size, _ := j.file.Seek(0, 1) // a report has what can be had
	b := make([]byte, min(size, reported))
	n, _ := j.file.ReadAt(b, size-int64(len(b)))
	return b[:n]
}
