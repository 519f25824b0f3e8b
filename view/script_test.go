package view

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/testutil/script"
)

var update = flag.Bool("update", false, "rewrite the scripts with what happens")

// TestScripts runs every script of the core: what happens to it line by line, and below each line
// what it wants to have watched and what it publishes, in the order of its effects.
//
// Headers: "root: TYPE NAME [host=HOST]" and "option: grace=D fresh=D merge=D names=N secrets composite".
//
// Commands, several on a line set apart by semicolons if they happen at one moment:
//
//	TYPE NAME VERSION WORD …   a value, as in build_test.go
//	gone TYPE NAME [REASON]    it does not exist
//	bad TYPE NAME              it was refused, and there is no value
//	down TYPE NAME             its server cannot be reached, and there is no value; cut TYPE NAME: its stream ended
//	stale TYPE NAME VERSION WORD … a value of the client's store
//	ambient TYPE NAME TEXT     something is wrong, the value stays good
//	away TYPE NAME             its server cannot be reached, the value stays good
//	recovered TYPE NAME
//	synced leds NAME           the first state of a collection is complete
//	member NAME KEY WORD       a member of it; member NAME KEY gone
//	scope NAME ROUTES          a scope of routes; scope NAME inline:HOST=CLUSTER; scope NAME gone
//	vhost NAME WORD            a virtual host that is not asked for; vhost NAME gone
//	hold NAME · release NAME   a cluster
//	host NAME · unhost NAME    a virtual host on demand
//	sleep DURATION             as far as the next deadline at a time
//	waiting · watched          list it
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/scripts/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) { runScript(t, file) })
	}
}

