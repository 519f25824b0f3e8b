//go:build !race

package main

const requests = 20_000
