package consul

import (
	"os"
	"testing"

	"github.com/xdswatch/xdswatch/internal/realtest/process"
)

// program is the server's, made by TestMain.
var program string

func TestMain(m *testing.M) { os.Exit(process.Build(m, &program)) }

// start runs a server with a state until the test ends.
func start(t *testing.T, variation string) *process.Process {
	t.Helper()
	s := process.Start(t, func(line []byte) { t.Errorf("the server says %q", line) }, program)
	s.Set(variation)
	return s
}
