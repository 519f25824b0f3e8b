package lives

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/xdswatch/xdswatch/client"
)

// state is what a watch was told last of one resource.
type state struct {
	kind   client.EventKind // updated, does not exist or failed
	text   string
	reason client.Reason
	err    error // ambient trouble, or why it failed
}

func (s state) String() string {
	switch s.kind {
	case client.EventUpdated:
		if s.err != nil {
			return fmt.Sprintf("%q, but %s", s.text, brief(s.err))
		}
		return fmt.Sprintf("%q", s.text)
	case client.EventDoesNotExist:
		return fmt.Sprintf("does not exist (%v)", s.reason)
	}
	return fmt.Sprintf("%v (%s)", s.kind, brief(s.err))
}

// brief is an error without the names that are the same in all of them.
func brief(err error) string {
	if err == nil {
		return "over"
	}
	_, text, _ := strings.Cut(err.Error(), "localdomain\": ")
	return text
}

// watch is a watch and all that it was told.
type watch struct {
	world    *world
	id       int
	typ      typ
	name     string
	began    time.Time
	explicit bool // asked for as "*"
	stop     func()
	members  map[string]state // of a wildcard also "*" itself
	synced   bool
	early    time.Time // when it was synced without having everything; zero if it has had it since
}

func (w *watch) String() string { return fmt.Sprintf("w%d (%s %s)", w.id, w.typ, w.name) }

// begin asks the client.
func (w *watch) begin(c *client.Client) error {
	w.began, w.members = time.Now(), map[string]state{}
	var opts []client.WatchOption
	if w.explicit {
		opts = append(opts, client.ExplicitWildcard())
	}
	var watching *client.Watch
	var err error
	if w.name == "*" {
		watching, err = c.WatchAll(context.Background(), w.typ.kind(), "*", func(b client.Batch[any]) {
			for _, ev := range b.Events {
				w.hear(ev)
			}
		}, opts...)
	} else {
		watching, err = c.Watch(context.Background(), w.typ.kind(), w.name, w.hear, opts...)
	}
	if err == nil {
		w.stop = watching.Stop
	}
	return err
}

// hear takes an event, and sees at once what can never be right.
func (w *watch) hear(ev client.Event[any]) {
	w.world.mu.Lock()
	defer w.world.mu.Unlock()
	w.world.note("%v: %s", w, describe(ev))
	held, known := w.members[ev.Name]
	switch ev.Kind {
	case client.EventUpdated:
		w.members[ev.Name] = state{kind: ev.Kind, text: text(ev.Value)}
	case client.EventDoesNotExist:
		w.members[ev.Name] = state{kind: ev.Kind, reason: ev.Reason}
		w.absent(ev, held, known)
	case client.EventFailed:
		w.members[ev.Name] = state{kind: ev.Kind, err: ev.Err}
	case client.EventAmbientError, client.EventRecovered:
		held.err = ev.Err
		w.members[ev.Name] = held
	case client.EventSynced:
		w.synced = true
		delete(w.members, "*")
		w.complete()
	}
	w.late()
}

func describe(ev client.Event[any]) string {
	switch ev.Kind {
	case client.EventUpdated:
		return fmt.Sprintf("updated %s %q", ev.Name, text(ev.Value))
	case client.EventDoesNotExist:
		return fmt.Sprintf("%s does not exist (%v)", ev.Name, ev.Reason)
	case client.EventFailed, client.EventAmbientError:
		return fmt.Sprintf("%v %s: %s", ev.Kind, ev.Name, brief(ev.Err))
	}
	return fmt.Sprintf("%v %s", ev.Kind, ev.Name)
}

// moment is within what a response of the server may be behind it.
const moment = time.Second

// absent judges an absence when it is told.
func (w *watch) absent(ev client.Event[any], held state, known bool) {
	if w.name == "*" && ev.Name == "*" {
		w.synced = false
		return
	}
	always := true
	for _, c := range w.world.truth.since(w.typ, time.Now().Add(-moment)) {
		always = always && c[ev.Name] != ""
	}
	switch {
	case always && w.world.muted(w.typ, ev.Name):
	case always && ev.Reason != client.ReasonTimeout && held.kind == client.EventUpdated:
		w.world.fault("false absence", "%v: %s is told to be %v, and was there all the time", w, ev.Name, ev.Reason)
	case always: // a late watch hears of an absence, too, that the server ended while it was away
		w.world.list("absence before the answer")
	case w.name != "*" || known && held.kind == client.EventUpdated:
	case w.there(ev.Name):
		w.world.list("removed before its value was told")
	default:
		w.world.fault("absence of what was never held", "%v: %s does not exist (%v)", w, ev.Name, ev.Reason)
	}
}

// there says whether a resource was there at some time of the watch, or just before.
func (w *watch) there(name string) bool {
	return slices.ContainsFunc(w.world.truth.since(w.typ, w.began.Add(-moment)), func(c content) bool { return c[name] != "" })
}

// longest is how long a client may take to be on a stream of a server that is there: the
// greatest wait between attempts, and between streams for the sake of a wildcard, and more.
const longest = time.Minute

