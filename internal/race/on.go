//go:build race

// Package race says whether the race detector is on, for tests that would take minutes with it.
package race

// Enabled says whether the race detector is on.
const Enabled = true
