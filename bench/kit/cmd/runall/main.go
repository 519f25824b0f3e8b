// Command runall runs the matrix: every driver entry of every drivers/*/driver.json on
// every row, -runs times, the drivers taking turns. It prints a table of medians, and which
// targets are met.
package main

import (
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/xdswatch/xdswatch/bench/kit"
	"github.com/xdswatch/xdswatch/bench/kit/report"
)

// matrix is what is to be run.
type matrix struct {
	addr    string
	drivers []entry
	rows    []row
	runs    int
	wait    time.Duration
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	dir := flag.String("dir", ".", "the bench folder")
	runs := flag.Int("runs", 3, "runs of each driver on each row")
	only := flag.String("only", "", "rows to run (regexp)")
	drivers := flag.String("drivers", "", "driver entries to run (regexp on the name)")
	out := flag.String("out", "", "write all results here (JSON)")
	wait := flag.Duration("wait", 90*time.Second, "a driver's limit for a phase")
	flag.Parse()
	m := &matrix{runs: *runs, wait: *wait}
	var err error
	if m.drivers, err = entries(*dir); err != nil {
		return err
	}
	if err := m.choose(*only, *drivers); err != nil {
		return err
	}
	stop, err := m.startServer(filepath.Join(*dir, "bin", "server"))
	if err != nil {
		return err
	}
	defer stop()
	cells := m.run()
	if *out != "" {
		err = save(*out, cells)
	}
	return failed(err, cells)
}

// choose leaves the rows and the drivers that are wanted. That nothing is to be run is an
// error, which says what there is.
func (m *matrix) choose(only, drivers string) (err error) {
	if m.rows, err = matching("-only", only, rows, func(r row) string { return r.id }); err != nil {
		return err
	}
	if m.drivers, err = matching("-drivers", drivers, m.drivers, func(e entry) string { return e.Name }); err != nil {
		return err
	}
	for _, r := range m.rows {
		if len(m.entriesOf(r)) > 0 {
			return nil
		}
	}
	return fmt.Errorf("no driver that -drivers %q matches takes part in a row that -only %q does", drivers, only)
}

// matching are those whose name a pattern matches.
func matching[T any](flag, pattern string, all []T, name func(T) string) (some []T, err error) {
	wanted, err := regexp.Compile(pattern)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	var names []string
	for _, one := range all {
		names = append(names, name(one))
		if wanted.MatchString(name(one)) {
			some = append(some, one)
		}
	}
	if len(some) == 0 {
		return nil, fmt.Errorf("%s %q matches none of %s", flag, pattern, strings.Join(names, ", "))
	}
	return some, nil
}

func save(file string, cells []report.Cell) error {
	w, err := os.Create(file)
	if err != nil {
		return err
	}
	defer w.Close()
	return report.Write(w, cells)
}

// failed says whether a driver failed on a row.
func failed(err error, cells []report.Cell) error {
	for _, c := range cells {
		for _, r := range c.Runs {
			if r.Err != "" {
				return fmt.Errorf("%s failed on %s", c.Driver, c.Row)
			}
		}
	}
	return err
}

// startServer starts the server and waits for it.
func (m *matrix) startServer(bin string) (stop func(), err error) {
	if m.addr, err = freePorts(); err != nil {
		return nil, err
	}
	cmd := exec.Command(bin, "-addr", m.addr)
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	stop = func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
	}
	secure, err := kit.TLSAddr(m.addr) // the last that it listens on
	for range 100 {
		var c net.Conn
		if c, err = net.Dial("tcp", secure); err == nil {
			return stop, c.Close()
		}
		time.Sleep(50 * time.Millisecond)
	}
	stop()
	return nil, fmt.Errorf("the server does not listen: %w", err)
}

// freePorts finds as many ports in a row as the server wants.
func freePorts() (addr string, err error) {
	for range 100 {
		var a net.Listener
		if a, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			return "", err
		}
		addr = a.Addr().String()
		if err = a.Close(); err == nil && free(addr, kit.ControlAddr) && free(addr, kit.TLSAddr) && serversFree(addr) {
			return addr, nil
		}
	}
	return "", fmt.Errorf("not enough free ports in a row: %w", err)
}

func serversFree(addr string) bool {
	for number := 1; number < kit.MaxServers; number++ {
		if !free(addr, func(addr string) (string, error) { return kit.ServerAddr(addr, number) }) {
			return false
		}
	}
	return true
}

func free(addr string, port func(string) (string, error)) bool {
	addr, err := port(addr)
	if err != nil {
		return false
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return false
	}
	return l.Close() == nil
}

func (m *matrix) run() (all []report.Cell) {
	start := time.Now()
	fmt.Printf("Started %s, load average %s\n\n", start.UTC().Format(time.DateTime), loadAverage())
	r := report.New(1)
	r.WriteHeader(os.Stdout)
	for _, row := range m.rows {
		cells := m.row(row)
		r.Add(0, cells...)
		r.WriteRow(os.Stdout, row.id)
		all = append(all, cells...)
	}
	fmt.Printf("\nTook %v, load average at the end %s\n", time.Since(start).Round(time.Second), loadAverage())
	r.WriteNoise(os.Stdout)
	r.WriteTargets(os.Stdout)
	return all
}

// row runs all drivers on one row. One that failed is not tried again.
func (m *matrix) row(r row) (cells []report.Cell) {
	runs := m.runs
	if r.runs > 0 {
		runs = min(runs, r.runs)
	}
	es := m.entriesOf(r)
	for _, e := range es {
		cells = append(cells, report.Cell{Row: r.id, Driver: e.Name})
	}
	for i := range runs {
		for k, e := range es {
			c := &cells[k]
			if i > 0 && (c.Runs[0].NA != "" || c.Runs[0].Err != "") {
				continue
			}
			c.Runs = append(c.Runs, e.run(m.addr, r.flags, m.wait))
		}
	}
	return cells
}

// entriesOf are the drivers that take part in a row.
func (m *matrix) entriesOf(r row) (es []*entry) {
	for i := range m.drivers {
		if e := &m.drivers[i]; e.only.MatchString(r.id) {
			es = append(es, e)
		}
	}
	return es
}

func loadAverage() string {
	b, _ := os.ReadFile("/proc/loadavg") // absent outside Linux
	fields := strings.Fields(string(b))
	return strings.Join(fields[:min(3, len(fields))], " ")
}
