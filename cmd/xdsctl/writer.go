package main

import (
	"io"
	"os"
	"runtime"
	"sync"

	"github.com/xdswatch/xdswatch/cmd/xdsctl/internal/report"
)

// lockedWriter lets logs and notes share standard error, and makes both harmless to a terminal.
type lockedWriter struct {
	mu  sync.Mutex
	out io.Writer
}

func (w *lockedWriter) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, err := w.out.Write(report.Harmless(b)); err != nil {
		return 0, err
	}
	return len(b), nil
}

// wantsColor says whether out is a terminal whose user does not mind colours
// (no-color.org).
func wantsColor(out io.Writer) bool {
	f, ok := out.(*os.File)
	if !ok || os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" || runtime.GOOS == "windows" {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
