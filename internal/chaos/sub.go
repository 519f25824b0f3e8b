package chaos

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/xdswatch/xdswatch/client"
)

// sub is a subscription of the program.
type sub struct {
	*world
	id      int
	form    form
	kind    int
	all     string // of a collection: "*" or a glob
	probe   bool   // see program.probe
	on      interface{ Stop() }
	told    map[string]*holding // of each name that is subscribed to, all among them, and of each member that there may be
	newest  map[*fact]int       // revision that was ever told
	stopped *[sources]int       // the world's calls when Stop had returned; nil before
}

// form is how the program subscribes.
type form string

const (
	watch      form = "watch"
	set        form = "set"
	collection form = "collection"
)

func newSub(w *world, id int, f form, kind int, asked []string) *sub {
	s := &sub{world: w, id: id, form: f, kind: kind, told: map[string]*holding{}, newest: map[*fact]int{}}
	for _, n := range asked {
		s.told[n] = &holding{}
	}
	if f == collection {
		s.all = asked[0]
		for n := range names {
			member := kinds[kind].member(n)
			if s.all == "*" {
				member = kinds[kind].name(n)
			}
			s.told[member] = &holding{}
		}
	}
	return s
}

// asks says whether the subscription is to a name itself, and not to what it is a member of.
func (s *sub) asks(name string) bool { return s.all == "" || s.all == name }

// asked are the names that it is to.
func (s *sub) asked() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(s.told)), func(name string) bool { return !s.asks(name) })
}

// holding is what is known of a resource: by a subscription, by the client, or by the world. A
// collection that is complete has a value.
type holding struct {
	kind    client.EventKind // updated, does-not-exist, failed, or 0 for nothing
	rev     int              // of a resource's value
	stale   bool             // it is of the store, and no server has said it since
	trouble error            // the last ambient error, or why it failed; nil when it was cleared
}

// has says that there is a value.
func (h holding) has() bool { return h.kind == client.EventUpdated }

func (h holding) String() string {
	return fmt.Sprintf("%v (revision %d, stale: %v)", h.kind, h.rev, h.stale)
}

// slowness is how long the handlers of some subscriptions take, so that events wait when others are stopped.
const slowness = time.Millisecond

// hear takes events from the client, all of one source; a batch may have none.
func (s *sub) hear(evs ...client.Event[any]) {
	if len(evs) == 0 {
		return
	}
	if s.id%3 == 0 {
		time.Sleep(slowness)
	}
	for _, ev := range evs {
		s.log.Printf("%v told %v %q %s %s %v of %s", s, ev.Kind, ev.Name, ev.Version, ev.Reason, ev.Err, ev.Server)
	}
	s.later(func() { s.judge(evs) })
}

// judge takes the events of one call of a handler.
func (s *sub) judge(evs []client.Event[any]) {
	from := sourceOf(evs[0].Name)
	s.calls[from]++
	if s.stopped != nil {
		if s.calls[from] > s.stopped[from]+1 { // the first may have been running, and no other beside it
			s.fault("%v was told of %q after it was stopped", s, evs[0].Name)
		}
		return
	}
	for _, ev := range evs {
		switch t := s.told[ev.Name]; {
		case t != nil:
			s.take(t, ev)
		case s.form == watch:
			s.fault("%v was told of %q", s, ev.Name)
		case ev.Kind == client.EventUpdated: // of what left the set while the handler was being called, or is none of "*"
			s.updated(&holding{}, ev)
		}
	}
}

// take takes what is told of a resource, or of a collection as a whole, and sees that it may be.
func (s *sub) take(t *holding, ev client.Event[any]) {
	switch ev.Kind {
	case client.EventUpdated:
		s.updated(t, ev)
	case client.EventSynced:
		*t = holding{kind: client.EventUpdated} // trouble that goes on is told after it
	case client.EventDoesNotExist:
		for name := range s.told {
			if (name == ev.Name || ev.Name == s.all) && s.lies(ev.Server, name, holding{kind: ev.Kind}) {
				s.fault("%v was told that %q does not exist (%v), and %s has %q", s, ev.Name, ev.Reason, ev.Server, name)
			}
		}
		if ev.Name != s.all { // which is complete without members too
			*t = holding{kind: ev.Kind}
		}
	case client.EventFailed:
		if t.has() {
			s.fault("%v lost the value of %q: %v", s, ev.Name, ev.Err)
		}
		*t = holding{kind: ev.Kind, trouble: ev.Err}
	case client.EventAmbientError:
		if !t.has() {
			s.fault("%v holds no value of %q and was told of an ambient error: %v", s, ev.Name, ev.Err)
		}
		t.trouble = ev.Err
	case client.EventRecovered:
		if t.trouble == nil {
			s.fault("%v was told that %q has recovered, and nothing was wrong", s, ev.Name)
		}
		t.trouble = nil
	}
}

// updated judges a value: the server said it, and nothing newer of its was heard before.
func (s *sub) updated(t *holding, ev client.Event[any]) {
	to := holding{kind: ev.Kind, rev: kinds[s.kind].revision(ev.Value), stale: ev.Stale} // trouble that goes on is told after it
	if s.lies(ev.Server, ev.Name, to) {
		s.fault("%v was told %v of %q, which the server %s never said", s, to, ev.Name, ev.Server)
		return
	}
	f := s.said[to.rev]
	if to.rev < s.newest[f] {
		s.fault("%v was told %v of %q after %d", s, to, ev.Name, s.newest[f])
	}
	s.newest[f] = to.rev
	if *t == to {
		s.fault("%v was told %v of %q twice", s, to, ev.Name)
	}
	*t = to
}

func (s *sub) String() string { return fmt.Sprintf("%v %d of %s", s.form, s.id, kinds[s.kind].label) }
