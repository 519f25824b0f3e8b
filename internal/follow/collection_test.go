package follow

import (
	"testing"

	"github.com/xdswatch/xdswatch/internal/machine"
)

// A list is complete when something is known of each member, and says so again when it is back.
func TestList(t *testing.T) {
	d := newDesk(t)
	d.say("a//l", d.list("i=1", ">"+at("b/x"), "r>"+at("b/y")))
	c := d.all(at("a//l"))
	d.watched("a//l", "b/x", "b/y")
	d.say("b/y", value("2"))
	d.say("a//l", ambient("down"))
	d.since("updated a//l#entry=i 1", "updated a//l#entry=r 2 via b/y")
	d.say("b/x", absent())
	d.since("does-not-exist b/x removed", "synced a//l", "ambient a//l connection: down")
	d.say("a//l", d.list("i=1", ">"+at("b/x")))
	d.since("does-not-exist a//l#entry=r removed", "ambient a//l")
	d.watched("a//l", "b/x")
	d.say("a//l", absent())
	d.since("does-not-exist a//l#entry=i removed", "does-not-exist a//l removed")
	d.watched("a//l")
	d.say("a//l", d.list())
	d.since("synced a//l")
	d.say("a//l", d.redirect(at("b//m")))
	d.say("b//m", d.list("i=1", "own>"+at("c/z")))
	d.since("updated a//l#entry=i 1")
	if d.lent["b of c"] != 1 || d.lent["a of b"] != 1 {
		t.Errorf("counted are %v", d.lent)
	}
	c.End()
	d.watched("a//l")
	for pair, n := range d.lent {
		if n != 0 {
			t.Errorf("%s: left are %d", pair, n)
		}
	}
}

// An entry that cannot be used is told once, takes no good one away unless the server asks for
// that, and is told to be well again whatever else goes on.
func TestBadEntries(t *testing.T) {
	d := newDesk(t)
	d.all(at("a//l"))
	d.say("b/x", value("1"))
	d.say("a//l", d.list("i=1", ">"+at("b/x")))
	d.since("updated a//l#entry=i 1", "updated b/x 1", "synced a//l")
	bad := d.list("i=bad", ">"+at("b/x"), ">"+at("b/x"))
	d.say("a//l", bad)
	d.say("a//l", d.list("i=bad", ">"+at("b/x"), ">"+at("b/x"), ">"+at("b/x")))
	d.since(`ambient a//l#entry=i rejected: the inline entry "i": it is bad`, "ambient b/x rejected: the collection lists it more than once")
	d.say("b/x", ambient("down"))
	d.say("b/x", well())
	d.since("ambient b/x connection: down", "ambient b/x rejected: the collection lists it more than once")
	d.say("b/x", value("2"))
	d.since("updated b/x 2", "ambient b/x rejected: the collection lists it more than once")
	d.say("b/x", ambient("down"))
	d.say("a//l", d.list("i=1", ">"+at("b/x")))
	d.since("ambient b/x connection: down", "ambient a//l#entry=i")
	d.say("b/x", well())
	d.since("ambient b/x")
	d.strict = true
	d.say("a//l", bad)
	d.say("a//l", d.list("i=bad", ">"+at("b/x"), ">"+at("b/x"), ">"+at("b/x")))
	d.since(`failed a//l#entry=i rejected: the inline entry "i": it is bad`, "failed b/x rejected: the collection lists it more than once")
	d.watched("a//l")
	d.say("a//l", d.list("i=1", ">"+at("b/x")))
	d.since("updated a//l#entry=i 1", "updated b/x 2")
}

// A member that cannot be followed is told once, and sought again with each directory.
func TestMemberThatCannotBeFollowed(t *testing.T) {
	d := newDesk(t)
	d.most = 1
	d.say("a//l", d.list(">"+at("b/1"), ">"+at("b/2"), ">"+at("nowhere/x")))
	d.all(at("a//l"))
	d.say("b/1", value("1"))
	d.since("failed b/2 data: the member cannot be followed: too much is asked",
		"failed nowhere/x config: the member cannot be followed: no such authority", "updated b/1 1", "synced a//l")
	d.say("a//l", d.list(">"+at("b/2"), ">"+at("nowhere/x")))
	d.since("does-not-exist b/1 removed")
	d.say("a//l", d.list(">"+at("b/2"), ">"+at("nowhere/x"), "i=1"))
	d.watched("a//l", "b/2")
	d.say("b/2", value("2"))
	d.since("updated a//l#entry=i 1", "updated b/2 2")
}

