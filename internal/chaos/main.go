// Command chaos breaks a live client against a management server in every way that
// its authors could think of, and checks after each that
//
//   - what the program was told is what the server says,
//   - every subscription stands: a change of each resource arrives,
//   - nobody was told a lie: that something does not exist which does, that a value is
//     lost which is held, a value that the server never said, an older one after a newer,
//   - nothing is left: no trouble that is over, no goroutine or file more than before the
//     first fault, nor heap that grows with the streams; and after the end of the client no
//     goroutine, file or memory more than before it.
//
// The server is a store of package testutil, which keeps to the protocol, in a process of its own,
// so that it can be killed and stopped. (test/real has the servers of others.) What happens follows
// from the seed; when it happens does not.
//
// What a client should hold at rest is said in one place, and compared with the events of watches,
// the client's dump and the requests that servers read (expect.go).
//
// A world has one server, or with -fallback two or three, of which each steps in for those before
// it (gRFC A71); there is no other difference. Faults are one table (fault.go): what each needs,
// does and heals. Each server has one fault at most at a time, a coroutine that lets the program,
// the servers and the other faults go on (fleet.go); where there are several servers, faults
// overlap. Each server says something else, so that a value tells who served it. Whenever it is
// certain which servers can be reached, it is also checked that
//
//   - the first of them is the one whose word is held, and no other's is; where there is none, that
//     is told,
//   - it is asked for everything that is wanted, and so is each server before it that reads
//     requests and does not answer yet,
//   - each of its responses is answered,
//   - no server after it has a stream.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"

	"github.com/xdswatch/xdswatch/internal/heapsize"
)

func main() {
	if len(os.Args) == 2 && os.Args[1] == serveArg {
		exit(serve(os.Stdin, os.Stdout))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	exit(command(ctx, os.Args[1:], os.Stdout))
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// options of the command line.
type options struct {
	plan       plan
	worlds     int
	duration   time.Duration
	reconnects int64
	fallback   bool
	v          bool
}

func parse(args []string, out io.Writer) (options, error) {
	var o options
	fs := flag.NewFlagSet("chaos", flag.ContinueOnError)
	fs.SetOutput(out)
	fs.Uint64Var(&o.plan.seed, "seed", uint64(time.Now().UnixNano()%1e9), "of the first world; the next has the next one")
	fs.DurationVar(&o.duration, "for", time.Minute, "begin no world after this time")
	fs.IntVar(&o.worlds, "worlds", 0, "how many worlds, whatever the time; 0 is as many as the time allows")
	fs.Int64Var(&o.reconnects, "reconnects", 0, "go on until there were so many streams")
	fs.Func("only", "faults to choose from, by name and separated by commas; some run only if they are named", func(names string) error {
		o.plan.only = strings.Split(names, ",")
		return checkNames(o.plan.only)
	})
	fs.BoolVar(&o.fallback, "fallback", false, "servers that stand in for each other, with faults at several of them at a time")
	fs.IntVar(&o.plan.rounds, "rounds", 6, "how often it is seen that all is well again")
	fs.BoolVar(&o.v, "v", false, "name each fault")
	return o, fs.Parse(args)
}

// checkNames returns an error for names that no fault has.
func checkNames(names []string) error {
	var all []string
	for _, f := range faults() {
		all = append(all, f.name)
	}
	for _, name := range names {
		if !slices.Contains(all, name) {
			return fmt.Errorf("no fault is called %q, but %s", name, strings.Join(all, ", "))
		}
	}
	return nil
}

// command is the program without its process.
func command(ctx context.Context, args []string, out io.Writer) error {
	o, err := parse(args, out)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return nil
	case err != nil:
		return err
	}
	return o.run(ctx, out)
}

func (o options) run(ctx context.Context, out io.Writer) error {
	progress := io.Discard
	if o.v {
		progress = out
	}
	if err := decodeOnce(); err != nil {
		return err
	}
	var total result
	var first weight // after the first world, in which libraries make what they keep
	start := time.Now()
	for n := 0; o.goOn(n, time.Since(start), total.streams); n++ {
		p := o.plan
		p.seed += uint64(n)
		p.variant = variantOf(p.seed, o.fallback)
		began := time.Now()
		r, err := run(ctx, p, progress)
		if err != nil {
			return err
		}
		total.faults += r.faults
		total.streams += r.streams
		fmt.Fprintf(out, "seed %d: %v: %d faults, %d streams, %v\n",
			p.seed, p.variant, r.faults, r.streams, time.Since(began).Round(time.Millisecond))
		now := weight{heapsize.InUse(), total.streams}
		if n == 0 {
			first = now
		} else if err := first.outgrown(now, worldSlack); err != nil {
			return fmt.Errorf("seeds %d to %d, after the end of all clients: %w", o.plan.seed, p.seed, err)
		}
	}
	fmt.Fprintf(out, "%d faults, %d streams, nothing wrong\n", total.faults, total.streams)
	return nil
}

func (o options) goOn(worlds int, took time.Duration, streams int64) bool {
	if o.worlds > 0 {
		return worlds < o.worlds
	}
	return took < o.duration || streams < o.reconnects
}
