package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/testutil"
	"github.com/xdswatch/xdswatch/watcher"
)

// story is what happens to the servers.
type story struct {
	ctx        context.Context
	out        io.Writer
	east, west *testutil.CollectionServer
}

// events are what the watch of one cluster hears.
type events chan watcher.Event[*clusterv3.Cluster]

func (s *story) tell(c *client.Client) error {
	east, errEast := s.watch(c, "east")
	west, errWest := s.watch(c, "west")
	if err := errors.Join(errEast, errWest); err != nil {
		return err
	}
	for _, step := range []struct {
		title string
		do    func() error
		heard events // by whom
	}{
		{"east has a cluster", func() error { return serve(s.east, "east", "1") }, east},
		{"west has a cluster", func() error { return serve(s.west, "west", "1") }, west},
		{"west dies", func() error { s.west.Stop(); return nil }, west},
		{"east changes", func() error { return serve(s.east, "east", "2") }, east},
		{"west is back", s.west.Restart, west},
	} {
		if err := step.do(); err != nil {
			return err
		}
		select {
		case ev := <-step.heard:
			fmt.Fprintf(s.out, "%s: %s hears %v\n", step.title, ev.Authority, text(ev))
		case <-s.ctx.Done():
			return fmt.Errorf("%s: nothing was heard of it: %w", step.title, s.ctx.Err())
		}
	}
	if len(east) > 0 {
		return fmt.Errorf("east hears more: %v", text(<-east))
	}
	return nil
}

func (s *story) watch(c *client.Client, authority string) (events, error) {
	heard := make(events, 16)
	_, err := watcher.Watch(s.ctx, c, cds.Type, name(authority), func(ev watcher.Event[*clusterv3.Cluster]) { heard <- ev })
	return heard, err
}

// text says what an event means.
func text(ev watcher.Event[*clusterv3.Cluster]) string {
	var re *client.ResourceError
	switch {
	case errors.As(ev.Err, &re):
		return fmt.Sprintf("%v (%s)", ev.Kind, re.Kind)
	case ev.Kind == client.EventRecovered:
		return ev.Kind.String()
	}
	return fmt.Sprintf("%v to %q", ev.Kind, ev.Value.GetAltStatName())
}

func name(authority string) string {
	return "xdstp://" + authority + "/envoy.config.cluster.v3.Cluster/backend"
}

// serve serves the cluster of an authority from now on.
func serve(server *testutil.CollectionServer, authority, version string) error {
	cluster := &clusterv3.Cluster{Name: name(authority), AltStatName: version}
	return server.Set(testutil.Wrapped(name(authority), version, cluster))
}
