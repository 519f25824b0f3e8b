// Command summary reads the files that runall -out wrote, one for each measurement, and
// prints one table: the median of each measurement, ratios from the runs of all together.
package main

import (
	"fmt"
	"os"

	"github.com/xdswatch/xdswatch/bench/kit/report"
)

func main() {
	files := os.Args[1:]
	r := report.New(len(files))
	for i, f := range files {
		cells, err := report.Read(f)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		r.Add(i, cells...)
	}
	w := os.Stdout
	r.WriteHeader(w)
	r.WriteRows(w)
	fmt.Fprintln(w)
	r.WriteNoise(w)
	r.WriteTargets(w)
}
