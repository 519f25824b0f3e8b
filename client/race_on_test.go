//go:build race

package client_test

// raceOn says that the race detector is on, with which memory costs five to ten times as
// much and code is as much slower: the largest tests are smaller then.
const raceOn = true
