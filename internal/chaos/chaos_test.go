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
	from, err := pick(named)
	must(t, err)
	if slices.Contains(named, "wall-clock") {
		rightOnInterrupt()
	}
	var first, streams int64 // first is the weight after the first world, in which libraries make what they keep
	faults, start := 0, time.Now()
	for n := 0; n < *worlds || *worlds == 0 && (time.Since(start) < *duration || streams < *reconnects); n++ {
		seed := *seed + uint64(n)
		v := variantOf(seed, *spares)
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			w := live(t, seed, v, from, *rounds)
			t.Logf("%v: %d streams, faults %s", v, w.program.came.Load(), strings.Join(w.sequence, " "))
			faults += len(w.sequence)
			streams += w.program.came.Load()
		})
		if t.Failed() {
			t.Fatalf("again: go test ./internal/chaos -run TestLives -seed %d -worlds 1 -rounds %d -fallback=%v -only=%q", seed, *rounds, *spares, *only)
		}
		if heap := weigh(streams); n == 0 {
			first = heap
		} else if err := checkWeight(first, heap, worldSlack); err != nil {
			t.Fatalf("after the end of all clients, to seed %d: %v", seed, err)
		}
	}
	t.Logf("%d faults, %d streams, nothing wrong", faults, streams)
}

// A short run of lives. Each part is a process, since leaks are counted by process
// and some faults stop it; they run at the same time, since some wait most of theirs. What few worlds would come to by
// chance has parts of its own.
func TestChaos(t *testing.T) {
	if testing.Short() {
		t.Skip("long: a minute of faults")
	}
	t.Parallel()
	parts := []string{
		"-seed 1 -worlds 3 -rounds 2",
		"-seed 21 -worlds 1 -rounds 1 -only half-open",
		"-seed 21 -worlds 1 -rounds 1 -only reborn",
		"-seed 5 -worlds 2 -rounds 2 -only rejected",
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
			possible = possible || f.possible(variantOf(seed, false)) || f.possible(variantOf(seed, true))
		}
		if !possible {
			t.Errorf("no world has what %q breaks", f.name)
		}
	}
}

// Some faults run only where they are named, and a name that no fault has is an error. The clock is the whole
// machine's: nothing sets it unasked.
func TestPick(t *testing.T) {
	unasked, err := pick(nil)
	must(t, err)
	if slices.ContainsFunc(unasked, func(f fault) bool { return f.name == "wall-clock" }) {
		t.Error("the clock is set, and nobody asked for it")
	}
	if named, err := pick([]string{"wall-clock", "eof"}); err != nil || len(named) != 2 || named[1].name != "wall-clock" {
		t.Errorf("picked %d faults: %v", len(named), err)
	}
	if _, err := pick([]string{"wall-clock", "none"}); err == nil {
		t.Error("no error for a fault that is none")
	}
}

// told has a subscription hear events, and gives what the world finds wrong with that.
func (w *world) told(f form, name string, evs ...client.Event[any]) (faults []string, difference error) {
	s := newSub(w, 1, f, 0, []string{name})
	for _, ev := range evs {
		s.hear(ev)
	}
	w.listen()
	return w.faults, s.check(false)
}

// unreached is after all servers.
const unreached = 2

// reach has a server and those after it be within reach.
func (w *world) reach(from int) {
	for i, s := range w.sites {
		s.reached = i >= from
	}
}

// say has a server say a new state of a resource.
func (s *site) say(name string) {
	s.edit(func(f *fact) bool {
		f.Present = f.Present || f.Name == name
		return f.Name == name
	})
}

// there is the event of a revision of a server.
func there(uri, text string) client.Event[any] {
	return client.Event[any]{Kind: client.EventUpdated, Name: "cds-0", Server: uri, Value: kinds[0].make("cds-0", text)}
}

func gone(uri string) client.Event[any] {
	return client.Event[any]{Kind: client.EventDoesNotExist, Name: "cds-0", Server: uri}
}

