package chaos

import (
	"errors"
	"io"
	"net/rpc"
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// child is the server process, seen from its parent. Not safe for concurrent use.
type child struct {
	t      testing.TB
	cmd    *exec.Cmd
	orders *rpc.Client
}

// pipe is the two directions of a connection.
type pipe struct {
	io.Reader
	io.WriteCloser
}

// startChild starts the server process; it serves nothing yet.
func startChild(t testing.TB) *child {
	self, err := os.Executable()
	must(t, err)
	cmd := exec.Command(self, serveArg)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	must(t, err)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	c := &child{t, cmd, rpc.NewClient(pipe{out, in})}
	t.Cleanup(c.kill)
	return c
}

func (c *child) signal(s syscall.Signal) { must(c.t, c.cmd.Process.Signal(s)) }

// kill ends the process with SIGKILL and waits for it. A second call does nothing.
func (c *child) kill() {
	if err := c.cmd.Process.Kill(); !errors.Is(err, os.ErrProcessDone) {
		must(c.t, err)
	}
	_ = c.cmd.Wait()     // "signal: killed"
	_ = c.orders.Close() // by then it may be closed already
}
