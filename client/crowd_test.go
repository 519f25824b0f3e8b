package client_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource/cds"
)

// Many watches of one resource, typed and untyped ones, and under another spelling, each hear of each
// change once, in order, whatever handlers of others do: some panic, some end their goroutine,
// some stop a watch that has not been called yet.
// spec: H-12, U-5
func TestCrowd(t *testing.T) {
	const name, spelled = "xdstp:///" + clusterName + "/x?a=1&b=2", "xdstp:///" + clusterName + "/x?b=2&a=1"
	for seed := range uint64(20) {
		inBubble(t, func(t *testing.T, r *rig) {
			testCrowd(t, r, rand.New(rand.NewPCG(seed, 1)), name, spelled)
		}, func(c *client.Config) { c.Bootstrap.Authorities = map[string]bootstrap.Authority{"": {}} })
	}
}

// crowded is a watch of a crowd. What it does at its second call is decided at the start.
type crowded struct {
	w      *client.Watch
	heard  []string // versions
	asked  string   // its name as it was spelled
	does   int      // at its second call
	victim *crowded // that it stops
	ended  bool     // by a victim's stop
}

const (
	crowdNothing = iota
	crowdPanics
	crowdExits
	crowdStops
	crowdDeeds
)

func (m *crowded) hear(version, asked string) {
	if m.ended {
		version = "late"
	}
	m.heard = append(m.heard, version)
	if asked != m.asked {
		m.heard = append(m.heard, asked)
	}
	if len(m.heard) != 2 {
		return
	}
	switch m.does {
	case crowdPanics:
		panic("a crowd's")
	case crowdExits:
		runtime.Goexit()
	case crowdStops:
		if m.victim.w.Err() == nil {
			m.victim.w.Stop()
			m.victim.ended = true
		}
	}
}

func testCrowd(t *testing.T, r *rig, rnd *rand.Rand, name, spelled string) {
	ctx := context.Background()
	crowd := make([]*crowded, 70)
	for i := range crowd {
		crowd[i] = &crowded{}
	}
	for _, m := range crowd {
		var err error
		if rnd.IntN(4) == 0 {
			m.does = rnd.IntN(crowdDeeds)
		}
		m.victim = crowd[rnd.IntN(len(crowd))]
		m.asked = name
		switch rnd.IntN(3) {
		case 0:
			m.w, err = r.c.Watch(ctx, cds.Type, name, func(ev client.Event[any]) { m.hear(ev.Version, ev.Asked) })
		case 1:
			m.asked = spelled
			m.w, err = r.c.Watch(ctx, cds.Type, spelled, func(ev client.Event[any]) { m.hear(ev.Version, ev.Asked) })
		default:
			m.w, err = client.WatchTyped(ctx, r.c, cds.Type, name, func(ev client.Event[*clusterv3.Cluster]) { m.hear(ev.Value.AltStatName, ev.Asked) })
		}
		must(t, err)
	}
	st := r.accept()
	for _, v := range []string{"1", "2", "3"} {
		r.clusters(st, v, "n"+v, name)
	}
	for i, m := range crowd {
		checkCrowded(t, i, m)
	}
}

func checkCrowded(t *testing.T, i int, m *crowded) {
	want, err := "123", error(nil)
	switch {
	case m.ended: // before or after its second call; hear notes one that comes later
		want, err = "12"[:min(2, len(m.heard))], client.ErrStopped
	case m.does == crowdPanics:
		want, err = "12", m.w.Err()
		if _, ok := errors.AsType[*client.PanicError](err); !ok {
			t.Errorf("member %d ended with %v, want a panic", i, err)
		}
	case m.does == crowdExits:
		want, err = "12", client.ErrHandlerExited
	}
	if got := strings.Join(m.heard, ""); got != want {
		t.Errorf("member %d heard %q, want %q", i, got, want)
	}
	if got := m.w.Err(); got != err {
		t.Errorf("member %d ended with %v, want %v", i, got, err)
	}
}
