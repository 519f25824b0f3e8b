package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/xdswatch/xdswatch/bench/kit"
)

// entry is one way to run a driver, from its driver.json. In arguments, {dir} is a directory that is
// there for one run.
type entry struct {
	Name   string   `json:"name"`
	Before []string `json:"before"` // arguments of a process that runs before, unmeasured
	Args   []string `json:"args"`
	Only   string   `json:"only"` // rows in which it takes part
	bin    string
	only   *regexp.Regexp
}

// entries reads the drivers that are built, the floors first: others are compared with
// them.
func entries(dir string) (all []entry, err error) {
	files, err := filepath.Glob(filepath.Join(dir, "drivers", "*", "driver.json"))
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		bin := filepath.Join(dir, "bin", filepath.Base(filepath.Dir(f)))
		if _, err := os.Stat(bin); err != nil {
			fmt.Fprintf(os.Stderr, "%s: not built, left out\n", bin)
			continue
		}
		es, err := readEntries(f, bin)
		if err != nil {
			return nil, err
		}
		all = append(all, es...)
	}
	slices.SortStableFunc(all, func(a, b entry) int { return rank(a.Name) - rank(b.Name) })
	return all, nil
}

func readEntries(file, bin string) (es []entry, err error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(b, &es); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	for i := range es {
		e := &es[i]
		e.bin = bin
		if e.only, err = regexp.Compile(e.Only); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	return es, nil
}

func rank(name string) int {
	switch name {
	case "null":
		return 0
	case "nulldecode":
		return 1
	case "xdswatch":
		return 2
	}
	return 3
}

// run runs a driver once.
func (e *entry) run(addr, flags string, wait time.Duration) (r kit.Result) {
	dir, err := os.MkdirTemp("", "bench-")
	if err != nil {
		r.Err = err.Error()
		return r
	}
	defer os.RemoveAll(dir)
	if e.Before != nil {
		if r = e.process(addr, flags, wait, dir, e.Before); r.Err != "" {
			return r
		}
	}
	return e.process(addr, flags, wait, dir, e.Args)
}

// process is one process of a driver.
func (e *entry) process(addr, flags string, wait time.Duration, dir string, own []string) (r kit.Result) {
	args := append([]string{"-addr", addr, "-name", e.Name, "-wait", wait.String()}, strings.Fields(flags)...)
	for _, arg := range own {
		args = append(args, strings.ReplaceAll(arg, "{dir}", dir))
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*wait+30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, e.bin, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	// The result is the last line: libraries may print too.
	lines := bytes.Split(bytes.TrimSpace(stdout.Bytes()), []byte("\n"))
	if jerr := json.Unmarshal(lines[len(lines)-1], &r); jerr != nil {
		r.Err = fmt.Sprint(err, " ", jerr, " ", tail(stderr.String()))
	}
	if r.Err != "" {
		fmt.Fprintf(os.Stderr, "%s %s: %s %s\n", e.Name, flags, r.Err, tail(stderr.String()))
	}
	return r
}

func tail(s string) string { return s[max(0, len(s)-300):] }
