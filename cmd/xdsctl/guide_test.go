package main

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xdswatch/xdswatch/cmd/xdsctl/internal/recording"
)

// difference is what a management server says now and a recording does not have, or the reverse.
func difference(t *testing.T, recording, server string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "xdsctl", "diff", recording, "server:"+server)
	out, err := command.Output()
	if status := command.ProcessState.ExitCode(); status != 0 && status != 3 {
		t.Fatal(err)
	}
	return string(out)
}

// replayed starts a management server that has what was recorded, and returns its address.
func replayed(t *testing.T, recording string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "xdsctl", "replay", "--speed", "0", recording)
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = command.Wait() }) // the end of the test's context kills it
	var first struct{ Address string }
	if err := json.NewDecoder(out).Decode(&first); err != nil {
		t.Fatal(err)
	}
	return first.Address
}

// The recipe docs/guide/replay.md: a release is recorded, and the next one is compared with it.
func TestGuide(t *testing.T) {
	path := build(t)
	t.Setenv("PATH", filepath.Dir(path))
	m := managed(t, shop()...)
	file := filepath.Join(t.TempDir(), "release-1.jsonl")
	frames, stop := startRecord(t, file, "--server", m.Addr(), "lds", "cds", "rds:shop", "eds:backend", "eds:frontend")
	until(t, "everything", func() bool {
		types := map[string]bool{}
		endpoints := 0
		for _, f := range frames() {
			if f.Direction == recording.Response {
				types[f.Type] = true
				endpoints += strings.Count(string(f.Message), `"clusterName"`)
			}
		}
		return len(types) == 4 && endpoints >= 2
	})
	stop()

	if diff := difference(t, file, m.Addr()); diff != "" {
		t.Errorf("nothing has changed, and the difference is\n%s", diff)
	}
	if err := m.Set("2", changed()...); err != nil {
		t.Fatal(err)
	}
	if diff := difference(t, file, m.Addr()); !strings.Contains(diff, "+ cds extra\n") {
		t.Errorf("the difference is\n%s", diff)
	}
	if diff := difference(t, file, replayed(t, file)); diff != "" {
		t.Errorf("the replay differs by\n%s", diff)
	}
}
