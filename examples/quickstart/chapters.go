package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/resource/eds"
	"github.com/xdswatch/xdswatch/testutil"
	"github.com/xdswatch/xdswatch/watcher"
)

func (s *story) followChain(ctx context.Context) error {
	if err := s.set(func(*world) {}); err != nil {
		return err
	}
	follow(ctx, s.client, s.notes, "edge")
	return s.awaitValue(ctx, "eds", "blue-endpoints", "10.0.0.1:8080")
}

func (s *story) changeEndpoints(ctx context.Context) error {
	if err := s.set(func(w *world) { w.hosts["blue"] = "10.0.0.11" }); err != nil {
		return err
	}
	return s.awaitValue(ctx, "eds", "blue-endpoints", "10.0.0.11:8080")
}

func (s *story) switchCluster(ctx context.Context) error {
	if err := s.set(func(w *world) { w.cluster = "green" }); err != nil {
		return err
	}
	return s.awaitValue(ctx, "eds", "green-endpoints", "10.0.0.2:8080")
}

// refuseCluster sends a cluster whose connect_timeout is negative, which the validation
// rules of its proto forbid.
func (s *story) refuseCluster(ctx context.Context) error {
	if err := s.set(func(w *world) { w.timeout = -time.Second }); err != nil {
		return err
	}
	err := s.await(ctx, "an ambient error of the cluster", func(n note) bool {
		re, ok := errors.AsType[*client.ResourceError](n.err)
		return ok && n.name == "green" && n.kind == client.EventAmbientError && re.Kind == client.ErrorRejected
	})
	if err != nil {
		return err
	}
	waiting, cancel := context.WithTimeout(ctx, eventPatience)
	defer cancel()
	if err := s.server.Await(waiting, func(c testutil.Counters) bool { return c.NACKs > 0 }); err != nil {
		return err
	}
	s.say("the server counts a NACK")
	return s.checkCluster(ctx, time.Second)
}

func (s *story) repairCluster(ctx context.Context) error {
	if err := s.set(func(w *world) { w.timeout = 3 * time.Second }); err != nil {
		return err
	}
	if err := s.awaitValue(ctx, "cds", "green", "connect timeout 3s"); err != nil {
		return err
	}
	for _, r := range s.client.Dump() {
		if r.Err != nil {
			return fmt.Errorf("still in trouble: %w", r.Err)
		}
	}
	return s.checkCluster(ctx, 3*time.Second)
}

// checkCluster asks for the cluster; the client holds it, so no server is needed.
func (s *story) checkCluster(ctx context.Context, want time.Duration) error {
	held, err := watcher.Get(ctx, s.client, cds.Type, "green")
	if err != nil {
		return err
	}
	got := held.GetConnectTimeout().AsDuration()
	if got != want {
		return fmt.Errorf("the cluster that is held has connect timeout %v, want %v", got, want)
	}
	s.say("held: connect timeout %v", got)
	return nil
}

func (s *story) missEndpoints(ctx context.Context) error {
	asked := time.Now()
	_, err := watcher.Get(ctx, s.client, eds.Type, "red-endpoints")
	if !errors.Is(err, client.ErrDoesNotExist) {
		return fmt.Errorf("red-endpoints: got %v, want %w", err, client.ErrDoesNotExist)
	}
	s.say("after %.1f s: %v", time.Since(asked).Seconds(), err)
	return nil
}

func (s *story) stopServer(ctx context.Context) error {
	s.server.Stop()
	s.say("the server is stopped")
	troubled := map[string]bool{}
	err := s.await(ctx, "an ambient error of each resource", func(n note) bool {
		if n.kind == client.EventAmbientError {
			troubled[n.api] = true
		}
		return len(troubled) == 4
	})
	if err != nil {
		return err
	}
	if err := s.checkCluster(ctx, 3*time.Second); err != nil {
		return err
	}
	return s.keptAll()
}

func (s *story) restartServer(ctx context.Context) error {
	// The server is still down; it will start with this.
	if err := s.set(func(w *world) { w.hosts["green"] = "10.0.0.22" }); err != nil {
		return err
	}
	if err := s.server.Restart(true); err != nil {
		return err
	}
	s.say("the server is started on the same port")
	if err := s.awaitValue(ctx, "eds", "green-endpoints", "10.0.0.22:8080"); err != nil {
		return err
	}
	return s.keptAll()
}
