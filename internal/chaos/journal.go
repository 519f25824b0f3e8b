package chaos

import (
	"log"
	"os"
	"path/filepath"
	"testing"
)

// reported is how much of a journal's end a report has.
const reported = 256 << 10 // bytes

// newJournal makes a file of what happens. A test that fails reports its end.
func newJournal(t testing.TB) *log.Logger {
	f, err := os.Create(filepath.Join(t.TempDir(), "journal"))
	must(t, err)
	t.Cleanup(func() {
		f.Close()
		if t.Failed() {
			b, _ := os.ReadFile(f.Name()) // a report has what can be had
			t.Logf("last events:\n%s", b[max(0, len(b)-reported):])
		}
	})
	return log.New(f, "", log.Lmicroseconds)
}
