// Command conformance makes docs/CONFORMANCE.md: each rule, where it stands in the code, and the
// scripts and tests that prove it. Code cites rules in comments as package places says, a script in
// its "# spec:" header, a test in a comment "// spec:". With -check it only says whether the file is
// up to date.
package main

//go:generate go run .

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/xdswatch/xdswatch/internal/conformance/places"
	"github.com/xdswatch/xdswatch/internal/conformance/rules"
)

func main() {
	check := flag.Bool("check", false, "say whether the file is up to date, and leave it as it is")
	flag.Parse()
	if err := run(*check); err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(1)
	}
}

// What is made, below the root of the module.
const (
	output  = "docs/CONFORMANCE.md"
	nowhere = "internal/conformance/testdata/nowhere.txt"
)

func run(check bool) error {
	root, err := findRoot()
	if err != nil {
		return err
	}
	proofs, err := collect(root)
	if err != nil {
		return err
	}
	found, err := places.Find(root, rules.IDs())
	if err != nil {
		return err
	}
	where := byRule(found)
	listed, err := os.ReadFile(filepath.Join(root, nowhere))
	if err != nil {
		return err
	}
	homeless, err := shrink(string(listed), proofs, where)
	if err != nil {
		return err
	}
	return errors.Join(
		made(check, root, output, render(proofs, where)),
		made(check, root, nowhere, []byte(homeless)))
}

// made writes a file, or checks that it is as it should be.
func made(check bool, root, name string, want []byte) error {
	file := filepath.Join(root, filepath.FromSlash(name))
	if !check {
		return os.WriteFile(file, want, 0o644)
	}
	have, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if !bytes.Equal(have, want) {
		return fmt.Errorf("%s is out of date; run make generate", name)
	}
	return nil
}

// shrink makes the list of rules that have a proof and stand nowhere in the code. It takes rules off
// the list and never adds one: what the code obeys it can say at the branch that obeys.
func shrink(list string, proofs map[string][]proof, where map[string][]places.Place) (string, error) {
	var b strings.Builder
	allowed := strings.Fields(list)
	for _, s := range rules.All() {
		for _, r := range s.Rules {
			switch {
			case len(proofs[r.ID]) == 0, len(where[r.ID]) > 0:
			case !slices.Contains(allowed, r.ID):
				return "", fmt.Errorf("no comment says any more where %s stands: put %q at the branch that obeys it", r.ID, "// "+r.ID+": …")
			default:
				fmt.Fprintln(&b, r.ID)
			}
		}
	}
	return b.String(), nil
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
