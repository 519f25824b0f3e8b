//go:build !unix

package cputime

import "time"

var began = time.Now()

// Used is how long the process has run, where the system has no simple way to tell how long it has computed.
func Used() time.Duration { return time.Since(began) }