// complete judges a wildcard that is told to be synced: it has all that the server held, at some
// time since shortly before the watch began, and may have more of what is never said to go. One
// that was asked for beside names, as "*", is taken to be synced by a response that was under
// way when it was asked for (WILD-5): it has to be whole a moment later.
func (w *watch) complete() {
	switch {
	case w.whole():
	case w.world.explicit(w.typ):
		w.early = time.Now()
	default:
		w.world.fault("false synced", "%v has only %v", w, w.values())
	}
}

// late looks whether a wildcard that was synced too early is whole by now.
func (w *watch) late() {
	if w.early.IsZero() || !w.whole() {
		return
	}
	if after := time.Since(w.early); after > moment {
		w.world.fault("false synced", "%v is whole %v later", w, after)
	}
	w.world.list("synced by a response that was under way (WILD-5)")
	w.early = time.Time{}
}

func (w *watch) whole() bool {
	had := w.values()
	asked := w.named(had)
	return slices.ContainsFunc(w.world.truth.since(w.typ, w.world.truth.behind(w.began)), func(c content) bool {
		if w.has(had, c) {
			return true
		}
		known := maps.Clone(had)
		maps.DeleteFunc(known, func(name, _ string) bool { return asked[name] != "" && c[name] == "" })
		if w.has(known, c) {
			w.world.list("synced with a value that has gone, and is asked for by name")
			return true
		}
		return false
	})
}

// values are the texts that the watch has.
func (w *watch) values() content {
	had := content{}
	for name, s := range w.members {
		if s.kind == client.EventUpdated {
			had[name] = s.text
		}
	}
	return had
}

// has says whether what a wildcard has is all of a content, and nothing else but what may stay.
func (w *watch) has(had, want content) bool {
	if !w.world.stays(w.typ) {
		return maps.Equal(had, want)
	}
	for name, text := range want {
		if had[name] != text {
			return false
		}
	}
	return true
}

// named lists those of a wildcard's values that are watched by name too: in delta these are asked
// for anew beside a new wildcard, and one that has gone is known to be by its timer.
func (w *watch) named(had content) content {
	other := content{}
	for name, text := range had {
		if w.world.life.setup.variant == client.VariantDelta && w.world.named(w.typ, name) {
			other[name] = text
		}
	}
	return other
}

// check compares the watch with the truth when all is quiet.
func (w *watch) check() {
	truth := w.world.truth.content(w.typ)
	if w.name != "*" {
		w.compare(w.name, truth[w.name])
		return
	}
	switch whole := w.members["*"]; {
	case w.synced:
	case len(truth) == 0 && whole.kind == client.EventDoesNotExist && whole.reason == client.ReasonTimeout:
		w.world.list("timeout of a wildcard of nothing (S-36)")
	default:
		w.world.fault("not synced", "%v, which has %v of %v", w, w.values(), truth)
	}
	if !w.early.IsZero() {
		w.world.fault("false synced", "%v has only %v", w, w.values())
	}
	for _, name := range names {
		w.compare(name, truth[name])
	}
	if s := w.members["*"]; s.err != nil {
		w.world.fault("trouble stays", "%v: %s", w, brief(s.err))
	}
}

// compare judges what a watch has of a name; the text is "" of what does not exist.
func (w *watch) compare(name, want string) {
	s, known := w.members[name]
	all := w.name == "*"
	excused := w.world.muted(w.typ, name)
	switch {
	case known && s.err != nil && excused:
		w.world.list("trouble stays, since the server has not answered this request (S-9, S-31)")
	case known && s.err != nil:
		w.world.fault("trouble stays", "%v: %s is %v", w, name, s)
	case s.kind == client.EventUpdated && s.text == want:
	case s.kind == client.EventUpdated && want == "" && w.world.stays(w.typ):
		w.world.list("kept, since state of the world says no deletion of the type")
	case s.kind == client.EventUpdated && excused:
		w.world.list("stale, since the server has not answered this request (S-9, S-31)")
	case s.kind == client.EventUpdated && want == "":
		w.world.fault("lost deletion", "%v: %s is still %v", w, name, s)
	case s.kind == client.EventUpdated:
		w.world.fault("lost update", "%v: %s is %v, want %q", w, name, s, want)
	case want == "" && (all || s.kind == client.EventDoesNotExist):
	case s.kind == client.EventDoesNotExist && excused:
		w.world.list(fmt.Sprintf("%v, since the server has not answered this request (S-9, S-31)", s.reason))
	case s.kind == client.EventDoesNotExist:
		w.world.fault("false absence", "%v: %s is %v, want %q", w, name, s, want)
	default:
		w.world.fault("no answer", "%v: nothing of %s, want %q", w, name, want)
	}
}

// fault is something that is wrong.
type fault struct{ class, text string }

func (f fault) String() string { return f.class + ": " + f.text }

// classes are those of faults, without repetition.
func classes(faults []fault) []string {
	var all []string
	for _, f := range faults {
		all = append(all, f.class)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func lines(faults []fault) string {
	var b strings.Builder
	for _, f := range faults {
		fmt.Fprintf(&b, "\t%v\n", f)
	}
	return b.String()
}
