// Package report turns results into tables.
package report

import (
	"encoding/json"
	"io"
	"math"
	"os"
	"slices"

	"github.com/xdswatch/xdswatch/bench/kit"
)

// Cell is the runs of one driver on one row.
type Cell struct {
	Row    string       `json:"row"`
	Driver string       `json:"driver"`
	Runs   []kit.Result `json:"runs"`
}

// Read reads the cells that runall wrote.
func Read(file string) (cells []Cell, err error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return cells, json.Unmarshal(b, &cells)
}

// Write writes cells for [Read].
func Write(w io.Writer, cells []Cell) error {
	e := json.NewEncoder(w)
	e.SetIndent("", " ")
	return e.Encode(cells)
}

// Report is one or more measurements of the same rows. Ratios and everything that is shown
// once come of the runs of all of them.
type Report struct {
	tables []map[key][]kit.Result
	all    map[key][]kit.Result
	order  []key
	why    map[key]string // there are no runs
}

type key struct{ row, driver string }

// New makes a report of so many measurements.
func New(tables int) *Report {
	r := &Report{all: map[key][]kit.Result{}, why: map[key]string{}}
	for range tables {
		r.tables = append(r.tables, map[key][]kit.Result{})
	}
	return r
}

// Add adds cells to a measurement. Runs that failed do not count.
func (r *Report) Add(table int, cells ...Cell) {
	for _, c := range cells {
		k := key{c.Row, c.Driver}
		if !slices.Contains(r.order, k) {
			r.order = append(r.order, k)
		}
		for _, run := range c.Runs {
			switch {
			case run.NA != "":
				r.why[k] = "n/a: " + run.NA
			case run.Err != "":
				r.why[k] = "failed: " + run.Err
			default:
				r.tables[table][k] = append(r.tables[table][k], run)
				r.all[k] = append(r.all[k], run)
			}
		}
	}
}

// measure is a number of a result.
type measure func(*kit.Result) float64

// phase is one of the load in its workload, else of what follows it.
func phase(load, rest measure) measure {
	return func(r *kit.Result) float64 {
		if r.Work == kit.Load {
			return load(r)
		}
		return rest(r)
	}
}

func cpu(r *kit.Result) float64 {
	return phase(func(r *kit.Result) float64 { return r.LoadCPUMS }, func(r *kit.Result) float64 { return r.CPUMS })(r)
}

func wall(r *kit.Result) float64 {
	return phase(func(r *kit.Result) float64 { return r.LoadMS }, func(r *kit.Result) float64 { return r.MS })(r)
}

func alloc(r *kit.Result) float64 {
	return phase(func(r *kit.Result) float64 { return r.LoadAlloc }, func(r *kit.Result) float64 { return r.AllocMB })(r)
}

func allocs(r *kit.Result) float64 {
	return phase(func(r *kit.Result) float64 { return r.LoadAllocs }, func(r *kit.Result) float64 { return r.Allocs })(r)
}

func requests(r *kit.Result) float64 {
	return phase(func(r *kit.Result) float64 { return float64(r.LoadReqs) }, func(r *kit.Result) float64 { return float64(r.Reqs) })(r)
}

func requestMB(r *kit.Result) float64 {
	return phase(func(r *kit.Result) float64 { return r.LoadReqMB }, func(r *kit.Result) float64 { return r.ReqMB })(r)
}

func serverCPU(r *kit.Result) float64 {
	return phase(func(r *kit.Result) float64 { return r.LoadSrvCPU }, func(r *kit.Result) float64 { return r.SrvCPU })(r)
}

func connections(r *kit.Result) float64 { return float64(r.LoadConns) }

// callbacks per change, or per round of heartbeats.
func callbacks(r *kit.Result) float64 { return float64(r.Callbacks) / float64(r.Updates) }

// allocsPerHeartbeat is what each of a round cost.
func allocsPerHeartbeat(r *kit.Result) float64 { return r.Allocs / float64(r.N*r.Updates) }

func heapPerResource(r *kit.Result) float64 { return max(0, r.HeapPerRes) }

// memoryPerResource is heap and stacks.
func memoryPerResource(r *kit.Result) float64 {
	return max(0, r.HeapPerRes+r.StackMB*(1<<20)/float64(r.N))
}

func peakRSS(r *kit.Result) float64 { return r.PeakRSSMB }
func p50(r *kit.Result) float64     { return r.P50US }
func p99(r *kit.Result) float64     { return r.P99US }

// median is NaN of no results.
func median(rs []kit.Result, m measure) float64 {
	if len(rs) == 0 {
		return math.NaN()
	}
	var v []float64
	for i := range rs {
		v = append(v, m(&rs[i]))
	}
	slices.Sort(v)
	if n := len(v); n%2 == 0 {
		return (v[n/2-1] + v[n/2]) / 2
	}
	return v[len(v)/2]
}
