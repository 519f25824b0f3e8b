package chaos

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/internal/heapsize"
)

var (
	seed       = flag.Uint64("seed", 1, "of the first world of a test; the next has the next one")
	duration   = flag.Duration("for", 0, "begin no world of TestLives after this time")
	worlds     = flag.Int("worlds", 0, "how many worlds TestLives has, whatever the time; 0 is as many as the time allows")
	reconnects = flag.Int64("reconnects", 0, "TestLives goes on until there were so many streams")
	rounds     = flag.Int("rounds", 6, "how often TestLives sees in a world that all is well again")
	only       = flag.String("only", "", "faults of TestLives to choose from, by name and separated by commas; some run only if they are named")
	spares     = flag.Bool("fallback", false, "TestLives has servers that stand in for each other, with faults at several of them at a time")
)

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == serveArg {
		new(host).obey(pipe{os.Stdin, os.Stdout})
		return
	}
	os.Exit(m.Run())
}

// Lives of clients among servers that are broken, as many as the flags say.
func TestLives(t *testing.T) {
	if *duration == 0 && *worlds == 0 && *reconnects == 0 {
		t.Skip("needs a process of its own, and -for or -worlds: TestChaos has some, and make chaos many")
	}
	var named []string
	if *only != "" {
		named = strings.Split(*only, ",")
	}
	must(t, checkNames(named))
	if slices.Contains(named, "wall-clock") {
		rightOnInterrupt()
	}
	must(t, decodeOnce())
	var first, total weight // first is after the first world, in which libraries make what they keep
	faults, start := 0, time.Now()
	for n := 0; n < *worlds || *worlds == 0 && (time.Since(start) < *duration || total.streams < *reconnects); n++ {
		seed := *seed + uint64(n)
		v := variantOf(seed, *spares)
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			w := live(t, seed, v, pick(v, named), *rounds)
			streams := w.program.came.Load()
			t.Logf("%v: %d faults, %d streams", v, len(w.sequence), streams)
			faults += len(w.sequence)
			total.streams += streams
		})
		if t.Failed() {
			t.Fatalf("again: go test ./internal/chaos -run TestLives -seed %d -worlds 1 -rounds %d -fallback=%v -only=%q", seed, *rounds, *spares, *only)
		}
		if total.bytes = heapsize.InUse(); n == 0 {
			first = total
		} else if err := first.outgrown(total, worldSlack); err != nil {
			t.Fatalf("after the end of all clients, to seed %d: %v", seed, err)
		}
	}
	t.Logf("%d faults, %d streams, nothing wrong", faults, total.streams)
}

// A short run of lives. Each part is a process, since leaks are counted by process
// and some faults stop it; they run at the same time, since the second waits most of its
// own for keepalive.
func TestChaos(t *testing.T) {
	if testing.Short() {
		t.Skip("long: a minute of faults")
	}
	t.Parallel()
	parts := []string{
		"-seed 1 -worlds 3 -rounds 2",
		"-seed 21 -worlds 1 -rounds 1 -only half-open",
		"-fallback -seed 3 -worlds 2 -rounds 1",
	}
	var wg sync.WaitGroup
	for _, args := range parts {
		wg.Go(func() {
			cmd := exec.CommandContext(t.Context(), os.Args[0], append(strings.Fields(args), "-test.v", "-test.run=^TestLives$", "-test.timeout=9m")...)
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Errorf("%s: %v", args, err)
			}
			t.Logf("%s\n%s", args, out)
		})
	}
	wg.Wait()
}

// Every fault has a name of its own, and some world for it.
func TestFaults(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range faults() {
		if seen[f.name] {
			t.Errorf("two faults are called %q", f.name)
		}
		seen[f.name] = true
		possible := false
		for seed := range uint64(variants) {
			possible = possible || f.needs == nil || f.needs(variantOf(seed, false)) || f.needs(variantOf(seed, true))
		}
		if !possible {
			t.Errorf("no world has what %q breaks", f.name)
		}
	}
}

// The clock is the whole machine's: nothing sets it unasked.
func TestClockIsAskedFor(t *testing.T) {
	for seed := range uint64(variants) {
		v := variantOf(seed, false)
		setsClock := func(f fault) bool { return f.name == "wall-clock" }
		if slices.ContainsFunc(pick(v, nil), setsClock) {
			t.Errorf("in %v", v)
		}
		if !slices.ContainsFunc(pick(v, []string{"wall-clock"}), setsClock) {
			t.Errorf("not in %v, and it was asked for", v)
		}
	}
	if err := checkNames([]string{"wall-clock", "nothing"}); err == nil {
		t.Error("no error for a fault that is none")
	}
}

// told has a watch hear events, and gives what the model finds wrong with that.
func (m *model) told(evs ...client.Event[any]) (faults, differences []string) {
	s := newSub(m, 1, watch, 0, []string{"cds-0"})
	s.hear(evs...)
	return m.faults, s.differencesLocked(true)
}

// there is the event of a revision of a server.
func there(uri, text string) client.Event[any] {
	return client.Event[any]{Kind: client.EventUpdated, Name: "cds-0", Server: uri, Value: makeCluster("cds-0", text)}
}

func gone(uri string) client.Event[any] {
	return client.Event[any]{Kind: client.EventDoesNotExist, Name: "cds-0", Server: uri}
}

