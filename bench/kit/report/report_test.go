package report

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xdswatch/xdswatch/bench/kit"
)

func loads(ms ...float64) (rs []kit.Result) {
	for _, v := range ms {
		rs = append(rs, kit.Result{Work: kit.Load, LoadCPUMS: v, LoadMS: v, LoadReqs: int64(v)})
	}
	return rs
}

func cells() []Cell {
	const row = "W1-sotw-cds-10k"
	return []Cell{
		{row, "null", loads(1, 3, 2)},
		{row, "nulldecode", loads(10)},
		{row, "xdswatch", loads(12, 16, 14, 100)},
		{row, "other", []kit.Result{{NA: "no names"}}},
		{row, "broken", []kit.Result{{Err: "timeout"}}},
	}
}

func TestRow(t *testing.T) {
	r := New(1)
	r.Add(0, cells()...)
	var b strings.Builder
	r.WriteRows(&b)
	for i, want := range []string{
		"| W1-sotw-cds-10k | null | 2.00 | 1.00 | 0.20 |",
		"|  | nulldecode | 10.0 | 5.00 | 1.00 |",
		"|  | xdswatch | 15.0 | 7.50 | 1.50 |",
		"|  | other | n/a: no names |",
		"|  | broken | failed: timeout |",
	} {
		line := strings.Split(b.String(), "\n")[i]
		if !strings.HasPrefix(line, want) {
			t.Errorf("line %d is %q, want it to begin with %q", i, line, want)
		}
	}
}

func TestTargets(t *testing.T) {
	r := New(1)
	r.Add(0, cells()...)
	var b strings.Builder
	r.WriteTargets(&b)
	want := "| W1-sotw-cds-10k | xdswatch | CPU | ≤ 1.3× nulldecode | 1.50× nulldecode | **no** |\n" +
		"| W1-sotw-cds-10k | xdswatch | requests | ≤ 10 | 15.0 | **no** |\n"
	if _, got, _ := strings.Cut(b.String(), "|---|---|---|---|---|---|\n"); got != want {
		t.Errorf("got\n%s, want\n%s", got, want)
	}
}

func TestTargetsOfHeartbeatsAndRows(t *testing.T) {
	r := New(1)
	one := func(row, driver string, of kit.Result) Cell { return Cell{row, driver, []kit.Result{of}} }
	r.Add(0,
		one("A1-delta-cds-10x2k", "xdswatch", kit.Result{Work: kit.Load, N: 1 << 20, HeapPerRes: 1000}),
		one("A1-delta-cds-200x100", "xdswatch", kit.Result{Work: kit.Load, N: 1 << 20, HeapPerRes: 1100, StackMB: 100, LoadConns: 10}),
		one("T1-heartbeat-delta-cds-100k", "xdswatch+glob", kit.Result{Work: kit.Heartbeat, N: 100, Updates: 2, Allocs: 1, Callbacks: 4}),
	)
	var b strings.Builder
	r.WriteTargets(&b)
	for _, want := range []string{
		"| A1-delta-cds-200x100 | xdswatch | connections | ≤ 10 | 10.0 | yes |",
		"| A1-delta-cds-200x100 | xdswatch | heap and stacks | ≤ 1.1× 10x2k | 1.20× 10x2k | **no** |",
		"| T1-heartbeat-delta-cds-100k | xdswatch+glob | callbacks | ≤ 0 a round | 2.00 a round | **no** |",
		"| T1-heartbeat-delta-cds-100k | xdswatch+glob | allocations | ≤ 0.01 a heartbeat | 0.01 a heartbeat | yes |",
	} {
		if !strings.Contains(b.String(), want+"\n") {
			t.Errorf("no line %q in\n%s", want, b.String())
		}
	}
	if got := strings.Count(b.String(), "\n"); got != 4+5 {
		t.Errorf("%d lines, want no target of a row that was not measured:\n%s", got, b.String())
	}
}

func TestTwoMeasurements(t *testing.T) {
	r := New(2)
	r.Add(0, Cell{"row", "null", loads(1)})
	r.Add(1, Cell{"row", "null", loads(2)})
	var b strings.Builder
	r.WriteRows(&b)
	r.WriteNoise(&b)
	if want := "| row | null | 1.00 / 2.00 |"; !strings.HasPrefix(b.String(), want) {
		t.Errorf("got %q, want it to begin with %q", b.String(), want)
	}
	if want := "differ by: median 100 %"; !strings.Contains(b.String(), want) {
		t.Errorf("got %q, want %q in it", b.String(), want)
	}
}

func TestFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "cells.json")
	w, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := Write(w, cells()); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	got, err := Read(file)
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 5 || got[2].Driver != "xdswatch" || got[2].Runs[3].LoadCPUMS != 100 {
		t.Errorf("read back %+v", got)
	}
}