func runScript(t *testing.T, file string) {
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	s, err := script.Parse(filepath.Base(file), data)
	if err != nil {
		t.Fatal(err)
	}
	d := newDriver(t, s.Headers["root"], s.Headers["option"])
	var all [][]string
	differs := false
	for _, st := range s.Steps {
		got := d.run(st.Input)
		all = append(all, got)
		diff := st.Diff(got, func(string) bool { return true })
		differs = differs || diff != ""
		if diff != "" && !*update {
			t.Errorf("%s", diff)
		}
	}
	if *update && differs {
		if err := os.WriteFile(file, script.Update(data, all), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// driver runs a core by hand.
type driver struct {
	t       testing.TB
	core    *core
	now     time.Time
	watched map[string]watch // what the core wants, by type and name
	ended   []string         // keys of watches that the last step ended
	told    *Snapshot        // published last
	out     []string
}

func newDriver(t testing.TB, root, options []string) *driver {
	t.Helper()
	r := Root{Type: map[string]RootType{"lds": RootListener, "rds": RootRoutes, "cds": RootCluster}[root[0]], Name: root[1]}
	if len(root) > 2 {
		r.Host = strings.TrimPrefix(root[2], "host=")
	}
	config := coreConfig{maxNames: defaultMaxNames, node: func() string { return "n" }}
	hooks := Extensions()
	for _, option := range options {
		key, value, _ := strings.Cut(option, "=")
		d, _ := time.ParseDuration(value)
		switch key {
		case "grace":
			config.grace = d
		case "fresh":
			config.fresh = d
		case "merge":
			config.merge = d
		case "names":
			_, _ = fmt.Sscan(value, &config.maxNames)
		case "secrets":
			hooks = append(hooks, Secrets()...)
		case "composite":
			hooks = append(hooks, composite()...)
		default:
			t.Fatalf("option %q", option)
		}
	}
	now := time.Unix(0, 0).UTC()
	return &driver{t: t, now: now, core: newCore(r, config, hooks, now), watched: map[string]watch{}}
}

func (d *driver) run(input string) []string {
	d.out = nil
	for command := range strings.SplitSeq(input, ";") {
		if words := strings.Fields(command); len(words) > 0 {
			d.command(words)
		}
	}
	d.step()
	return d.out
}

func (d *driver) command(words []string) {
	switch words[0] {
	case "start":
	case "gone":
		reason := client.ReasonRemoved
		if len(words) > 3 {
			reason = map[string]client.Reason{"timeout": client.ReasonTimeout, "ttl": client.ReasonTTL, "absent": client.ReasonAbsent}[words[3]]
		}
		d.event(words[1], words[2], client.Event[any]{Kind: client.EventDoesNotExist, Reason: reason})
	case "bad":
		d.event(words[1], words[2], client.Event[any]{Kind: client.EventFailed, Err: problem(client.ErrorRejected, words)})
	case "down":
		d.event(words[1], words[2], client.Event[any]{Kind: client.EventFailed, Err: problem(client.ErrorConnection, words)})
	case "cut":
		d.event(words[1], words[2], client.Event[any]{Kind: client.EventFailed, Err: problem(client.ErrorStream, words)})
	case "stale":
		d.event(words[1], words[2], client.Event[any]{Kind: client.EventUpdated, Version: words[3], Server: "server", Stale: true, Value: build(d.t, words[1], words[2], words[4:])})
	case "ambient":
		d.event(words[1], words[2], client.Event[any]{Kind: client.EventAmbientError, Err: errors.New(strings.Join(words[3:], " "))})
	case "away":
		d.event(words[1], words[2], client.Event[any]{Kind: client.EventAmbientError, Err: problem(client.ErrorStream, words)})
	case "refused":
		d.event(words[1], words[2], client.Event[any]{Kind: client.EventAmbientError, Err: problem(client.ErrorRejected, words)})
	case "recovered":
		d.event(words[1], words[2], client.Event[any]{Kind: client.EventRecovered})
	case "synced":
		d.event(words[1], words[2], client.Event[any]{Kind: client.EventSynced, Name: words[2]})
	case "scope":
		ev := client.Event[any]{Kind: client.EventDoesNotExist, Name: words[1], Asked: words[1]}
		if words[2] != "gone" {
			scope := &routev3.ScopedRouteConfiguration{Name: words[1], RouteConfigurationName: words[2]}
			if inline, ok := strings.CutPrefix(words[2], "inline:"); ok {
				scope.RouteConfigurationName, scope.RouteConfiguration = "", buildRoutes("of-"+words[1], []string{inline})
			}
			ev.Kind, ev.Value = client.EventUpdated, scope
		}
		d.event("srds", "*", ev)
	case "member":
		ev := client.Event[any]{Kind: client.EventUpdated, Name: words[2], Asked: words[2], Value: endpointOf(words[3])}
		if words[3] == "gone" {
			ev.Kind, ev.Value = client.EventDoesNotExist, nil
		}
		d.event("leds", words[1], ev)
	case "vhost":
		ev := client.Event[any]{Kind: client.EventDoesNotExist, Name: words[1], Asked: words[1]}
		if words[2] != "gone" {
			ev.Kind, ev.Value = client.EventUpdated, build(d.t, "vhds", words[1], words[2:])
		}
		d.event("vhds", "*", ev)
	case "hold":
		d.core.hold(d.now, words[1])
	case "release":
		d.core.release(d.now, words[1])
	case "host":
		d.core.holdHost(d.now, words[1])
	case "unhost":
		d.core.releaseHost(d.now, words[1])
	case "sleep":
		d.sleep(words[1])
	case "waiting":
		for _, w := range d.core.waiting() {
			text := fmt.Sprintf("waits %s %s since %v: %s", shortOf(w.Type), w.Name, w.Since.Sub(time.Unix(0, 0)), w.Reason)
			if !w.Blocking {
				text += " (holds back nothing)"
			}
			d.out = append(d.out, text)
		}
	case "watched":
		for _, w := range d.core.watched() {
			text := fmt.Sprintf("watched %s %s %v", shortOf(w.Type), w.Name, w.Status)
			for _, by := range w.By {
				text += fmt.Sprintf(" by %s %s", shortOf(by.Type), by.Name)
			}
			if w.Holds > 0 {
				text += fmt.Sprintf(" holds %d", w.Holds)
			}
			d.out = append(d.out, text)
		}
	default:
		d.event(words[0], words[1], client.Event[any]{
			Kind: client.EventUpdated, Version: words[2], Server: "server", Value: build(d.t, words[0], words[1], words[3:]),
		})
	}
}

func problem(kind client.ErrorKind, words []string) error {
	text := "no such thing"
	if kind == client.ErrorConnection {
		text = "refused"
	}
	return &client.ResourceError{Kind: kind, Type: kinds[words[1]].TypeURL(), Name: words[2], NodeID: "n", Err: errors.New(text)}
}

func (d *driver) event(kind, name string, ev client.Event[any]) {
	w, ok := d.watched[kind+" "+name]
	if !ok { // the client has no events of it
		d.out = append(d.out, "not watched: "+kind+" "+name)
		return
	}
	ev.Type = kinds[kind].TypeURL()
	if ev.Name == "" {
		ev.Name, ev.Asked = name, name
	}
	d.core.take(d.now, w, &ev)
}

func (d *driver) sleep(text string) {
	long, err := time.ParseDuration(text)
	if err != nil {
		d.t.Fatal(err)
	}
	end := d.now.Add(long)
	for {
		at := d.core.deadline()
		if at.IsZero() || at.After(end) {
			break
		}
		d.now = at
		d.step()
	}
	d.now = end
}

func (d *driver) step() {
	d.ended = nil
	d.stepOn()
}

func (d *driver) stepOn() {
	e := d.core.step(d.now)
	for _, w := range e.watch {
		key := shortOf(w.typeURL()) + " " + w.name
		if _, twice := d.watched[key]; twice {
			d.t.Errorf("%s is watched twice", key) // VIEW-16
		}
		d.watched[key] = w
		d.out = append(d.out, "+ "+key)
	}
	if e.snapshot != nil {
		d.told = e.snapshot
		d.out = append(d.out, show(e.snapshot)...)
	}
	d.checkTold()
	for _, w := range e.unwatch {
		key := shortOf(w.typeURL()) + " " + w.name
		delete(d.watched, key)
		d.ended = append(d.ended, key)
		d.out = append(d.out, "- "+key)
	}
	for _, f := range e.ended {
		d.out = append(d.out, "ends the source of "+shortOf(f.kind.TypeURL()))
	}
	if e.again {
		d.stepOn()
	}
}

// checkTold sees that the newest snapshot has nothing to tell that was not published.
func (d *driver) checkTold() {
	s := d.core.snapshot
	if s == nil || s == d.told {
		return
	}
	if !sameError(s.Err, d.told.Err) || s.Len() != d.told.Len() {
		d.t.Errorf("not published: %v", show(s))
	}
	for c := range s.Clusters() {
		if old := d.told.Cluster(c.Name); old == nil || c.Status() != old.Status() || !sameError(c.Err(), old.Err()) {
			d.t.Errorf("not published: %s", showCluster(c))
		}
	}
}

// show writes a snapshot.
func show(s *Snapshot) (lines []string) {
	head := fmt.Sprintf("= %d", s.Serial)
	if !s.Complete {
		head += " waiting"
	}
	lines = append(lines, head)
	add := func(format string, args ...any) { lines = append(lines, "  "+fmt.Sprintf(format, args...)) }
	if s.Err != nil {
		add("error: %s", brief(s.Err))
	}
	if l := s.Listener; l != nil {
		add("lds %s %s%s", l.Name, l.Version, noted(l.Note))
	}
	for _, rc := range s.Routes {
		switch {
		case rc.Err != nil:
			add("rds %s error: %s", rc.Name, brief(rc.Err))
		case rc.Inline:
			add("rds %s inline%s", rc.Name, noted(rc.Note))
		default:
			add("rds %s %s%s%s", rc.Name, rc.Version, deletedAt(rc.Deleted), noted(rc.Note))
		}
		for _, vh := range rc.OnDemand() {
			add("  on demand %s", vh.GetName())
		}
		for _, host := range rc.Missing() {
			add("  no host %s", host)
		}
	}
	for _, scope := range s.Scopes {
		add("scope %s %s", scope.GetName(), cmp.Or(scope.GetRouteConfigurationName(), "inline"))
	}
	if s.VirtualHost != nil {
		add("host %s", s.VirtualHost.GetName())
	}
	for c := range s.Clusters() {
		lines = append(lines, showCluster(c))
	}
	for r := range s.Resources() {
		text := "ok"
		if r.Err != nil {
			text = "error: " + brief(r.Err)
		}
		add("%s %s %s%s", shortOf(r.Type), r.Name, text, deletedAt(r.Deleted))
	}
	return lines
}

func showCluster(c *Cluster) string {
	text := fmt.Sprintf("  %s %v", c.Name, c.Status())
	if c.Status() == StatusOK {
		text += " " + c.Version + " " + c.Kind().String()
	}
	if c.Endpoints != nil {
		text += " " + showEndpoints(c.Endpoints) + deletedAt(c.Endpoints.Deleted())
	}
	if c.Leaves() != nil {
		text += " leaves " + strings.Join(c.Leaves(), ",")
	}
	text += " by " + strings.Join(c.ReferencedBy(), ",") + deletedAt(c.Deleted())
	if c.Err() != nil {
		text += " error: " + brief(c.Err())
	}
	return text + noted(c.Note())
}

func deletedAt(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return fmt.Sprintf(" deleted(%v)", at.Sub(time.Unix(0, 0)))
}

func noted(err error) string {
	if err == nil {
		return ""
	}
	return " note: " + brief(err)
}

// brief is an error without what is the same in all of them.
func brief(err error) string {
	text := strings.ReplaceAll(strings.ReplaceAll(err.Error(), "\n", "; "), ` for node "n"`, "")
	text = strings.ReplaceAll(text, "\u00a0", " ") // package proto varies its texts
	return strings.ReplaceAll(strings.ReplaceAll(text, "xds: envoy.config.", ""), ` of server "server"`, "")
}
