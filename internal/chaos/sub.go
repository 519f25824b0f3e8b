package chaos

import (
	"fmt"
	"strings"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/xdstp"
)

// sub is a subscription of the program. What handlers look at is guarded by the model's mutex.
type sub struct {
	model   *model
	id      int
	form    form
	kind    int
	all     string // of a collection: "*" or a glob
	on      interface{ Stop() }
	set     *client.Set      // the same, if it is a set
	told    map[string]*told // of each name that is subscribed to, or of each member
	synced  bool
	trouble error // of a collection, as told last
	over    bool
}

// form is how the program subscribes.
type form uint8

const (
	watch form = iota
	set
	collection
)

func (f form) String() string { return [...]string{"watch", "set", "collection"}[f] }

func newSub(m *model, id int, f form, kind int, names []string) *sub {
	s := &sub{model: m, id: id, form: f, kind: kind, told: map[string]*told{}}
	if f == collection {
		s.all = names[0]
		return s
	}
	for _, n := range names {
		s.told[n] = &told{}
	}
	return s
}

// told is what a subscription was told of a resource.
type told struct {
	holding
	newest [servers]int // revision that was ever told, by server
}

// holding is what is known of a resource: by a subscription, by the client, or by the model.
type holding struct {
	known   known
	rev     int   // of a value
	stale   bool  // it is of the store, and no server has said it since
	trouble error // the last ambient error, or why it failed; nil when it was cleared
}

func (h holding) String() string {
	text := h.known.String()
	if h.known == value {
		text = fmt.Sprintf("revision %d", h.rev)
	}
	if h.stale {
		text += ", stale"
	}
	return text
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
		s.updated(t, k, ev)
	case client.EventDoesNotExist:
		if m.missed(ev.Server, k) {
			m.faultLocked("%v was told that %q does not exist (%v), and %s has it", s, ev.Name, ev.Reason, ev.Server)
		}
		t.holding = holding{known: absent}
	case client.EventFailed:
		if t.known == value {
			m.faultLocked("%v lost the value of %q: %v", s, ev.Name, ev.Err)
		}
		t.holding = holding{known: failed, trouble: ev.Err}
	case client.EventAmbientError:
		if t.known != value {
			m.faultLocked("%v holds no value of %q and was told of an ambient error: %v", s, ev.Name, ev.Err)
		}
		t.trouble = ev.Err
	case client.EventRecovered:
		t.trouble = nil
	}
}

// updated judges a value: the server said it, and nothing newer of its was heard before.
func (s *sub) updated(t *told, k key, ev client.Event[any]) {
	m := s.model
	rev := m.kinds[k.kind].revision(ev.Value)
	if !m.truthful(ev.Server, k, rev) {
		m.faultLocked("%v was told revision %d of %q, which the server %s never said", s, rev, k.name, ev.Server)
		return
	}
	newest := &t.newest[m.sayer(rev)]
	if rev < *newest {
		m.faultLocked("%v was told revision %d of %q after %d", s, rev, k.name, *newest)
	}
	*newest = rev
	to := holding{known: value, rev: rev, stale: ev.Stale} // trouble that goes on is told after it
	if t.holding == to {
		m.faultLocked("%v was told revision %d of %q twice", s, rev, k.name)
	}
	t.holding = to
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

func (s *sub) String() string {
	return fmt.Sprintf("%v %d of %s", s.form, s.id, s.model.kinds[s.kind].label)
}
