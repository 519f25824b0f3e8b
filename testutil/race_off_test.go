//go:build !race

package testutil

// raceDetector says that the tests run under the race detector.
const raceDetector = false
