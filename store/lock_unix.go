//go:build unix && !solaris && !aix

package store

import (
	"os"
	"syscall"
)

// lock makes a file that of this process, until it is closed.
func lock(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }
