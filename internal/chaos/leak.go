package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"slices"
	"strings"
	"time"

	"github.com/xdswatch/xdswatch/internal/heapsize"
)

// footprint is what a process uses.
type footprint struct{ goroutines, files int }

// openFiles is a directory of links to what the process has open.
const openFiles = "/proc/self/fd"

func measure() (footprint, error) {
	entries, err := os.ReadDir(openFiles)
	return footprint{runtime.NumGoroutine(), len(entries)}, err
}

// leakPatience is how long goroutines may take to end, files to be closed and memory to be
// let go.
const leakPatience = 10 * time.Second

// checkLeaks waits until no more is used than before.
func checkLeaks(ctx context.Context, before footprint) error {
	return eventually(ctx, leakPatience, func() error {
		now, err := measure()
		if err == nil && (now.goroutines > before.goroutines || now.files > before.files) {
			err = fmt.Errorf("%d goroutines and %d files before, %d and %d after\n%s%s",
				before.goroutines, before.files, now.goroutines, now.files, goroutines(), files())
		}
		return err
	})
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

// life judges what a client uses while it lives, against what it used when it had first
// settled.
type life struct {
	world  *world
	first  use
	weight weight
}

// use is what a client uses, and for how many streams.
type use struct{ streams, goroutines, files int }

const (
	// A stream has a writer, a reader, and a goroutine of gRPC's that waits for its context.
	streamGoroutines = 3
	// What more a client may have than at first: one connection, whose four ends, two of them
	// the proxy's, may all be in this process.
	spareGoroutines, spareFiles = 4, 4
)

// born notes what a client uses that has settled.
func (w *world) born() (*life, error) {
	first, err := w.use()
	w.log.clear()
	return &life{w, first, w.weigh()}, err
}

// check waits until no more is used than at first, but for the streams that there are.
func (l *life) check(ctx context.Context) error {
	return eventually(ctx, leakPatience, func() error {
		now, err := l.world.use()
		if err != nil {
			return err
		}
		more := streamGoroutines * max(0, now.streams-l.first.streams)
		if now.goroutines > l.first.goroutines+more+spareGoroutines || now.files > l.first.files+spareFiles {
			return fmt.Errorf("the client had %d goroutines and %d files with %d streams at first, and has %d and %d with %d\n%s%s",
				l.first.goroutines, l.first.files, l.first.streams, now.goroutines, now.files, now.streams, goroutines(), files())
		}
		return nil
	})
}

// lifeSlack is what the heap may grow by in a client's life: its subscriptions come and go,
// and the harness has buffers for each connection.
const lifeSlack = 1 << 20 // bytes

// weigh waits until the heap is as it was at first, but for some growth. The journal is
// emptied, as it was then.
func (l *life) weigh(ctx context.Context) error {
	l.world.log.clear()
	return eventually(ctx, leakPatience, func() error {
		return l.weight.outgrown(l.world.weigh(), lifeSlack)
	})
}

// use leaves out what the harness uses for the client's connections.
func (w *world) use() (use, error) {
	all, err := measure()
	u := use{w.program.streams(), clientGoroutines(), all.files - w.shelves.files()}
	for _, s := range w.sites {
		u.files -= 2 * s.proxy.Connections()
	}
	return u, err
}

// clientGoroutines counts those that run nothing of the harness.
func clientGoroutines() int {
	var b bytes.Buffer
	_ = pprof.Lookup("goroutine").WriteTo(&b, 2) // a buffer takes everything
	return len(slices.DeleteFunc(strings.Split(b.String(), "\n\n"), func(stack string) bool {
		return strings.Contains(stack, "/internal/chaos/") || strings.Contains(stack, "/testutil/")
	}))
}

// weight is the size of the heap when so many streams had come up.
type weight struct {
	bytes   uint64
	streams int64
}

// streamGrowth is how much more the heap may hold for each stream that came up.
const streamGrowth = 1 << 10 // bytes

func (w *world) weigh() weight { return weight{heapsize.InUse(), w.program.came.Load()} }

// outgrown says whether the heap has grown by more than some bytes, and some a stream.
func (from weight) outgrown(to weight, slack uint64) error {
	streams := to.streams - from.streams
	if to.bytes <= from.bytes+slack+streamGrowth*uint64(streams) {
		return nil
	}
	return fmt.Errorf("the heap had %d bytes, and has %d after %d streams", from.bytes, to.bytes, streams)
}

// worldSlack is what the heap may grow by once the first world has ended. Nothing is left
// of a world but what libraries make once.
const worldSlack = 256 << 10 // bytes
