//go:build race

package testutil

// raceOn says that the race detector is on, which makes code much slower: the largest test
// is smaller then.
const raceOn = true
