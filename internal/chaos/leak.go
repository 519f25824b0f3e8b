package chaos

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime/pprof"
	"slices"
	"strings"
	"time"

	"github.com/xdswatch/xdswatch/internal/heapsize"
)

// use is what the process has for the program's client.
type use struct{ streams, goroutines, files int }

// use leaves out what the harness has itself.
func (w *world) use() (u use) {
	for _, name := range openFiles() {
		if !strings.HasPrefix(name, w.storeDir) {
			u.files++
		}
	}
	for _, s := range w.sites {
		u.files -= 2 * s.proxy.Connections()
		u.streams += w.program.streamsAt(s.uri)
	}
	// Those that run nothing of the harness.
	u.goroutines = len(slices.DeleteFunc(strings.Split(goroutines(2), "\n\n"), func(stack string) bool {
		return strings.Contains(stack, "/internal/chaos/") || strings.Contains(stack, "/testutil/")
	}))
	return u
}

// openFiles are the names of what the process has open.
func openFiles() (names []string) {
	links, _ := filepath.Glob("/proc/self/fd/*") // the pattern is good
	for _, l := range links {
		if name, err := os.Readlink(l); err == nil { // else it is closed again
			names = append(names, name)
		}
	}
	return names
}

// goroutines is their profile: 1 counts equal ones, 2 has each with its stack.
func goroutines(debug int) string {
	var b bytes.Buffer
	_ = pprof.Lookup("goroutine").WriteTo(&b, debug) // a buffer takes everything
	return b.String()
}

const (
	// leakPatience is how long goroutines may take to end, files to be closed and memory to be
	// let go.
	leakPatience = 10 * time.Second
	// streamGoroutines are those of a stream: a writer, a reader, and one of gRPC's that waits for
	// its context.
	streamGoroutines = 3
	// spare is how many goroutines and files more a client may have while it lives: those of a
	// connection, whose four ends, two of them the proxy's, may all be in this process.
	spare = 4
)

// checkUse waits until no more is used than before, but for the streams that there are and some
// spare goroutines and files.
func (w *world) checkUse(before use, spare int) error {
	return eventually(leakPatience, func() error {
		now := w.use()
		streams := streamGoroutines * max(0, now.streams-before.streams)
		if now.goroutines <= before.goroutines+streams+spare && now.files <= before.files+spare {
			return nil
		}
		return fmt.Errorf("%+v before, %+v after\n%s\n%s", before, now, goroutines(1), strings.Join(openFiles(), "\n"))
	})
}

const (
	// streamGrowth is how much more the heap may hold for each stream that came up.
	streamGrowth = 1 << 10 // bytes
	// lifeSlack is what the heap may grow by in a client's life: its subscriptions come and go, it keeps
	// the payloads that were refused last and the buffer of the store, what it saves is looked through by
	// what is made once of each type, and the harness has buffers for each connection.
	lifeSlack = 2 << 20 // bytes
	// worldSlack is what the heap may grow by once the first world has ended. Nothing is left
	// of a world but what libraries make once.
	worldSlack = 256 << 10 // bytes
)

// weigh is the size of the heap without what the streams that came up may have left.
func weigh(streams int64) int64 { return int64(heapsize.InUse()) - streamGrowth*streams }

// checkWeight returns an error if the heap has grown by more than some bytes.
func checkWeight(before, now, slack int64) error {
	if now <= before+slack {
		return nil
	}
	return fmt.Errorf("the heap had %d bytes, and has %d, less %d for each stream", before, now, streamGrowth)
}
