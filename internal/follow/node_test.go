package follow

import (
	"errors"
	"reflect"
	"testing"

	"github.com/xdswatch/xdswatch/internal/machine"
	"github.com/xdswatch/xdswatch/internal/wire"
)

func withAlt(name, alt string) string {
	l, a := xdstpOf(name), xdstpOf(alt)
	l.Directives = append(l.Directives, directive(a))
	return l.String()
}

// A value stays good until the new place has answered; trouble on the way is told once.
func TestRedirect(t *testing.T) {
	d := newDesk(t)
	tree := d.one(at("a/x"))
	d.say("a/x", d.redirect(at("b/y")))
	d.since()
	d.watched("a/x", "b/y")
	d.say("b/y", value("1"))
	d.say("b/y", value("2"))
	d.since("updated a/x 1 via b/y", "updated a/x 2 via b/y")
	d.say("a/x", d.redirect(at("c/z")))
	d.watched("a/x", "c/z")
	d.say("c/z", down())
	d.since("ambient a/x connection: down at c/z via b/y")
	d.say("c/z", absent())
	d.since("does-not-exist a/x removed via c/z")
	d.say("c/z", value("3"))
	d.say("c/z", ambient("c is down"))
	d.say("a/x", ambient("a is down"))
	d.say("c/z", well())
	d.say("a/x", well())
	d.since("updated a/x 3 via c/z", "ambient a/x connection: c is down at c/z via c/z", "ambient a/x connection: a is down via c/z", "ambient a/x via c/z")
	d.say("a/x", value("4"))
	d.since("updated a/x 4")
	d.watched("a/x")
	d.say("a/x", d.redirect(at("b/y")))
	tree.End()
	d.watched("a/x") // its own watch is the caller's
	if len(d.lent) == 0 || d.lent["a of b"] != 0 || d.lent["a of c"] != 0 {
		t.Errorf("left are %v", d.lent)
	}
}

// An absence that was told is not told again, whatever was absent.
//
// spec: DNE-6
func TestAbsenceAgain(t *testing.T) {
	d := newDesk(t)
	d.one(at("a//list") + "#entry=x")
	d.say("a//list", absent())
	d.since("does-not-exist a//list#entry=x removed")
	d.say("a//list", d.list("y=1"))
	d.say("a//list", absent())
	d.since()
	d.say("a//list", down())
	d.say("a//list", absent())
	d.since("failed a//list#entry=x connection: down", "does-not-exist a//list#entry=x removed")
}

// A redirect that comes to the same resource by another way is no news, but for the end of trouble on the old one.
//
// spec: REDIR-2 WATCH-4
func TestRedirectToTheSame(t *testing.T) {
	d := newDesk(t)
	d.one(at("a/x"))
	d.say("a/x", d.redirect(at("b/y")))
	d.say("b/y", value("1"))
	d.say("a/x", ambient("a is down"))
	d.since("updated a/x 1 via b/y", "ambient a/x connection: a is down via b/y")
	d.say("c/z", d.redirect(at("b/y")))
	d.say("a/x", d.redirect(at("c/z")))
	d.since("ambient a/x via b/y")
	d.watched("a/x", "b/y", "c/z")
	d.say("b/y", value("2"))
	d.since("updated a/x 2 via b/y")
}

// What is told under the name that was asked for is all that was heard at the place that serves it.
//
// spec: REDIR-2
func TestToldInFull(t *testing.T) {
	for _, news := range []machine.News{
		{Kind: machine.NoticeUpdated, Value: "v", Raw: []byte("v"), Attributes: &wire.Attributes{DoNotCache: true}},
		{Kind: machine.NoticeDoesNotExist, Reason: machine.ReasonTimeout, Instead: &machine.Instead{Count: 1}},
		{Kind: machine.NoticeFailed, Fault: &machine.Fault{Err: errors.New("bad")}},
	} {
		d := newDesk(t)
		d.one(at("a/x"))
		d.say("a/x", d.redirect(at("b/y")))
		n := machine.Notice{News: news}
		n.Stale, n.Server, n.Version = true, 3, "7"
		want := n
		want.Name, want.TypeURL, want.Authority = at("a/x"), typeURL, "a"
		d.say("b/y", n)
		if got := d.told[0].Notice; !reflect.DeepEqual(got, want) {
			t.Errorf("told is\n\t%+v\nwant\n\t%+v", got, want)
		}
	}
}

