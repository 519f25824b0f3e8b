package report

import (
	"fmt"
	"io"
	"math"
)

// target is what a driver should reach on a row.
type target struct {
	row     string
	what    string
	unit    string // after the number
	most    float64
	measure func(r *Report, k key) float64
}

// ours is the driver that the targets are about.
const ours = "xdswatch"

func cpuOver(floor string) func(*Report, key) float64 {
	return func(r *Report, k key) float64 { return r.ratio(k, floor, cpu) }
}

func plain(m measure) func(*Report, key) float64 {
	return func(r *Report, k key) float64 { return median(r.all[k], m) }
}

var targets = []target{
	{"W1-sotw-cds-10k", "CPU", "× nulldecode", 1.3, cpuOver("nulldecode")},
	{"W1-sotw-cds-10k", "requests", "", 10, plain(requests)},
	{"W1-sotw-cds-100k", "CPU", "× nulldecode", 1.3, cpuOver("nulldecode")},
	{"W2-delta-cds-100k", "CPU", "× nulldecode", 1.25, cpuOver("nulldecode")},
	{"W3-sotw-cds-10k", "CPU", "× null", 2.5, cpuOver("null")},
	{"W3-delta-cds-100k", "CPU", "× nulldecode", 1.3, cpuOver("nulldecode")},
	{"W4-sotw-eds10-10kw", "CPU", "× nulldecode", 2, cpuOver("nulldecode")},
	{"W4-delta-eds10-10kw", "CPU", "× nulldecode", 2, cpuOver("nulldecode")},
	{"W5-sotw-eds10-10k", "CPU", "× null", 1.3, cpuOver("null")},
	{"W6-delta-cds-100k", "CPU", "× nulldecode", 1.5, cpuOver("nulldecode")},
	{"W7-sotw-cds-100k", "heap", " B per resource", 1400, plain(heapPerResource)},
	{"W7-delta-cds-100k", "heap", " B per resource", 1400, plain(heapPerResource)},
}

// WriteTargets writes which targets are met, of the rows that were measured; nothing if
// none was.
func (r *Report) WriteTargets(w io.Writer) {
	var lines [][]string
	for _, t := range targets {
		v := t.measure(r, key{t.row, ours})
		if math.IsNaN(v) {
			continue
		}
		met := "yes"
		if v > t.most {
			met = "**no**"
		}
		lines = append(lines, []string{t.row, t.what, fmt.Sprintf("≤ %g%s", t.most, t.unit), num(v) + t.unit, met})
	}
	if len(lines) == 0 {
		return
	}
	fmt.Fprint(w, "\nTargets:\n\n")
	writeHeader(w, []string{"row", "what", "target", "measured", "met"})
	for _, l := range lines {
		writeLine(w, l)
	}
}
