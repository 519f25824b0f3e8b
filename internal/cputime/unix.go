//go:build unix

package cputime

import (
	"syscall"
	"time"
)

// Used is how long the process has computed, on all its threads together.
func Used() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err) // only for an argument that is none
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