// What is told of an entry has the server of the list, with a value its version, and nothing that was sent beside the list.
//
// spec: COLL-4
func TestEntryToldInFull(t *testing.T) {
	d := newDesk(t)
	d.all(at("a//l"))
	list := d.list("i=bad", "j=1")
	list.Attributes, list.Stale, list.Server = &wire.Attributes{DoNotCache: true}, true, 3
	d.say("a//l", list)
	gone := absent()
	gone.Server = 3
	d.say("a//l", gone)
	d.since(`failed a//l#entry=i rejected: the inline entry "i": it is bad`, "updated a//l#entry=j 1", "synced a//l",
		"does-not-exist a//l#entry=i removed", "does-not-exist a//l#entry=j removed", "does-not-exist a//l removed")
	versions := []string{"", "l", "l", "", "", ""}
	for i, told := range d.told {
		if told.Server != 3 || told.Version != versions[i] || i < 3 && !told.Stale || told.Kind == machine.NoticeUpdated && told.Attributes != nil {
			t.Errorf("told is %+v", told.Notice)
		}
	}
	if f := d.told[0].Fault; f.Version != "l" {
		t.Errorf("the fault is %+v", f)
	}
}

// A value is told again if another server has sent it, or if what is sent beside it has changed.
//
// spec: WATCH-4
func TestSameValue(t *testing.T) {
	d := newDesk(t)
	d.one(at("a/x"))
	n := value("1")
	d.say("a/x", n)
	d.say("a/x", n)
	n.Server = 1
	d.say("a/x", n)
	n.Attributes = &wire.Attributes{DoNotCache: true}
	d.say("a/x", n)
	d.since("updated a/x 1", "updated a/x 1", "updated a/x 1")
}

// A value goes when its own place takes it away, and stays while another is silent about it.
func TestValueStays(t *testing.T) {
	d := newDesk(t)
	d.one(at("a/x"))
	d.say("a/x", value("1"))
	d.say("a/x", down())
	d.since("updated a/x 1", "failed a/x connection: down")
	d.say("a/x", value("2"))
	d.say("a/x", d.redirect(at("b/y")))
	d.say("a/x", ambient("a is down"))
	d.say("b/y", failed(machine.FaultTimeout, "late"))
	d.say("b/y", failed(machine.FaultStream, "cut"))
	d.say("a/x", d.redirect(at("nowhere/z")))
	d.since("updated a/x 2", "ambient a/x connection: a is down", "ambient a/x timeout: late at b/y", "ambient a/x stream: cut at b/y",
		`failed a/x config: the locator "nowhere/z" cannot be followed: no such authority via nowhere/z`)
}

// What is told to a place that was left is not heard.
func TestLeft(t *testing.T) {
	d := newDesk(t)
	d.one(at("a/x"))
	d.say("a/x", d.redirect(at("b/y")))
	left := d.watches(at("b/y"))[0].Owner.(engineSink)
	d.say("a/x", value("1"))
	n := value("2")
	if left.Tell(&n) {
		t.Error("a flush is wanted")
	}
	d.since("updated a/x 1")
}