// A world finds what it is there to find. Of two servers the active one counts, each may say only what
// it has said, and what the other has is no lie.
func TestModel(t *testing.T) {
	failed := client.Event[any]{Kind: client.EventFailed, Name: "cds-0", Err: errors.New("no")}
	trouble := client.Event[any]{Kind: client.EventAmbientError, Name: "cds-0", Server: "b", Err: errors.New("no")}
	another := client.Event[any]{Kind: client.EventDoesNotExist, Name: "cds-1", Server: "a"}
	for name, c := range map[string]struct {
		active            int
		events            []client.Event[any]
		fault, difference bool
	}{
		"right":               {0, []client.Event[any]{there("a", "4-")}, false, false},
		"nothing":             {0, nil, false, true},
		"a lie":               {0, []client.Event[any]{there("a", "4-"), gone("a")}, true, true},
		"a lie at first":      {0, []client.Event[any]{gone("a")}, true, true},
		"a loss":              {0, []client.Event[any]{there("a", "4-"), failed}, true, true},
		"never said":          {0, []client.Event[any]{there("a", "8-")}, true, true},
		"no revision":         {0, []client.Event[any]{there("a", "x")}, true, true},
		"back in time":        {0, []client.Event[any]{there("a", "4-"), there("a", "0-")}, true, true},
		"twice":               {0, []client.Event[any]{there("a", "4-"), there("a", "4-")}, true, false},
		"trouble":             {0, []client.Event[any]{there("a", "4-"), trouble}, false, true},
		"trouble, over":       {0, []client.Event[any]{there("a", "4-"), trouble, there("a", "4-")}, false, false},
		"trouble, first":      {0, []client.Event[any]{trouble}, true, true},
		"the other's":         {0, []client.Event[any]{there("b", "5-")}, false, true},
		"moved":               {1, []client.Event[any]{there("a", "4-"), there("b", "5-")}, false, false},
		"moved and back":      {0, []client.Event[any]{there("a", "4-"), there("b", "5-"), there("a", "4-")}, false, false},
		"moved, back in time": {1, []client.Event[any]{there("a", "4-"), there("b", "5-"), there("a", "2-"), there("b", "5-")}, true, false},
		"under a wrong name":  {0, []client.Event[any]{there("b", "4-")}, true, true},
		"of nobody":           {0, []client.Event[any]{there("c", "4-")}, true, true},
		"nobody, told":        {unreached, []client.Event[any]{there("b", "5-"), trouble}, false, false},
		"nobody, not told":    {unreached, []client.Event[any]{there("b", "5-")}, false, true},
		"another's":           {0, []client.Event[any]{there("a", "4-"), another}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 0, variant{delta: true, spares: 1})
			for range 3 { // 0, 2 and 4 are of a, and 1, 3 and 5 of b
				for i, s := range w.sites {
					s.uri = []string{"a", "b"}[i]
					s.say("cds-0")
				}
			}
			w.allIsRight()
			w.reach(c.active)
			faults, difference := w.told(watch, "cds-0", c.events...)
			if got := len(faults) > 0; got != c.fault {
				t.Errorf("faults %q", faults)
			}
			if got := difference != nil; got != c.difference {
				t.Errorf("difference %v", difference)
			}
		})
	}
}

// A collection is complete once that was told, and then has every member that there is.
func TestModelOfCollections(t *testing.T) {
	all := func(kind client.EventKind, err error) client.Event[any] {
		return client.Event[any]{Kind: kind, Name: "*", Server: "a", Value: kinds[0].make("*", "0-"), Err: err}
	}
	synced, trouble := all(client.EventSynced, nil), all(client.EventAmbientError, errors.New("no"))
	for name, c := range map[string]struct {
		active            int
		events            []client.Event[any]
		fault, difference bool
	}{
		"right":             {0, []client.Event[any]{there("a", "0-"), synced}, false, false},
		"nothing":           {0, nil, false, true},
		"not synced":        {0, []client.Event[any]{there("a", "0-")}, false, true},
		"a member lacks":    {0, []client.Event[any]{synced}, false, true},
		"a lie":             {0, []client.Event[any]{there("a", "0-"), synced, all(client.EventDoesNotExist, nil)}, true, false},
		"a value of it":     {0, []client.Event[any]{there("a", "0-"), synced, all(client.EventUpdated, nil)}, true, false},
		"trouble":           {0, []client.Event[any]{there("a", "0-"), synced, trouble}, false, true},
		"trouble, over":     {0, []client.Event[any]{there("a", "0-"), synced, trouble, all(client.EventRecovered, nil)}, false, false},
		"nobody, told once": {unreached, []client.Event[any]{there("a", "0-"), synced, trouble}, false, false},
		"nobody, not told":  {unreached, []client.Event[any]{there("a", "0-"), synced}, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 0, variant{delta: true})
			w.sites[0].uri = "a"
			w.sites[0].say("cds-0")
			w.allIsRight()
			w.reach(c.active)
			faults, difference := w.told(collection, "*", c.events...)
			if got := len(faults) > 0; got != c.fault {
				t.Errorf("faults %q", faults)
			}
			if got := difference != nil; got != c.difference {
				t.Errorf("difference %v", difference)
			}
		})
	}
}

// A resource that was away since all was well may be said not to exist.
func TestModelAllowsAbsence(t *testing.T) {
	w := newWorld(t, 0, variant{delta: true})
	w.allIsRight()
	w.sites[0].say("cds-0")
	if faults, difference := w.told(watch, "cds-0", gone("")); len(faults) != 0 || difference == nil {
		t.Errorf("faults %q, difference %v", faults, difference)
	}
	w.allIsRight()
	if faults, _ := w.told(watch, "cds-0", gone("")); len(faults) != 1 {
		t.Errorf("faults %q once it was there all the time", faults)
	}
}

// A server after one that answers again is not one that the program stands by at: it may have left.
func TestMendedServerIsUsed(t *testing.T) {
	w := newWorld(t, 0, variant{spares: 3})
	w.reach(3)
	for i, s := range w.sites[:3] {
		s.turn, s.silent = &turn{}, i != 1
	}
	w.sites[1].end()
	for i, want := range map[int]bool{0: true, 2: false} {
		if s := w.sites[i]; s.precedes(ofPlain) != want || s.silent != want {
			t.Errorf("server %d, before the active one: %v, silent: %v", i, s.precedes(ofPlain), s.silent)
		}
	}
}

// A fault does its first action at once, and each other after some steps.
func TestTurn(t *testing.T) {
	done := 0
	do := times(3, func(*site) { done++ })
	s := &site{world: &world{}}
	resumed := func(want int) {
		t.Helper()
		if s.resume(); done != want {
			t.Errorf("%d actions are done, and should be %d", done, want)
		}
	}
	s.turn = &turn{fault: fault{do: do, steps: 2}}
	for _, want := range []int{1, 1, 1, 2, 2, 2, 3, 3, 3} {
		resumed(want)
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
