package report

import (
	"cmp"
	"fmt"
	"io"
	"math"
)

// target is what a driver should reach on a row.
type target struct {
	row     string
	driver  string // "" for ours
	what    string
	unit    string // after the number
	most    float64
	measure func(r *Report, k key) float64
}

// ours is the driver that most targets are about; globs is it too, with a glob in place of names,
// perType with a stream for the type alone, lazy with resources that nobody reads, wild with
// a watch of everything, stored with an empty store, full with one that has all, and offline with
// such a one and no server.
const (
	ours    = "xdswatch"
	globs   = "xdswatch+glob"
	perType = "xdswatch+pertype"
	lazy    = "xdswatch+lazy"
	wild    = "xdswatch+wild"
	stored  = "xdswatch+store"
	full    = "xdswatch+full"
	offline = "xdswatch+offline"
)

func cpuOver(floor string) func(*Report, key) float64 {
	return func(r *Report, k key) float64 { return r.ratio(k, floor, cpu) }
}

func wallOver(floor string) func(*Report, key) float64 {
	return func(r *Report, k key) float64 { return r.ratio(k, floor, wall) }
}

// memoryOver compares rows.
func memoryOver(row string) func(*Report, key) float64 {
	return func(r *Report, k key) float64 {
		return median(r.all[k], memoryPerResource) / median(r.all[key{row, k.driver}], memoryPerResource)
	}
}

func plain(m measure) func(*Report, key) float64 {
	return func(r *Report, k key) float64 { return median(r.all[k], m) }
}

var targets = []target{
	{"W1-sotw-cds-10k", "", "CPU", "× nulldecode", 1.3, cpuOver("nulldecode")},
	{"W1-sotw-cds-10k", "", "requests", "", 10, plain(requests)},
	{"W1-sotw-cds-100k", "", "CPU", "× nulldecode", 1.3, cpuOver("nulldecode")},
	{"W2-delta-cds-100k", "", "CPU", "× nulldecode", 1.25, cpuOver("nulldecode")},
	{"W1-sotw-cds-100k", lazy, "CPU", "× nulldecode", 0.4, cpuOver("nulldecode")},
	{"W2-delta-cds-100k", lazy, "CPU", "× nulldecode", 0.4, cpuOver("nulldecode")},
	{"W3-sotw-cds-10k", "", "CPU", "× null", 2.5, cpuOver("null")},
	{"W3-delta-cds-100k", "", "CPU", "× nulldecode", 1.3, cpuOver("nulldecode")},
	{"W1-sotw-cds-10k", perType, "CPU", "× xdswatch", 1.05, cpuOver(ours)},
	{"W1-sotw-cds-100k", perType, "CPU", "× xdswatch", 1.05, cpuOver(ours)},
	{"W2-delta-cds-100k", perType, "CPU", "× xdswatch", 1.05, cpuOver(ours)},
	{"W3-sotw-cds-10k", perType, "CPU", "× xdswatch", 1.05, cpuOver(ours)},
	{"W3-delta-cds-100k", perType, "CPU", "× xdswatch", 1.05, cpuOver(ours)},
	{"W4-sotw-eds10-10kw", "", "CPU", "× nulldecode", 2, cpuOver("nulldecode")},
	{"W4-delta-eds10-10kw", "", "CPU", "× nulldecode", 2, cpuOver("nulldecode")},
	{"W5-sotw-eds10-10k", "", "CPU", "× null", 1.3, cpuOver("null")},
	{"W6-delta-cds-100k", "", "CPU", "× nulldecode", 1.5, cpuOver("nulldecode")},
	{"W7-sotw-cds-100k", "", "heap", " B per resource", 1400, plain(heapPerResource)},
	{"W7-delta-cds-100k", "", "heap", " B per resource", 1400, plain(heapPerResource)},
	{"W7-delta-cds-100k", lazy, "heap", " B per resource", 1400, plain(heapPerResource)},
	{"W9-load-delta-cds-1M", "", "CPU", "× nulldecode", 1.1, cpuOver("nulldecode")},
	{"W9-load-delta-cds-1M", "", "heap", " B per resource", 1200, plain(heapPerResource)},
	{"W9-reconnect-delta-cds-1M", "", "wall", " ms", 2000, plain(wall)},
	{"W9-reconnect-delta-cds-1M", wild, "wall", " ms", 2000, plain(wall)},
	{"G1-load-delta-cds-100k", globs, "CPU", "× xdswatch", 1.3, cpuOver(ours)},
	{"G2-change-delta-cds-100k", globs, "CPU", "× xdswatch", 1.3, cpuOver(ours)},
	{"S1-keep-sotw-cds-100k", stored, "CPU", "× xdswatch", 1.15, cpuOver(ours)},
	{"S1-keep-sotw-cds-100k", full, "CPU", "× xdswatch", 1.15, cpuOver(ours)},
	{"S2-start-sotw-cds-100k", offline, "CPU", "× nulldecode", 1.5, cpuOver("nulldecode")},
	{"S2-start-sotw-cds-100k", offline, "wall", "× nulldecode", 1.5, wallOver("nulldecode")},
	{"A1-delta-cds-200x100", "", "connections", "", 10, plain(connections)},
	{"A1-delta-cds-200x100", "", "heap and stacks", "× 10x2k", 1.1, memoryOver("A1-delta-cds-10x2k")},
	{"A1-delta-cds-200x100", "", "heap and stacks", "× 1x20k", 1.1, memoryOver("A1-delta-cds-1x20k")},
	{"T1-heartbeat-delta-cds-100k", "", "callbacks", " a round", 0, plain(callbacks)},
	{"T1-heartbeat-delta-cds-100k", "", "allocations", " a heartbeat", 0.01, plain(allocsPerHeartbeat)},
	{"T1-heartbeat-delta-cds-100k", globs, "callbacks", " a round", 0, plain(callbacks)},
	{"T1-heartbeat-delta-cds-100k", globs, "allocations", " a heartbeat", 0.01, plain(allocsPerHeartbeat)},
}

// WriteTargets writes which targets are met, of the rows that were measured; nothing if
// none was.
func (r *Report) WriteTargets(w io.Writer) {
	var lines [][]string
	for _, t := range targets {
		driver := cmp.Or(t.driver, ours)
		v := t.measure(r, key{t.row, driver})
		if math.IsNaN(v) {
			continue
		}
		met := "yes"
		if v > t.most {
			met = "**no**"
		}
		lines = append(lines, []string{t.row, driver, t.what, fmt.Sprintf("≤ %g%s", t.most, t.unit), num(v) + t.unit, met})
	}
	if len(lines) == 0 {
		return
	}
	fmt.Fprint(w, "\nTargets:\n\n")
	writeHeader(w, []string{"row", "driver", "what", "target", "measured", "met"})
	for _, l := range lines {
		writeLine(w, l)
	}
}