// The alternative is no way round a ring, and is not used while a value stays; its own trouble is told before that of
// what it stands for.
//
// spec: ALT-1 REDIR-3
func TestAlternativeAndRedirect(t *testing.T) {
	d := newDesk(t)
	name := withAlt("a/x", "d/w")
	d.one(name)
	d.say("a/x", d.redirect(at("a/x")))
	d.since("failed " + short.Replace(name) + ` data: xds: the redirects go round in a ring: "a/x" to "a/x" via a/x`)
	d.say("b/y", value("1"))
	d.say("a/x", d.redirect(at("b/y")))
	d.say("c/z", failed(machine.FaultStream, "cut"))
	d.say("a/x", d.redirect(at("c/z")))
	d.since("updated "+short.Replace(name)+" 1 via b/y", "ambient "+short.Replace(name)+" stream: cut at c/z via b/y")
	d.watched("a/x", "c/z")
	d.say("c/z", absent())
	d.say("d/w", value("2"))
	d.say("c/z", failed(machine.FaultStream, "cut"))
	d.watched("a/x", "c/z", "d/w")
	d.heard = nil
	d.say("d/w", ambient("d is down"))
	d.say("d/w", well())
	d.since("ambient "+short.Replace(name)+" connection: d is down at d/w via d/w", "ambient "+short.Replace(name)+" stream: cut at c/z via d/w")
}

// A tree that is made after a value was told keeps that as its own, and knows nothing of its bytes.
//
// spec: ERR-2 REDIR-3
func TestHolds(t *testing.T) {
	d := newDesk(t)
	d.one(at("a/x")).Holds(0)
	d.say("a/x", d.redirect(at("b/y")))
	d.since()
	d.say("b/y", down())
	d.since("ambient a/x connection: down at b/y")
	d.say("a/x", value(""))
	d.since("updated a/x ")
	d.say("a/x", d.redirect(at("b/y")))
	d.say("b/y", absent())
	d.since("ambient a/x connection: down at b/y", "does-not-exist a/x removed via b/y")
}

// What is told of a tree that is over starts nothing, and leaves nothing lent.
func TestOver(t *testing.T) {
	d := newDesk(t)
	tree := d.one(at("a/x"))
	tree.End()
	tree.End()
	d.say("a/x", d.redirect(at("b/y")))
	d.watched("a/x")
	if d.lent["a of b"] != 0 {
		t.Errorf("left are %v", d.lent)
	}
	d.dead = true
	d.say("a/x", value("1"))
	d.since()
}

// The alternative is used while nothing is held and the first cannot be reached, and no longer.
func TestAlternative(t *testing.T) {
	d := newDesk(t)
	name := withAlt("a/x", "b/y")
	d.one(name)
	d.say("a/x", failed(machine.FaultTimeout, "late"))
	d.watched("a/x")
	d.say("a/x", down())
	d.watched("a/x", "b/y")
	d.since("failed " + short.Replace(name) + " timeout: late") // the alternative has not answered yet
	d.say("b/y", absent())
	d.since("failed " + short.Replace(name) + " connection: down also does-not-exist")
	d.say("b/y", value("1"))
	d.since("updated "+short.Replace(name)+" 1 via b/y", "ambient "+short.Replace(name)+" connection: down via b/y")
	d.say("a/x", value("2"))
	d.since("updated " + short.Replace(name) + " 2")
	d.watched("a/x")
	d.say("a/x", ambient("down"))
	d.watched("a/x")
}

// A value of the alternative stays, and the trouble with it, while another takes its place.
func TestAlternativeThatMoves(t *testing.T) {
	d := newDesk(t)
	name := withAlt("a/x", "b/y")
	d.one(name)
	d.say("a/x", down())
	d.say("b/y", value("1"))
	d.since("updated "+short.Replace(name)+" 1 via b/y", "ambient "+short.Replace(name)+" connection: down via b/y")
	d.say("b/y", d.redirect(at("c/z")))
	d.since()
	d.say("c/z", value("2"))
	d.since("updated "+short.Replace(name)+" 2 via c/z", "ambient "+short.Replace(name)+" connection: down via c/z")
}

