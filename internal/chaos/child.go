package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
)

// child is the server process, seen from its parent. Not safe for concurrent use.
type child struct {
	cmd     *exec.Cmd
	orders  io.WriteCloser
	encode  *json.Encoder
	answers *json.Decoder
}

// startChild starts the server process; it serves nothing yet.
func startChild() (*child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, serveArg)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("server process: %w", err)
	}
	return &child{cmd: cmd, orders: in, encode: json.NewEncoder(in), answers: json.NewDecoder(out)}, nil
}

// do has an order carried out.
func (c *child) do(o order) (answer, error) {
	if err := c.encode.Encode(o); err != nil {
		return answer{}, fmt.Errorf("order %s: %w", o.Op, err)
	}
	var a answer
	if err := c.answers.Decode(&a); err != nil {
		return answer{}, fmt.Errorf("order %s: %w", o.Op, err)
	}
	if a.Err != "" {
		return answer{}, fmt.Errorf("order %s: the server process says: %s", o.Op, a.Err)
	}
	return a, nil
}

func (c *child) signal(s syscall.Signal) error { return c.cmd.Process.Signal(s) }

// kill ends the process with SIGKILL and waits for it.
func (c *child) kill() error {
	c.orders.Close()
	err := c.cmd.Process.Kill()
	if errors.Is(err, os.ErrProcessDone) {
		err = nil
	}
	_ = c.cmd.Wait() // "signal: killed"
	return err
}
