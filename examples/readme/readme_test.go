package main

import (
	"flag"
	"os"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the program into the README")

const readmePath = "../../README.md"

// block is the README's program between its fences, after the comment that names its file.
var block = regexp.MustCompile("(?s)(<!-- program: examples/readme/main.go -->\n```go\n)(.*?)(```\n)")

// The README quotes main.go from its package clause on.
// spec: U-16
func TestREADMEQuotesTheProgram(t *testing.T) {
	source, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	_, program, ok := strings.Cut(string(source), "\npackage main\n")
	if !ok {
		t.Fatal("main.go has no package clause")
	}
	program = "package main\n" + program
	readme, err := os.ReadFile(readmePath)
	if err != nil {
		t.Fatal(err)
	}
	parts := block.FindSubmatchIndex(readme)
	if parts == nil {
		t.Fatalf("%s has no block of Go after the comment <!-- program: examples/readme/main.go -->", readmePath)
	}
	from, to := parts[4], parts[5]
	if string(readme[from:to]) == program {
		return
	}
	if !*update {
		t.Fatalf("%s quotes another program than main.go; go test ./examples/readme -update writes it", readmePath)
	}
	text := string(readme[:from]) + program + string(readme[to:])
	if err := os.WriteFile(readmePath, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
