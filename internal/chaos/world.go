package main

import (
	"context"
	"math/rand/v2"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/grpc"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/testutil"
	"github.com/xdswatch/xdswatch/transport"
)

// world is servers and the ways to them, with a program that lives among them. It is driven
// by one goroutine.
type world struct {
	variant variant
	rng     *rand.Rand
	log     *journal
	model   *model
	program *program
	files   *pki     // nil in memory
	shelves *shelves // of the program

	sites []*site // in order of priority
	rests int
	used  int // the active server of the last rest, or one before it that answers again
}

func newWorld(seed uint64, v variant) (*world, error) {
	log := newJournal()
	w := &world{
		variant: v, rng: rand.New(rand.NewPCG(seed, 0)), log: log,
		model: newModel(v, log),
	}
	if err := w.open(); err != nil {
		w.close()
		return nil, err
	}
	return w, nil
}

func (w *world) open() (err error) {
	if w.variant.via != viaMemory {
		if w.files, err = newPKI(); err != nil {
			return err
		}
		if err := w.files.rotate(valid, valid); err != nil {
			return err
		}
	}
	for i, h := range w.model.truths {
		s := &site{world: w, index: i, truth: h}
		w.sites = append(w.sites, s)
		if err := s.build(); err != nil {
			return err
		}
	}
	return nil
}

// close ends the world; the program in it must have ended.
func (w *world) close() {
	for _, s := range w.sites {
		s.close()
	}
	if w.files != nil {
		_ = w.files.remove() // what is left lies among temporary files
	}
}

// cutAll breaks all connections.
func (w *world) cutAll() {
	for _, s := range w.sites {
		s.proxy.Cut()
	}
}

// config is that of a client of the servers.
func (w *world) config() (client.Config, error) {
	c := client.Config{
		Bootstrap: &bootstrap.Config{Node: &corev3.Node{Id: "chaos"}}, ResourceTimeout: resourceTimeout,
		GRPC: transport.GRPCConfig{
			KeepaliveTime: keepaliveTime, KeepaliveTimeout: keepaliveTimeout, ConnectTimeout: connectTimeout,
		},
	}
	b := c.Bootstrap
	var inMemory []*testutil.Server
	for _, s := range w.sites {
		server, err := s.reach()
		if err != nil {
			return c, err
		}
		s.truth.uri = server.URI
		b.Servers = append(b.Servers, server)
		if s.memory != nil {
			inMemory = append(inMemory, s.memory.server)
		}
	}
	b.Authorities = map[string]bootstrap.Authority{authority: {Servers: b.Servers}}
	if len(inMemory) > 0 {
		c.GRPC.KeepaliveTime = -1
		c.GRPC.DialOptions = []grpc.DialOption{testutil.InMemory(inMemory...)}
	}
	return c, nil
}

// moment is the time between two steps.
func (w *world) moment(ctx context.Context) error {
	return pause(ctx, time.Duration(w.rng.IntN(15))*time.Millisecond)
}

// step changes a subscription of the program or some resources of a server.
func (w *world) step() error {
	if w.rng.IntN(4) == 0 {
		return w.sites[w.rng.IntN(len(w.sites))].change(0.1)
	}
	return w.program.step(w.rng)
}

// pause lets time pass.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
