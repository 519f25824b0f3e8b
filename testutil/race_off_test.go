//go:build !race

package testutil

const raceOn = false
