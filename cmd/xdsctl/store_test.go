package main

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource/cds"
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

// slowly is a store that takes longer to save than the program waits for what blocks.
type slowly struct {
	client.Store
	saved atomic.Bool
}

func (s *slowly) Save(client.StoreSection, []client.StoredResource) error {
	time.Sleep(1500 * time.Millisecond)
	s.saved.Store(true)
	return nil
}

// The end of the program waits until what was accepted is saved.
//
// spec: LKG-4
func TestSlowStore(t *testing.T) {
	t.Parallel()
	s, kept := server(t), &slowly{}
	boot, err := bootstrap.Server(s.Target())
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(client.Config{Bootstrap: boot, Store: kept})
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan struct{}, 1)
	if _, err := c.Watch(t.Context(), cds.Type, "a", func(client.Event[any]) { got <- struct{}{} }); err != nil {
		t.Fatal(err)
	}
	send(t, accept(t, s), testutil.SotW(clusters, "1", "n1", cluster("a")))
	<-got
	(&connFlags{store: "somewhere"}).closeClient(c)
	if !kept.saved.Load() {
		t.Error("the program ends before the store has saved")
	}
}