// The model finds what it is there to find. Of two servers the active one counts, each may say only what
// it has said, and what the other has is no lie.
func TestModel(t *testing.T) {
	failed := client.Event[any]{Kind: client.EventFailed, Name: "cds-0", Err: errors.New("no")}
	trouble := client.Event[any]{Kind: client.EventAmbientError, Name: "cds-0", Server: "b", Err: errors.New("no")}
	for name, c := range map[string]struct {
		active             int
		events             []client.Event[any]
		fault, differences bool
	}{
		"right":               {0, []client.Event[any]{there("a", "2-")}, false, false},
		"nothing":             {0, nil, false, true},
		"a lie":               {0, []client.Event[any]{there("a", "2-"), gone("a")}, true, true},
		"a lie at first":      {0, []client.Event[any]{gone("a")}, true, true},
		"a loss":              {0, []client.Event[any]{there("a", "2-"), failed}, true, true},
		"never said":          {0, []client.Event[any]{there("a", "8-")}, true, true},
		"no revision":         {0, []client.Event[any]{there("a", "x")}, true, true},
		"back in time":        {0, []client.Event[any]{there("a", "2-"), there("a", "0-")}, true, true},
		"twice":               {0, []client.Event[any]{there("a", "2-"), there("a", "2-")}, true, false},
		"trouble":             {0, []client.Event[any]{there("a", "2-"), trouble}, false, true},
		"trouble, over":       {0, []client.Event[any]{there("a", "2-"), trouble, there("a", "2-")}, false, false},
		"trouble, first":      {0, []client.Event[any]{trouble}, true, true},
		"the other's":         {0, []client.Event[any]{there("b", "3-")}, false, true},
		"moved":               {1, []client.Event[any]{there("a", "2-"), there("b", "3-")}, false, false},
		"moved and back":      {0, []client.Event[any]{there("a", "2-"), there("b", "3-"), there("a", "2-")}, false, false},
		"moved, back in time": {0, []client.Event[any]{there("a", "4-"), there("b", "3-"), there("a", "2-")}, true, false},
		"under a wrong name":  {0, []client.Event[any]{there("b", "2-")}, true, true},
		"of nobody":           {0, []client.Event[any]{there("c", "2-")}, true, true},
		"nobody, told":        {nobody, []client.Event[any]{there("b", "3-"), trouble}, false, false},
		"nobody, not told":    {nobody, []client.Event[any]{there("b", "3-")}, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			m := newModel(variant{delta: true, spares: 1}, newJournal(t))
			for i, h := range m.truths {
				h.uri = []string{"a", "b"}[i]
				f := h.facts[key{0, "cds-0"}]
				f.Present = true
				for _, rev := range []int{4, 0, 2} {
					f.say(rev + i)
				}
			}
			m.settle()
			m.use(c.active, false)
			faults, differences := m.told(c.events...)
			if got := len(faults) > 0; got != c.fault {
				t.Errorf("faults %q", faults)
			}
			if got := len(differences) > 0; got != c.differences {
				t.Errorf("differences %q", differences)
			}
		})
	}
}

// A resource that was away since all was well may be said not to exist.
func TestModelAllowsAbsence(t *testing.T) {
	m := newModel(variant{delta: true}, newJournal(t))
	f := m.truths[0].facts[key{0, "cds-0"}]
	m.settle()
	f.Present = true
	f.say(1)
	if faults, differences := m.told(gone("")); len(faults) != 0 || len(differences) != 1 {
		t.Errorf("faults %q, differences %q", faults, differences)
	}
	m.settle()
	if faults, _ := m.told(gone("")); len(faults) != 1 {
		t.Errorf("faults %q once it was there all the time", faults)
	}
}

// A server after one that answers again is not one that the program stands by at: it may have left.
func TestMendedServerIsUsed(t *testing.T) {
	w := &world{log: newJournal(t), used: 2}
	w.sites = []*site{{world: w}, {world: w, index: 1}, {world: w, index: 2}}
	w.sites[0].turn = &turn{next: func() (struct{}, bool) { return struct{}{}, false }}
	w.sites[0].resume()
	if w.sites[0].turn != nil || w.used != 0 {
		t.Errorf("server %d is used after %v", w.used, w.sites)
	}
}

// A heap may grow by a little, and by a little for each stream.
func TestOutgrown(t *testing.T) {
	from := weight{bytes: 3 << 20, streams: 10}
	for to, grown := range map[weight]bool{
		{1 << 20, 10}:                          false,
		{3<<20 + 1000, 10}:                     false,
		{3<<20 + 1001, 10}:                     true,
		{3<<20 + 1000 + 100*streamGrowth, 110}: false,
		{3<<20 + 1000 + 100*streamGrowth, 109}: true,
		{3<<20 + 100*10_000, 110}:              true,
	} {
		if got := from.outgrown(to, 1000) != nil; got != grown {
			t.Errorf("from %v to %v: %v", from, to, got)
		}
	}
}

// Wherever the pieces of a frame end, what is slipped in comes between two frames.
func TestWireSlip(t *testing.T) {
	var frames, reset bytes.Buffer
	must(t, http2.NewFramer(&frames, nil).WriteData(1, false, []byte("0123456789")))
	must(t, http2.NewFramer(&reset, nil).WriteRSTStream(1, http2.ErrCodeCancel))
	data, slipped := frames.Bytes(), reset.Bytes()
	for cut := frameHeader; cut <= len(data); cut++ {
		client, server := net.Pipe()
		w := newWire(server, nil, new(sync.Map))
		w.opened = 1
		go func() {
			defer w.Close()
			for _, p := range [][]byte{data[:cut], nil, data[cut:], data} {
				if p == nil {
					w.slipIn(Frame{Type: http2.FrameRSTStream, Code: http2.ErrCodeCancel})
				} else if _, err := w.Write(p); err != nil {
					return
				}
			}
		}()
		got, err := io.ReadAll(client)
		must(t, err)
		if want := slices.Concat(data, slipped, data); !bytes.Equal(got, want) {
			t.Errorf("cut at %d: got % x", cut, got)
		}
	}
}
