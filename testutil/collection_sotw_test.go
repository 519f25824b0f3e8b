package testutil

import (
	"slices"
	"testing"
)

func TestCollectionSotWFullState(t *testing.T) {
	ctx := testContext(t)
	s := StartCollectionServer(t)
	must(t, s.Set(named("a", "1"), named(clustersAt+"f/a", "1"), Wrapped(clustersAt+"f/b", "1", cluster("inner"))))
	p := newSotWPeer(t, ctx, s, clusterURL)
	p.ask("a", "none", clustersAt+"f/*")
	p.want("a", clustersAt+"f/a", "["+clustersAt+"f/b]")
	p.ask("a", "none", clustersAt+"f/*") // the ACK
	settle(t, ctx, s)
	must(t, s.Set(named("none", "1"), named("more", "1")))
	p.want("a", "none", clustersAt+"f/a", "["+clustersAt+"f/b]")
	s.Remove(clusterURL, clustersAt+"f/b")
	p.want("a", "none", clustersAt+"f/a")
	p.ask("a") // what is wanted shrinks, and nothing new is to be said
	settle(t, ctx, s)
	p.ask("a", "more")
	p.want("a", "more")
	p.ask("*", clustersAt+"f/a")
	p.want("a", "more", "none", clustersAt+"f/a")
	p.ask("*", clustersAt+"f/a")
	settle(t, ctx, s)
	if got, want := s.Subscribed(clusterURL), []string{"*", clustersAt + "f/a"}; !slices.Equal(got, want) {
		t.Errorf("subscribed are %q, want %q", got, want)
	}
	p.ask() // nothing is wanted, because names were sent before
	settle(t, ctx, s)
	if got := s.Subscribed(clusterURL); len(got) != 0 {
		t.Errorf("subscribed are %q, want none", got)
	}
	p.ask("absent")
	p.want()
}

func TestCollectionSotWPartial(t *testing.T) {
	ctx := testContext(t)
	s := StartCollectionServer(t)
	must(t, s.Set(assigned("a"), assigned("b"), assigned(endpointsAt+"f/a")))
	p := newSotWPeer(t, ctx, s, endpointsURL)
	p.ask("a", "none", endpointsAt+"f/*", endpointsAt+"empty/*")
	p.want("a", endpointsAt+"f/a")
	first := p.last
	p.ask("a", "none", endpointsAt+"f/*")
	must(t, s.Set(assigned("none"), assigned("b"), assigned(endpointsAt+"f/b")))
	p.want("none", endpointsAt+"f/b")
	second := p.last
	p.last = first
	p.ask("b") // stale
	p.last = second
	p.ask("a", "none", endpointsAt+"f/*", "b")
	p.want("b")
	p.ask("a")
	settle(t, ctx, s)
	s.Remove(endpointsURL, "a")      // cannot be said
	must(t, s.Set(assigned("none"))) // is not wanted
	p.ask("a", "b")
	p.want("b")
}

// The first request of a type asks for everything if it names nothing, until names come.
func TestCollectionSotWWildcard(t *testing.T) {
	ctx := testContext(t)
	s := StartCollectionServer(t)
	p := newSotWPeer(t, ctx, s, endpointsURL)
	p.ask()
	p.want()
	p.ask()
	must(t, s.Set(assigned("a"), assigned("b"), assigned(endpointsAt+"f/a")))
	p.want("a", "b")
	p.ask("b")
	p.want("b")
	p.ask("b")
	settle(t, ctx, s)
	must(t, s.Set(Wrapped("a", "2", assignment("a")), Wrapped("b", "2", assignment("b"))))
	p.want("b")
}
