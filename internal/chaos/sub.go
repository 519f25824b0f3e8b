package main

import (
	"fmt"
	"strings"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/xdstp"
)

// sub is a subscription of the program: a watch, a set or a collection. Guarded by the
// model's mutex.
type sub struct {
	model   *model
	id      int
	kind    int
	all     string // what of the type is watched as a whole: "*" or a glob; "" if nothing is
	set     *client.Set
	told    map[string]*told // of each name that is subscribed to, or of each member
	synced  bool
	trouble error // of what is watched as a whole, as told last
	over    bool
	stop    func()
}

// told is what the program knows of a resource.
type told struct {
	known   known
	rev     int            // of known value
	from    *truth         // whose that is
	newest  map[*truth]int // revision that was ever told, by server
	trouble error          // the last ambient error, or why it failed; nil when it was cleared
}

// known is what was last told.
type known uint8

const (
	nothing known = iota
	value
	absent
	failed
)

func (k known) String() string {
	return [...]string{"nothing", "a value", "an absence", "a failure"}[k]
}

// hear takes events from the client.
func (s *sub) hear(evs ...client.Event[any]) {
	s.model.mu.Lock()
	defer s.model.mu.Unlock()
	if s.over {
		return // it was stopped while the handler was being called
	}
	for _, ev := range evs {
		s.hearLocked(ev)
	}
	s.model.wakeLocked()
}

func (s *sub) hearLocked(ev client.Event[any]) {
	m := s.model
	m.log.add("%v told %v %q %s %s %v of %s", s, ev.Kind, ev.Name, ev.Version, ev.Reason, ev.Err, ev.Server)
	if s.all != "" && ev.Name == s.all {
		s.everything(ev)
		return
	}
	k := key{s.kind, ev.Name}
	t := s.told[ev.Name]
	if t == nil {
		if !s.concerns(k) {
			return // it left the set while the handler was being called, or is none of "*"
		}
		t = &told{}
		s.told[ev.Name] = t
	}
	switch ev.Kind {
	case client.EventUpdated:
		s.updated(t, k, ev.Server, m.kinds[s.kind].revision(ev.Value))
	case client.EventDoesNotExist:
		if m.missed(ev.Server, k) {
			m.faultLocked("%v was told that %q does not exist (%v), and %s has it", s, ev.Name, ev.Reason, ev.Server)
		}
		t.become(absent, nil)
	case client.EventFailed:
		if t.known == value {
			m.faultLocked("%v lost the value of %q: %v", s, ev.Name, ev.Err)
		}
		t.become(failed, ev.Err)
	case client.EventAmbientError:
		if t.known != value {
			m.faultLocked("%v holds no value of %q and was told of an ambient error: %v", s, ev.Name, ev.Err)
		}
		t.trouble = ev.Err
	case client.EventRecovered:
		t.trouble = nil
	}
}

// become is news of another kind than a value.
func (t *told) become(k known, trouble error) {
	t.known, t.rev, t.from, t.trouble = k, 0, nil, trouble
}

// updated judges a value: the server said it, and nothing newer of its was heard before.
func (s *sub) updated(t *told, k key, uri string, rev int) {
	m := s.model
	if !m.truthful(uri, k, rev) {
		m.faultLocked("%v was told revision %d of %q, which the server %s never said", s, rev, k.name, uri)
		return
	}
	from := m.source(uri)
	if rev < t.newest[from] {
		m.faultLocked("%v was told revision %d of %q after %d", s, rev, k.name, t.newest[from])
	}
	if t.newest == nil {
		t.newest = map[*truth]int{}
	}
	t.newest[from] = rev
	t.known, t.rev, t.from, t.trouble = value, rev, from, nil // trouble that goes on is told after it
}

func (s *sub) everything(ev client.Event[any]) {
	switch ev.Kind {
	case client.EventSynced:
		s.synced, s.trouble = true, nil // trouble that goes on is told after it
	case client.EventDoesNotExist:
		for k := range s.model.truths[0].facts {
			if s.concerns(k) && s.model.missed(ev.Server, k) {
				s.model.faultLocked("%v was told that there is nothing, and %s has %q", s, ev.Server, k.name)
			}
		}
	case client.EventFailed, client.EventAmbientError:
		s.trouble = ev.Err
	case client.EventRecovered:
		s.trouble = nil
	case client.EventUpdated:
		s.model.faultLocked("%v was told a value of %q", s, ev.Name)
	}
}

// concerns says whether a resource is of those that are watched as a whole. Watches of "*"
// also hear of structured names that others watch, for as long as those do.
func (s *sub) concerns(k key) bool {
	switch {
	case k.kind != s.kind, s.all == "":
		return false
	case s.all == "*":
		return !xdstp.IsXDSTP(k.name)
	}
	return strings.HasPrefix(k.name, strings.TrimSuffix(s.all, "*"))
}

// differencesLocked lists what the program does not know as the active server says it. When
// calm, nothing may be left of past trouble either. Of what the server does not have, a
// failure may have been the last word: the server says nothing of it after a reconnect.
func (s *sub) differencesLocked(calm bool) (out []string) {
	if s.model.active == nobody {
		return s.untroubledLocked()
	}
	add := func(format string, args ...any) {
		out = append(out, fmt.Sprintf("%v: ", s)+fmt.Sprintf(format, args...))
	}
	if s.all != "" && !s.synced {
		add("not synced")
	}
	if calm && s.synced && s.trouble != nil {
		add("still in trouble: %v", s.trouble)
	}
	for k, f := range s.model.truths[s.model.active].facts {
		t := s.told[k.name]
		switch {
		case k.kind != s.kind, t == nil && !(s.concerns(k) && f.present): // it is none of its business
		case t == nil:
			add("%q is unknown, the server has revision %d", k.name, f.rev)
		case f.present && (t.known != value || t.rev != f.rev):
			add("%q is %v (revision %d), the server has revision %d", k.name, t.known, t.rev, f.rev)
		case !f.present && t.known == value && !s.tornLocked(t):
			add("%q has revision %d, the server has none", k.name, t.rev)
		case f.present && calm && t.trouble != nil:
			add("%q is still in trouble: %v", k.name, t.trouble)
		}
	}
	return out
}

// tornLocked says that a value may be held of which the active server does not say that it
// has none, since the client subscribed there anew after it had used another server (gRFC A71
// accepts such mixtures): in state of the world it cannot, of partial types.
func (s *sub) tornLocked(t *told) bool {
	m := s.model
	return !m.delta && t.from != m.truths[m.active] && !m.kinds[s.kind].typ.FullState()
}

// untroubledLocked lists what was not told that no server can be reached.
func (s *sub) untroubledLocked() (out []string) {
	if s.all != "" {
		if s.trouble == nil {
			out = append(out, fmt.Sprintf("%v: nobody said that no server can be reached", s))
		}
		return out
	}
	for name, t := range s.told {
		if t.known == nothing || t.known == value && t.trouble == nil {
			out = append(out, fmt.Sprintf("%v: of %q nobody said that no server can be reached", s, name))
		}
	}
	return out
}

func (s *sub) String() string {
	what := "watch"
	switch {
	case s.all != "":
		what = "collection"
	case s.set != nil:
		what = "set"
	}
	return fmt.Sprintf("%s %d of %s", what, s.id, s.model.kinds[s.kind].label)
}