// A name whose locator leads to an inline entry of the list is watched no more once the list has that entry.
//
// spec: COLL-3, COLL-4
func TestMemberBecomesInline(t *testing.T) {
	d := newDesk(t)
	d.say("a//l", d.list(">"+at("a//l")+"#entry=i"))
	d.all(at("a//l"))
	d.since("does-not-exist a//l#entry=i not-found", "synced a//l")
	d.watched("a//l", "a//l")
	d.say("a//l", d.list("i=1"))
	d.watched("a//l")
	d.say("a//l", d.list("i=2"))
	d.since("updated a//l#entry=i 1", "updated a//l#entry=i 2")
}

// What a server says of an entry that was held before it spoke is told, even if it is the same.
func TestStaleEntry(t *testing.T) {
	d := newDesk(t)
	stale := d.list("e=1")
	stale.Stale = true
	d.say("a//l", stale)
	d.one(at("a//l") + "#entry=e")
	d.all(at("a//l"))
	d.since("updated a//l#entry=e 1", "updated a//l#entry=e 1", "synced a//l")
	d.say("a//l", d.list("e=1"))
	if len(d.heard) != 3 {
		t.Errorf("heard %q", d.heard)
	}
}

// Of a wildcard the tree takes what is elsewhere, and what waits for that.
func TestMembers(t *testing.T) {
	d := newDesk(t)
	c := New(d, Asked{TypeURL: typeURL, Name: "*"}, &machine.Watch{Name: "*", Wildcard: true}, d)
	take := func(n machine.Notice, name string, want bool) {
		t.Helper()
		n.Name, n.TypeURL = name, typeURL
		d.flushed(func() bool {
			taken, wantsFlush := c.Take(&n)
			if taken != want {
				t.Errorf("%s is taken: %v", name, taken)
			}
			return wantsFlush
		})
		d.drain()
	}
	take(value("1"), at("a/1"), false)
	take(d.redirect(at("b/y")), at("a/x"), true)
	d.watched("b/y")
	take(ambient("down"), "*", false)
	take(machine.Notice{News: machine.News{Kind: machine.NoticeSynced}}, "*", true)
	take(ambient("down"), "*", true)
	take(ambient("down"), at("a/1"), false)
	take(value("2"), at("a/1"), false)
	d.since()
	d.say("b/y", value("2"))
	d.since("updated a/x 2 via b/y", "synced *", "ambient * connection: down")
	take(value("3"), at("a/x"), true)
	take(value("4"), at("a/x"), false)
	d.since("updated a/x 3")
	d.watched()
}

// What is told of a wildcard takes the place of what was told before, also of what still waits for members.
func TestMembersOfLostWildcard(t *testing.T) {
	d := newDesk(t)
	c := New(d, Asked{TypeURL: typeURL, Name: "*"}, &machine.Watch{Name: "*", Wildcard: true}, d)
	take := func(n machine.Notice, name string) {
		n.Name, n.TypeURL = name, typeURL
		c.Take(&n)
		d.drain()
	}
	synced := machine.Notice{News: machine.News{Kind: machine.NoticeSynced}}
	take(d.redirect(at("b/x")), at("a/x"))
	take(synced, "*")
	take(ambient("down"), "*")
	d.say("b/x", value("1"))
	d.since("updated a/x 1 via b/x", "synced *", "ambient * connection: down")
	take(well(), "*")
	take(d.redirect(at("b/y")), at("a/y"))
	take(synced, "*")
	d.say("b/y", value("2"))
	d.since("updated a/y 2 via b/y", "synced *")
	take(d.redirect(at("b/z")), at("a/z"))
	take(synced, "*")
	take(absent(), "*")
	d.say("b/z", value("3"))
	d.since("updated a/z 3 via b/z")
}
