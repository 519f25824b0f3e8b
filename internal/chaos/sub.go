package main

import (
	"fmt"

	"github.com/xdswatch/xdswatch/client"
)

// sub is a subscription of the program: a watch, a set or a collection. Guarded by the
// model's mutex.
type sub struct {
	model  *model
	id     int
	kind   int
	all    bool // everything of the type
	set    *client.Set
	told   map[string]*told // of each name that is subscribed to, or of each member
	synced bool
	over   bool
	stop   func()
}

// told is what the program knows of a resource.
type told struct {
	known   known
	rev     int   // of known value
	trouble error // the last ambient error; nil when it was cleared
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
func (s *sub) hear(evs ...client.Event) {
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

func (s *sub) hearLocked(ev client.Event) {
	m := s.model
	m.log.add("%v told %v %q %s %s %v", s, ev.Kind, ev.Name, ev.Version, ev.Reason, ev.Err)
	if ev.Name == "*" {
		s.everything(ev)
		return
	}
	t := s.told[ev.Name]
	if t == nil {
		if !s.all {
			return // it left the set while the handler was being called
		}
		t = &told{}
		s.told[ev.Name] = t
	}
	k := key{s.kind, ev.Name}
	switch ev.Kind {
	case client.KindUpdated:
		s.updated(t, k, m.kinds[s.kind].revision(ev.Value))
	case client.KindDoesNotExist:
		if m.alwaysThereLocked(k) {
			m.faultLocked("%v was told that %q does not exist (%v), and it does", s, ev.Name, ev.Reason)
		}
		*t = told{known: absent}
	case client.KindFailed:
		if t.known == value {
			m.faultLocked("%v lost the value of %q: %v", s, ev.Name, ev.Err)
		}
		*t = told{known: failed, trouble: ev.Err}
	case client.KindAmbientError:
		if ev.Err != nil && t.known != value {
			m.faultLocked("%v holds no value of %q and was told of an ambient error: %v", s, ev.Name, ev.Err)
		}
		t.trouble = ev.Err
	}
}

// updated judges a value: the server said it, and nothing newer was heard before.
func (s *sub) updated(t *told, k key, rev int) {
	f := s.model.facts[k]
	switch {
	case f == nil || !f.revs[rev]:
		s.model.faultLocked("%v was told revision %d of %q, which the server never said", s, rev, k.name)
	case rev < t.rev:
		s.model.faultLocked("%v was told revision %d of %q after %d", s, rev, k.name, t.rev)
	}
	*t = told{known: value, rev: rev} // trouble that goes on is told after it
}

func (s *sub) everything(ev client.Event) {
	switch ev.Kind {
	case client.KindSynced:
		s.synced = true
	case client.KindDoesNotExist:
		for k := range s.model.facts {
			if k.kind == s.kind && s.model.alwaysThereLocked(k) {
				s.model.faultLocked("%v was told that there is nothing, and %q is", s, k.name)
			}
		}
	}
}

// differencesLocked lists what the program does not know as the server says it. When calm,
// nothing may be left of past trouble either. Of what the server does not have, a failure
// may have been the last word: the server says nothing of it after a reconnect.
func (s *sub) differencesLocked(calm bool) (out []string) {
	add := func(format string, args ...any) {
		out = append(out, fmt.Sprintf("%v: ", s)+fmt.Sprintf(format, args...))
	}
	if s.all && !s.synced {
		add("not synced")
	}
	for k, f := range s.model.facts {
		if k.kind != s.kind {
			continue
		}
		t := s.told[k.name]
		switch {
		case t == nil && !(s.all && f.present): // it is none of its business
		case t == nil:
			add("%q is unknown, the server has revision %d", k.name, f.rev)
		case f.present && (t.known != value || t.rev != f.rev):
			add("%q is %v (revision %d), the server has revision %d", k.name, t.known, t.rev, f.rev)
		case !f.present && t.known == value:
			add("%q has revision %d, the server has none", k.name, t.rev)
		case f.present && calm && t.trouble != nil:
			add("%q is still in trouble: %v", k.name, t.trouble)
		}
	}
	return out
}

func (s *sub) String() string {
	what := "watch"
	switch {
	case s.all:
		what = "collection"
	case s.set != nil:
		what = "set"
	}
	return fmt.Sprintf("%s %d of %s", what, s.id, s.model.kinds[s.kind].label)
}
