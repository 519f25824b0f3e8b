// Command view measures what it costs to have one consistent configuration: the view of a listener,
// beside the floor that decodes and keeps nothing, the same resources through sets of watches, and
// a channel of grpc-go. Drivers are processes of their own, and take turns.
//
//	go run . -runs 5
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

var (
	roleFlag   = flag.String("role", "", "server, or a driver; empty measures all")
	rowFlag    = flag.String("row", "", "of a driver or server; of a measurement: rows that contain this")
	addrFlag   = flag.String("addr", "", "of the server")
	runsFlag   = flag.Int("runs", 3, "of each row and driver")
	driverFlag = flag.String("drivers", "nulldecode,sets,view,grpcgo", "to measure")
)

// row is a workload: load it all, or changes.
type row struct {
	id      string
	world   world
	command string // after the load; "" measures the load
	changes int
	peer    bool // grpc-go can be measured: it names all clusters again for each new one, and tells no changes of routes
}

var rows = []row{
	{id: "V1-load-1k", world: world{100, 1000}, peer: true},
	{id: "V1-load-10k", world: world{1000, 10_000}},
	{id: "V2-endpoints-1k", world: world{100, 1000}, command: "eds", changes: 200, peer: true},
	{id: "V2-endpoints-10k", world: world{1000, 10_000}, command: "eds", changes: 2000},
	{id: "V3-routes-100", world: world{10, 100}, command: "rds", changes: 5000},
}

// figures are what a driver measured: of the load, or of one change.
type figures struct {
	CPU, Wall time.Duration
	Bytes     float64 // allocated
	Objects   float64 // allocated
	Heap      float64 // for each cluster, when all is there
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func main() {
	log.SetFlags(0)
	flag.Parse()
	i := slices.IndexFunc(rows, func(r row) bool { return r.id == *rowFlag })
	switch {
	case *roleFlag == "":
		measure()
	case i < 0:
		log.Fatalf("there is no row %q", *rowFlag)
	case *roleFlag == "server":
		serve(rows[i].world)
	default:
		check(json.NewEncoder(os.Stdout).Encode(rows[i].drive(drivers[*roleFlag], *addrFlag)))
	}
}

type clock struct {
	cpu  time.Duration
	wall time.Time
	mem  runtime.MemStats
}

func now() (c clock) {
	var ru syscall.Rusage
	check(syscall.Getrusage(syscall.RUSAGE_SELF, &ru))
	runtime.ReadMemStats(&c.mem)
	c.cpu, c.wall = time.Duration(ru.Utime.Nano()+ru.Stime.Nano()), time.Now()
	return c
}

// since is what came since, for each of n.
func since(c clock, n int) figures {
	d := now()
	return figures{
		CPU: (d.cpu - c.cpu) / time.Duration(n), Wall: d.wall.Sub(c.wall) / time.Duration(n),
		Bytes:   float64(d.mem.TotalAlloc-c.mem.TotalAlloc) / float64(n),
		Objects: float64(d.mem.Mallocs-c.mem.Mallocs) / float64(n),
	}
}

func heap() float64 {
	time.Sleep(100 * time.Millisecond) // what trails the last callback
	for range 3 {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// drive runs a driver in this process. Its server, which sends changes at a line on this process's
// standard output, is asked for them when all is there.
func (r row) drive(d driver, addr string) figures {
	ready, last := make(chan struct{}), make(chan struct{})
	before := heap()
	begin := now()
	keep := d(r.world, addr, func() { close(ready) }, func(n int) {
		if n == r.changes {
			close(last)
		}
	})
	<-ready
	f := since(begin, 1)
	f.Heap = (heap() - before) / float64(r.world.clusters)
	if r.command != "" {
		begin = now()
		fmt.Println(r.command, r.changes)
		<-last
		held := f.Heap
		f = since(begin, r.changes)
		f.Heap = held
	}
	runtime.KeepAlive(keep)
	return f
}

// measure runs all rows with all drivers in turns, and prints medians.
func measure() {
	fmt.Println("| row | driver | CPU | × nulldecode | × sets | wall | allocated | objects | heap a cluster |")
	fmt.Println("|---|---|---|---|---|---|---|---|---|")
	for _, r := range rows {
		if !strings.Contains(r.id, *rowFlag) {
			continue
		}
		names := slices.DeleteFunc(strings.Split(*driverFlag, ","), func(d string) bool { return d == "grpcgo" && !r.peer })
		all := map[string][]figures{}
		for range *runsFlag {
			for _, d := range names {
				all[d] = append(all[d], r.run(d))
			}
		}
		cpu := func(f figures) float64 { return float64(f.CPU) }
		for _, d := range names {
			ratio := func(to string) string {
				if all[to] == nil {
					return ""
				}
				return fmt.Sprintf("%.2f", median(all[d], cpu)/median(all[to], cpu))
			}
			fmt.Printf("| %s | %s | %v | %s | %s | %v | %.0f KiB | %.0f | %.0f |\n", r.id, d,
				time.Duration(median(all[d], cpu)).Round(time.Microsecond), ratio("nulldecode"), ratio("sets"),
				time.Duration(median(all[d], func(f figures) float64 { return float64(f.Wall) })).Round(time.Microsecond),
				median(all[d], func(f figures) float64 { return f.Bytes })/1024,
				median(all[d], func(f figures) float64 { return f.Objects }),
				median(all[d], func(f figures) float64 { return f.Heap }))
		}
	}
}

func median(all []figures, of func(figures) float64) float64 {
	var xs []float64
	for _, f := range all {
		xs = append(xs, of(f))
	}
	slices.SortFunc(xs, cmp.Compare[float64])
	return xs[len(xs)/2]
}

// run is one run of a driver with a server of its own.
func (r row) run(driver string) (f figures) {
	self, err := os.Executable()
	check(err)
	srv := exec.Command(self, "-role", "server", "-row", r.id)
	srv.Stderr = os.Stderr
	commands, err := srv.StdinPipe()
	check(err)
	said, err := srv.StdoutPipe()
	check(err)
	check(srv.Start())
	defer srv.Wait()
	defer commands.Close()
	addr, err := bufio.NewReader(said).ReadString('\n')
	check(err)
	cmd := exec.Command(self, "-role", driver, "-row", r.id, "-addr", strings.TrimSpace(addr))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	check(err)
	check(cmd.Start())
	for in := bufio.NewReader(out); ; {
		line, err := in.ReadBytes('\n')
		if err == io.EOF {
			break
		}
		check(err)
		if line[0] == '{' {
			check(json.Unmarshal(line, &f))
		} else {
			_, err = commands.Write(line)
			check(err)
		}
	}
	check(cmd.Wait())
	return f
}
