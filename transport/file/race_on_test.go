//go:build race

package file

const RaceEnabled = true
