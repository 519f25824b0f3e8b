package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"strings"
	"time"
)

// footprint is what a process uses.
type footprint struct{ goroutines, files int }

// openFiles is a directory of links to what the process has open.
const openFiles = "/proc/self/fd"

func measure() (footprint, error) {
	entries, err := os.ReadDir(openFiles)
	return footprint{runtime.NumGoroutine(), len(entries)}, err
}

// leakPatience is how long goroutines may take to end, and files to be closed.
const leakPatience = 10 * time.Second

// checkLeaks waits until no more is used than before.
func checkLeaks(before footprint) error {
	for deadline := time.Now().Add(leakPatience); ; time.Sleep(10 * time.Millisecond) {
		now, err := measure()
		if err != nil {
			return err
		}
		if now.goroutines <= before.goroutines && now.files <= before.files {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%d goroutines and %d files before, %d and %d after\n%s%s",
				before.goroutines, before.files, now.goroutines, now.files, goroutines(), files())
		}
	}
}

func goroutines() string {
	var b bytes.Buffer
	_ = pprof.Lookup("goroutine").WriteTo(&b, 1) // a buffer takes everything
	return b.String()
}

func files() string {
	var b strings.Builder
	links, _ := filepath.Glob(openFiles + "/*") // the pattern is good
	for _, l := range links {
		target, err := os.Readlink(l)
		fmt.Fprintln(&b, l, target, err)
	}
	return b.String()
}

// heap is the number of bytes in use after a collection.
func heap() uint64 {
	runtime.GC()
	runtime.GC() // what finalizers let go
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// heapWatch judges whether the heap grows from one client to the next.
type heapWatch struct {
	clients int
	most    uint64 // of the first clients
}

const (
	heapWarmUp = 5
	heapSlack  = 16 << 20
)

// add takes a measurement after the end of a client.
func (h *heapWatch) add(bytes uint64) error {
	h.clients++
	switch {
	case h.clients <= heapWarmUp:
		h.most = max(h.most, bytes)
	case bytes > h.most+h.most/2+heapSlack:
		return fmt.Errorf("the heap has %d bytes after %d clients, and had %d after the first", bytes, h.clients, h.most)
	}
	return nil
}
