package consul

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xdswatch/xdswatch/internal/realtest"
)

// binary is the server's, made by TestMain.
var binary string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "consul")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "server")
	build := exec.Command("go", "build", "-o", binary, ".")
	build.Dir, build.Stderr = "server", os.Stderr
	if err := build.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "the server:", err)
		return 1
	}
	return m.Run()
}

// server is a running server.
type server struct {
	t     *testing.T
	addr  string
	input io.Writer
}

// start runs a server until the test ends.
func start(t *testing.T, variation string) *server {
	t.Helper()
	cmd := exec.Command(binary)
	cmd.Stderr = os.Stderr
	input, err := cmd.StdinPipe()
	realtest.Must(t, err)
	output, err := cmd.StdoutPipe()
	realtest.Must(t, err)
	realtest.Must(t, cmd.Start())
	t.Cleanup(func() {
		input.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("the server: %v", err)
		}
	})
	lines := bufio.NewScanner(output)
	if !lines.Scan() {
		t.Fatal("the server says nothing")
	}
	s := &server{t, strings.TrimPrefix(lines.Text(), "listening "), input}
	s.set(variation)
	return s
}

// set gives the server a new state.
func (s *server) set(variation string) {
	s.t.Helper()
	_, err := fmt.Fprintln(s.input, variation)
	realtest.Must(s.t, err)
}
