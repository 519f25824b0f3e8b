package lives

import (
	"flag"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

var (
	forFlag   = flag.Duration("for", 20*time.Second, "begin no new life after this time, unless -lives says how many there are")
	livesFlag = flag.Int("lives", 0, "how many lives each server and variant has; 0 for as many as the time allows")
	seedFlag  = flag.Uint64("seed", 1, "of the first life of each server and variant")
	onlyFlag  = flag.String("only", "", "servers and variants that contain this text")
)

// Each watch agrees with what the server holds, whatever was asked for beside it and in
// whatever order, when all is quiet: no update is lost, nothing that exists is absent, and a
// wildcard is synced with all that there is.
//
// spec: P-1 P-2 P-5 P-9 S-9 S-31 S-36 S-37
func TestLives(t *testing.T) {
	b := &book{deadline: time.Now().Add(*forFlag), failed: map[string]bool{}, listed: map[string]int{}}
	for _, s := range setups() {
		if strings.Contains(s.String(), *onlyFlag) {
			b.setups = append(b.setups, s)
		}
	}
	if len(b.setups) == 0 {
		t.Fatalf("no server and variant contains %q", *onlyFlag)
	}
	t.Run("all", func(t *testing.T) {
		for i := range runtime.GOMAXPROCS(0) {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				t.Parallel()
				b.work(t)
			})
		}
	})
	if b.bad > 0 {
		t.Errorf("%d lives are bad", b.bad)
	}
	if b.next < len(b.setups) {
		t.Errorf("time for %d lives only, of %d servers and variants", b.next, len(b.setups))
	}
	t.Logf("%d lives of %d servers and variants", b.next, len(b.setups))
	for _, what := range slices.Sorted(maps.Keys(b.listed)) {
		t.Logf("%6d × %s", b.listed[what], what)
	}
}

// book is what has been done. Lives go round the setups, one seed after the other.
type book struct {
	setups   []setup
	deadline time.Time

	mu     sync.Mutex
	next   int
	bad    int
	failed map[string]bool // setups with a class of faults that were shown
	listed map[string]int
}

func (b *book) take() (setup, uint64, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	round := b.next / len(b.setups)
	if *livesFlag > 0 && round >= *livesFlag || *livesFlag == 0 && time.Now().After(b.deadline) {
		return setup{}, 0, false
	}
	s := b.setups[b.next%len(b.setups)]
	b.next++
	return s, *seedFlag + uint64(round), true
}

func (b *book) work(t *testing.T) {
	for {
		s, seed, ok := b.take()
		if !ok {
			return
		}
		l := newLife(s, seed)
		out := lead(t, l)
		for _, class := range b.enter(s, out) {
			b.show(t, l, seed, class)
		}
	}
}

// shown is how many lives that failed are made short and printed.
const shown = 10

// enter writes down an outcome, and returns the classes of faults that are new of the setup and
// still to be shown.
func (b *book) enter(s setup, out outcome) (fresh []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for what, n := range out.listed {
		b.listed[s.String()+": "+what] += n
	}
	if len(out.faults) > 0 {
		b.bad++
	}
	for _, class := range classes(out.faults) {
		key := s.String() + " " + class
		if !b.failed[key] && len(b.failed) < shown {
			fresh = append(fresh, class)
		}
		b.failed[key] = true
		b.listed["FAULT "+key]++
	}
	return fresh
}

// show reports a life that failed, made short.
func (b *book) show(t *testing.T, l life, seed uint64, class string) {
	var last outcome
	short := shorten(l, func(l life) bool {
		out := lead(t, l)
		bad := slices.Contains(classes(out.faults), class)
		if bad {
			last = out
		}
		return bad
	})
	t.Errorf("%s: -seed %d -only %v fails; in short:\n%v%s\n%s", class, seed, l.setup, short, lines(last.faults), strings.Join(last.timeline, "\n"))
}
