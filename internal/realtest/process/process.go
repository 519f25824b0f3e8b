// Package process runs a management server that has to be a program of its own: its module needs versions
// of packages that do not go with this library's. The program prints where it listens, then what it has
// to tell, a line each, takes a new state from each line of its input, and ends with it.
package process

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// Build makes the program of the folder "server" for the tests of TestMain, and returns their exit code.
func Build(m *testing.M, program *string) int {
	dir, err := os.MkdirTemp("", "server")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	*program = filepath.Join(dir, "server")
	build := exec.Command("go", "build", "-o", *program, ".")
	build.Dir, build.Stderr = "server", os.Stderr
	if err := build.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "the server:", err)
		return 1
	}
	return m.Run()
}

// Process is a running program.
type Process struct {
	Addrs []string // where it listens

	t     testing.TB
	input io.Writer
}

// Start runs a program until the test ends. What it tells later is given to hear, from another
// goroutine.
func Start(t testing.TB, hear func(line []byte), program string, args ...string) *Process {
	t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Stderr = os.Stderr
	input, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var heard sync.WaitGroup
	t.Cleanup(func() {
		input.Close()
		heard.Wait()
		if err := cmd.Wait(); err != nil {
			t.Errorf("the server: %v", err)
		}
	})
	lines := bufio.NewScanner(output)
	if !lines.Scan() {
		t.Fatal("the server says nothing")
	}
	heard.Go(func() {
		for lines.Scan() {
			hear(lines.Bytes())
		}
	})
	return &Process{strings.Fields(strings.TrimPrefix(lines.Text(), "listening ")), t, input}
}

// Set gives the program a new state.
func (p *Process) Set(state string) {
	p.t.Helper()
	if _, err := fmt.Fprintln(p.input, state); err != nil {
		p.t.Fatal(err)
	}
}
