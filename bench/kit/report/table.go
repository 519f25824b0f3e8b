package report

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/xdswatch/xdswatch/bench/kit"
)

// num is short.
func num(v float64) string {
	switch {
	case math.IsNaN(v), math.IsInf(v, 0):
		return "–"
	case v == 0:
		return "0"
	case v < 10:
		return fmt.Sprintf("%.2f", v)
	case v < 100:
		return fmt.Sprintf("%.1f", v)
	case v >= 1e6:
		return fmt.Sprintf("%.2fM", v/1e6)
	case v >= 1e4:
		return fmt.Sprintf("%.0fk", v/1e3)
	}
	return fmt.Sprintf("%.0f", v)
}

// each is the median of every measurement.
func (r *Report) each(k key, m measure) string {
	var s []string
	for _, t := range r.tables {
		s = append(s, num(median(t[k], m)))
	}
	return strings.Join(s, " / ")
}

// once is the median of all.
func (r *Report) once(k key, m measure) string { return num(median(r.all[k], m)) }

// ratio is between the medians of two drivers on one row.
func (r *Report) ratio(k key, to string, m measure) float64 {
	return median(r.all[k], m) / median(r.all[key{k.row, to}], m)
}

var header = []string{
	"row", "driver", "CPU ms", "×null", "×nulldecode", "wall ms", "×null", "×nulldecode", "alloc MiB", "allocs",
	"heap B/res", "peak RSS MiB", "requests", "req MiB", "p50 µs", "p99 µs",
}

// WriteHeader begins the table.
func (r *Report) WriteHeader(w io.Writer) { writeHeader(w, header) }

func writeHeader(w io.Writer, columns []string) {
	writeLine(w, columns)
	fmt.Fprintln(w, strings.Repeat("|---", len(columns))+"|")
}

func writeLine(w io.Writer, columns []string) {
	fmt.Fprintln(w, "| "+strings.Join(columns, " | ")+" |")
}

// WriteRow writes the lines of one row.
func (r *Report) WriteRow(w io.Writer, row string) {
	shown := row
	for _, k := range r.order {
		if k.row == row {
			writeLine(w, append([]string{shown, k.driver}, r.columns(k)...))
			shown = ""
		}
	}
}

func (r *Report) columns(k key) []string {
	if len(r.all[k]) == 0 {
		return []string{r.why[k]}
	}
	columns := []string{
		r.each(k, cpu), num(r.ratio(k, "null", cpu)), num(r.ratio(k, "nulldecode", cpu)),
		r.each(k, wall), num(r.ratio(k, "null", wall)), num(r.ratio(k, "nulldecode", wall)),
		r.once(k, alloc), r.once(k, allocs), r.once(k, heapPerResource), r.once(k, peakRSS),
		r.once(k, requests), r.once(k, requestMB),
	}
	switch r.all[k][0].Work {
	case kit.Update, kit.Fanout, kit.Incr:
		return append(columns, r.each(k, p50), r.each(k, p99))
	}
	return append(columns, "", "")
}

// WriteRows writes the lines of all rows.
func (r *Report) WriteRows(w io.Writer) {
	var done []string
	for _, k := range r.order {
		if !slices.Contains(done, k.row) {
			done = append(done, k.row)
			r.WriteRow(w, k.row)
		}
	}
}

// WriteNoise says how far the first two measurements are apart, and how busy the server
// was at most.
func (r *Report) WriteNoise(w io.Writer) {
	if len(r.tables) > 1 {
		r.writeSpread(w)
	}
	most, of := 0.0, key{}
	for _, k := range r.order {
		if s := median(r.all[k], serverCPU) / median(r.all[k], wall); s > most {
			most, of = s, k
		}
	}
	fmt.Fprintf(w, "Most server CPU per wall time: %.2f cores (%s, %s).\n", most, of.row, of.driver)
}

func (r *Report) writeSpread(w io.Writer) {
	var d []float64
	for _, k := range r.order {
		if a, b := median(r.tables[0][k], cpu), median(r.tables[1][k], cpu); a > 0 && b > 0 {
			d = append(d, math.Abs(math.Log(a/b)))
		}
	}
	if len(d) == 0 {
		return
	}
	slices.Sort(d)
	at := func(q float64) float64 { return 100 * (math.Exp(d[int(q*float64(len(d)-1))]) - 1) }
	fmt.Fprintf(w, "CPU medians of the first two tables differ by: median %.0f %%, 90th percentile %.0f %%, most %.0f %% (%d cells).\n",
		at(.5), at(.9), at(1), len(d))
}
