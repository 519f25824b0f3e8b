// Command conformance makes docs/CONFORMANCE.md: each rule, and the scripts and tests that
// prove it. A script cites rules in its "# spec:" header, a test in a comment "// spec:".
// With -check it only says whether the file is up to date.
package main

//go:generate go run .

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	check := flag.Bool("check", false, "say whether the file is up to date, and leave it as it is")
	flag.Parse()
	if err := run(*check); err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(1)
	}
}

// output is made, below the root of the module.
const output = "docs/CONFORMANCE.md"

var errStale = errors.New(output + " is out of date; run make generate")

func run(check bool) error {
	root, err := findRoot()
	if err != nil {
		return err
	}
	proofs, err := collect(root)
	if err != nil {
		return err
	}
	want := render(proofs)
	file := filepath.Join(root, output)
	if !check {
		return os.WriteFile(file, want, 0o644)
	}
	have, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if !bytes.Equal(have, want) {
		return errStale
	}
	return nil
}

// findRoot is the nearest folder above that holds go.mod.
func findRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("no go.mod here or above")
		}
		dir = parent
	}
}
