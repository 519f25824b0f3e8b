package main

import (
	"strings"
	"testing"

	"github.com/xdswatch/xdswatch/testutil"
)

// What was accepted is there without the server, marked, until the server speaks.
//
// spec: LKG-4
func TestStore(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := server(t)
	p := watchServer(t, s.Target(), "--store", dir, "--once", "cds", "cds:a")
	st := accept(t, s)
	send(t, st, testutil.SotW(clusters, "1", "n1", cluster("a")))
	p.skipTo(`"event":"synced"`)
	p.ends(0)

	s.SetRefuse(true)
	s.DropConnections()
	p = watchServer(t, s.Target(), "--store", dir, "--stdin", "cds", "cds:a")
	for range 2 {
		if line := p.skipTo(`"event":"update"`); !strings.Contains(line, `"stale":true`) {
			t.Errorf("printed %s", line)
		}
	}
	if line := p.skipTo(`"event":"synced"`); !strings.Contains(line, `"stale":true`) {
		t.Errorf("printed %s", line)
	}
	p.skipTo(`"event":"ambient-error"`)
	p.enter("dump")
	if dump := p.skipTo(`"event":"dump"`); !strings.Contains(dump, `"name":"a","authority":null,"status":"REQUESTED","version":"1"`) || !strings.Contains(dump, `"stale":true`) {
		t.Errorf("printed %s", dump)
	}
	s.SetRefuse(false)
	send(t, accept(t, s), testutil.SotW(clusters, "1", "n1", cluster("a")))
	for range 2 {
		if line := p.skipTo(`"event":"update"`); strings.Contains(line, "stale") {
			t.Errorf("printed %s", line)
		}
	}
	p.enter("quit")
	p.ends(0)

	p = start(t, s.Target(), "--server", s.Target(), "--store", "", "cds")
	p.complains("--store is empty")
	p.ends(2)
	p = start(t, s.Target(), "--server", s.Target(), "--store", file(t, "x", ""), "cds")
	p.complains("--store: mkdir ")
	p.ends(2)
}
