//go:build race

package main

// requests of each test: 20,000 in all under the race detector, which makes them slow.
const requests = 5_000
