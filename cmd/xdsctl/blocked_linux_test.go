package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/xdswatch/xdswatch/testutil"
)

// blocks waits until a thread of the program waits in a write of standard output, which Linux tells.
func (p *process) blocks() {
	p.t.Helper()
	write := fmt.Sprintf("%d 0x1 ", syscall.SYS_WRITE)
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/syscall", p.cmd.Process.Pid))
		if err != nil {
			p.t.Fatal(err)
		}
		for _, thread := range threads {
			text, err := os.ReadFile(thread) // a thread may have ended
			if errors.Is(err, os.ErrPermission) {
				p.t.Skipf("the kernel does not say what a process waits for: %v", err)
			}
			if err == nil && strings.HasPrefix(string(text), write) {
				return
			}
		}
		if len(threads) == 0 && p.cmd.ProcessState == nil {
			p.t.Skip("the kernel does not say what a process waits for")
		}
	}
	p.t.Fatalf("the program does not wait for its reader; standard error:\n%s", p.stderr)
}

// A signal ends a program whose output nobody takes.
func TestBlockedOutput(t *testing.T) {
	m := testutil.StartManagementServer(t, testutil.ManagementConfig{})
	var resources []proto.Message
	for i := range 5000 { // far more than a pipe holds
		resources = append(resources, cluster(fmt.Sprintf("c%d", i)))
	}
	if err := m.Set("1", resources...); err != nil {
		t.Fatal(err)
	}
	p := launch(t, build(t), "watch", "--server", m.Addr(), "--output", "json", "cds")
	p.line()
	p.blocks()
	if err := p.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	p.ends(0)
	for status, args := range map[int][]string{
		0: {"record", "--server", m.Addr(), "--to", "-", "cds"},
		1: {"get", "--server", m.Addr(), "-o", "json", "cds"},
	} {
		p := launch(t, build(t), args...)
		if _, err := p.stdout.ReadByte(); err != nil {
			t.Fatal(err)
		}
		p.blocks()
		if err := p.cmd.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		_ = p.cmd.Wait() // the status is looked at
		if got := p.cmd.ProcessState.ExitCode(); got != status || (status == 1) != strings.Contains(p.stderr.String(), "xdsctl: interrupted\n") {
			t.Errorf("%v: %v, want %d; standard error:\n%s", args, p.cmd.ProcessState, status, p.stderr)
		}
	}
}
