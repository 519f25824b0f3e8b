package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/testutil"
)

// eventPatience is how long one event may take.
const eventPatience = 15 * time.Second

// story plays the server's operator and the client's user.
type story struct {
	server  *testutil.ManagementServer
	client  *client.Client
	out     io.Writer
	notes   *notes
	world   world
	version int
	lost    []note // what was lost in this chapter
}

type chapter struct {
	title string
	tell  func(*story, context.Context) error
}

func chapters() []chapter {
	return []chapter{
		{"a listener is followed to its routes, cluster and endpoints", (*story).followChain},
		{"a change of the endpoints arrives", (*story).changeEndpoints},
		{"the routes lead to another cluster, and the watches follow", (*story).switchCluster},
		{"an invalid cluster is refused (NACK), the good one is kept", (*story).refuseCluster},
		{"the repaired cluster is taken, the trouble is over", (*story).repairCluster},
		{"a resource that does not exist is told so", (*story).missEndpoints},
		{"the server is down: everything held stays", (*story).stopServer},
		{"the server is back: the change made meanwhile arrives", (*story).restartServer},
	}
}

func newStory(server *testutil.ManagementServer, c *client.Client, out io.Writer) *story {
	return &story{
		server: server, client: c, out: out,
		world: world{cluster: "blue", timeout: time.Second, hosts: map[string]string{
			"blue": "10.0.0.1", "green": "10.0.0.2",
		}},
	}
}

// tell tells the chapters in order and ends with a list of what was seen. After a chapter
// that fails the others make no sense.
func (s *story) tell(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.notes = newNotes(ctx)
	start := time.Now()
	var summary strings.Builder
	var failed error
	for _, c := range chapters() {
		mark := "-"
		if failed == nil {
			fmt.Fprintf(s.out, "\n%s\n", c.title)
			mark = "✓"
			s.lost = nil
			if err := c.tell(s, ctx); err != nil {
				failed = fmt.Errorf("%s: %w", c.title, err)
				mark = "✗"
			}
		}
		fmt.Fprintf(&summary, "  %s %s\n", mark, c.title)
	}
	fmt.Fprintf(s.out, "\nSeen in %.1f s:\n%s", time.Since(start).Seconds(), summary.String())
	return failed
}

// set changes the world and gives it to the server, under a new version.
func (s *story) set(change func(*world)) error {
	s.world.hosts = maps.Clone(s.world.hosts)
	change(&s.world)
	resources, err := s.world.resources()
	if err != nil {
		return err
	}
	s.version++
	return s.server.Set(strconv.Itoa(s.version), resources...)
}

// await prints notes as they come until one is as wanted; what names it.
func (s *story) await(ctx context.Context, what string, wanted func(note) bool) error {
	timeout := time.NewTimer(eventPatience)
	defer timeout.Stop()
	for {
		select {
		case n := <-s.notes.ch:
			s.say("%v", n)
			if n.lost() {
				s.lost = append(s.lost, n)
			}
			if wanted(n) {
				return nil
			}
		case <-timeout.C:
			return fmt.Errorf("did not come in %v: %s", eventPatience, what)
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w", what, context.Cause(ctx))
		}
	}
}

// awaitValue waits for a value that says text.
func (s *story) awaitValue(ctx context.Context, api, name, text string) error {
	return s.await(ctx, name+" with "+text, func(n note) bool {
		return n.api == api && n.name == name && n.kind == client.EventUpdated && strings.Contains(n.text, text)
	})
}

// keptAll errs if something was lost in this chapter.
func (s *story) keptAll() error {
	var errs []error
	for _, n := range s.lost {
		errs = append(errs, fmt.Errorf("lost: %v", n))
	}
	return errors.Join(errs...)
}

func (s *story) say(format string, args ...any) { fmt.Fprintf(s.out, "  "+format+"\n", args...) }