// What a resource says is counted as its own, also an alternative in its locator; what the program
// says is not.
func TestWhoAsks(t *testing.T) {
	d := newDesk(t)
	d.say("a/x", down())
	d.one(withAlt("a/x", "b/y"))
	d.watched("a/x", "b/y")
	if len(d.lent) > 0 {
		t.Errorf("the program's own alternative is counted: %v", d.lent)
	}
	d = newDesk(t)
	d.say("b/y", down())
	d.say("a/x", d.redirect(withAlt("b/y", "c/z")))
	d.one(at("a/x"))
	d.watched("a/x", "b/y", "c/z")
	if d.lent["a of b"] != 1 || d.lent["a of c"] != 1 || len(d.lent) != 2 {
		t.Errorf("counted are %v", d.lent)
	}
	d = newDesk(t)
	d.most = 1
	d.say("b/1", down())
	d.say("b/2", down())
	d.say("b//l", d.list(">"+withAlt("b/1", "c/1"), ">"+withAlt("b/2", "c/2")))
	d.all(at("b//l"))
	d.watched("b//l", "b/1", "b/2", "c/1")
}

// An alternative is used again when that of a redirect, which took its place, has no value any more.
func TestAlternativeOfAlternative(t *testing.T) {
	d := newDesk(t)
	name := withAlt("a/x", "d/w")
	d.say("a/x", d.redirect(withAlt("b/y", "c/z")))
	d.say("b/y", down())
	d.say("c/z", d.redirect(at("e/v")))
	d.say("d/w", value("1"))
	d.say("e/v", value("2"))
	d.one(name)
	d.watched("a/x", "b/y", "c/z", "e/v")
	d.heard = nil
	d.say("c/z", absent())
	d.watched("a/x", "b/y", "c/z", "d/w")
	d.since("failed "+short.Replace(name)+" connection: down at b/y via b/y also does-not-exist",
		"updated "+short.Replace(name)+" 1 via d/w", "ambient "+short.Replace(name)+" connection: down at b/y via d/w")
}

// The alternative of a list that a redirect leads to is also that of its entries.
//
// spec: ALT-1, ENTRY-1
func TestAlternativeOfList(t *testing.T) {
	d := newDesk(t)
	d.say("a//l", d.redirect(withAlt("b//m", "c//n")))
	d.say("b//m", down())
	d.say("c//n", d.list("e=1"))
	d.one(at("a//l") + "#entry=e")
	d.since("updated a//l#entry=e 1 via c//n#entry=e", "ambient a//l#entry=e connection: down at b//m via c//n#entry=e")
}

// An entry that could not be used is over when the list is elsewhere.
func TestBadEntryOfListThatMoves(t *testing.T) {
	d := newDesk(t)
	d.one(at("a//l") + "#entry=e")
	d.say("b//m", d.list("e=1"))
	d.say("c//m", d.list("e=2"))
	d.say("a//l", d.redirect(at("b//m")))
	d.say("a//l", d.list("e=bad"))
	d.since("updated a//l#entry=e 1 via b//m#entry=e", `ambient a//l#entry=e rejected: the inline entry "e": it is bad via b//m#entry=e`)
	d.say("a//l", d.redirect(at("c//m")))
	d.since("ambient a//l#entry=e via b//m#entry=e", "updated a//l#entry=e 2 via c//m#entry=e")
	d.say("a//l", d.list("e=bad"))
	d.say("a//l", d.redirect(at("c//m")))
	d.since(`ambient a//l#entry=e rejected: the inline entry "e": it is bad via c//m#entry=e`, "ambient a//l#entry=e via c//m#entry=e")
}

// What is wrong beside a value is told with the version of the value, and with the version that was refused apart.
//
// spec: ERR-2 COLL-4
func TestTroubleHasVersionOfValue(t *testing.T) {
	d := newDesk(t)
	d.one(at("a//l") + "#entry=i")
	good, bad := d.list("i=1"), d.list("i=bad")
	good.Version, bad.Version = "v1", "v2"
	d.say("a//l", good)
	d.say("a//l", bad)
	d.say("a//l", ambient("a is down"))
	d.say("a//l", well())
	for i, told := range d.told {
		if told.Version != "v1" || i == 1 && told.Fault.Version != "v2" {
			t.Errorf("event %d: %+v, %+v", i, told.Notice, told.Fault)
		}
	}
	d.since("updated a//l#entry=i 1", `ambient a//l#entry=i rejected: the inline entry "i": it is bad`,
		"ambient a//l#entry=i connection: a is down", `ambient a//l#entry=i rejected: the inline entry "i": it is bad`)
}
