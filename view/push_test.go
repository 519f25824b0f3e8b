package view

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/xdswatch/xdswatch/internal/race"
)

// pushes is a random history of a server whose resources are whole at each moment: what one names exists, and what none
// names does not. What it has changes as a whole; the core is told of it type by type, in any order, and of new watches
// as late. So it hears that a resource is gone which what it knows still names.
type pushes struct {
	*past
	behind time.Time // since when the core does not know all; zero if it does
	away   time.Time // since when the server cannot be reached; zero if it can
	good   bool      // a snapshot was good
}

// patience is how long a server takes at most to tell what it has.
const patience = 3 * time.Second

// TestStaysGood sees that a view which was good once stays good: no cluster without endpoints, no error, no routes to what is
// missing.
//
// spec: MBB-2, VIEW-13, VIEW-15, VIEW-20, VIEW-24, VIEW-27, VIEW-36, VIEW-40, WARM-b
func TestStaysGood(t *testing.T) {
	n := uint64(400)
	if testing.Short() || race.Enabled { // the core has no goroutine
		n = 30
	}
	roots := [][]string{{"lds", "l"}, {"lds", "l", "host=a.org"}, {"rds", "r0"}, {"cds", "c0"}}
	options := [][]string{{"secrets"}, {"grace=10m", "fresh=3s", "merge=1s", "secrets"}}
	for seed := range n {
		p := &pushes{past: newPast(t, seed, roots[seed%4], options[seed/4%2])}
		p.push()
		for range 150 {
			p.move()
			if t.Failed() {
				t.Fatalf("seed %d: %s", seed, strings.Join(p.log[max(0, len(p.log)-80):], "\n"))
			}
		}
	}
}

// push gives the server other resources.
func (p *pushes) push() {
	old := p.world
	p.world = world{}
	root := p.core.root
	p.need(old, map[RootType]string{RootListener: "lds ", RootRoutes: "rds ", RootCluster: "cds "}[root.Type]+root.Name)
	p.need(old, "cds x")
	if p.behind.IsZero() {
		p.behind = p.now
	}
	p.log = append(p.log, fmt.Sprint("-- has ", p.world))
}

// need adds a resource, perhaps as it was, and what it names.
func (p *pushes) need(old world, key string) {
	if _, has := p.world[key]; has {
		return
	}
	words, was := old[key]
	if !was || p.r.IntN(2) == 0 {
		words = p.words(key)
	}
	p.world[key] = words
	for _, name := range namedBy(key, words) {
		p.need(old, name)
	}
}

// words are those of a resource. A cluster leads to those with a higher number alone.
func (p *pushes) words(key string) string {
	kind, name, _ := strings.Cut(key, " ")
	route := p.of("r", 3)
	switch kind {
	case "lds":
		if p.core.root.Host != "" {
			return "api:" + route()
		}
		return p.pick("api:"+route(), "rds:"+route(), "scopes")
	case "srds":
		return p.some(2, func() string { return p.of("scope", 3)() + "=" + route() })
	case "rds":
		return "*=" + p.some(3, p.cluster)
	case "cds":
		leaf := p.pick("eds", "eds:"+p.of("e", 2)(), "static:1.1.1.1")
		if n := strings.TrimPrefix(name, "c"); n < "6" {
			below := func() string { return fmt.Sprintf("c%d", int(n[0]-'0')+1+p.r.IntN(int('6'-n[0]))) }
			leaf = p.pick(leaf, leaf, "agg:"+p.some(2, below))
		}
		if name == "x" { // that the program alone asks for
			leaf = p.pick("eds", "eds:e0", "list:L0")
		}
		return leaf + p.pick("", "", " tls:x", " sds:"+p.of("s", 2)())
	case "agg":
		return p.pick("c5", "c6", "c5 c6")
	case "eds":
		return p.pick(p.address(), "leds:"+p.of("k", 2)())
	case "leds":
		return p.some(2, func() string { return p.of("m", 3)() + "=" + p.address() })
	}
	return "x"
}

// namedBy are what a resource names.
func namedBy(key, words string) (all []string) {
	kind, name, _ := strings.Cut(key, " ")
	if kind == "agg" {
		words = "agg:" + strings.ReplaceAll(words, " ", ",")
	}
	for word := range strings.FieldsSeq(words) {
		how, list, has := strings.Cut(strings.Replace(word, "*=", "*:", 1), ":")
		to := map[string]string{"api": "rds ", "rds": "rds ", "*": "cds ", "agg": "cds ", "list": "agg ", "eds": "eds ", "sds": "sds ", "leds": "leds "}[how]
		switch {
		case how == "scopes":
			all = append(all, "srds *")
		case kind == "srds":
			for scope := range strings.SplitSeq(words, ",") {
				_, routes, _ := strings.Cut(scope, "=")
				all = append(all, "rds "+routes)
			}
		case how == "eds" && !has:
			all = append(all, "eds "+name)
		case to != "":
			for n := range strings.SplitSeq(list, ",") {
				all = append(all, to+n)
			}
		}
	}
	return all
}

func (p *pushes) move() {
	p.out = nil
	switch n := p.r.IntN(24); {
	case !p.away.IsZero():
		p.pass(8 * time.Second)
		if p.r.IntN(4) == 0 {
			p.back()
		}
	case n < 5:
		p.push()
		return
	case n < 18:
		p.tellKind(p.pick("lds", "srds", "rds", "cds", "cds", "agg", "eds", "sds", "leds"))
	case n == 18:
		if p.holds["x"]++; p.holds["x"] > 2 {
			p.holds["x"] = 2
			return
		}
		p.do("hold x")
	case n == 19:
		if p.holds["x"] == 0 {
			return
		}
		p.holds["x"]--
		p.do("release x")
	case n == 20 && p.r.IntN(3) == 0:
		p.leave()
	case n == 21:
		p.flush()
		p.behind = time.Time{}
	default:
		p.pass(1500 * time.Millisecond)
	}
	if p.away.IsZero() && !p.behind.IsZero() && p.now.Sub(p.behind) > patience {
		p.tellRest()
	}
	p.stepOnce()
}

func (p *pushes) stepOnce() {
	p.step1()
	if !p.away.IsZero() {
		p.cutNew()
	}
	p.checkGood()
}

// pass lets at most that time pass, as a timer does.
func (p *pushes) pass(most time.Duration) {
	end := p.now.Add(time.Duration(p.r.Int64N(int64(most))))
	for at := p.core.deadline(); !at.IsZero() && !at.After(end); at = p.core.deadline() {
		p.now = at
		p.stepOnce()
	}
	p.now = end
}

// tell brings the core news of what it watches. A collection of endpoints that is gone is told after its members.
func (p *pushes) tell(key string, force bool) bool {
	if _, has := p.world[key]; has || !strings.HasPrefix(key, "leds ") {
		return p.past.tell(key, force)
	}
	if p.told[key] == "-" {
		return false
	}
	if p.told[key] != "" {
		p.tellAll(key)
	}
	p.do("gone " + key)
	p.told[key] = "-"
	delete(p.members, key)
	return true
}

// tellKind tells all that is watched of one type.
func (p *pushes) tellKind(kind string) {
	for _, key := range p.watchedKeys() {
		if strings.HasPrefix(key, kind+" ") {
			p.tell(key, true)
		}
	}
}

// tellRest tells all until the core knows it.
func (p *pushes) tellRest() {
	p.log = append(p.log, "-- rest")
	p.tellWatched(p.tell, p.stepOnce)
	p.behind = time.Time{}
}

// leave makes the server one that cannot be reached.
func (p *pushes) leave() {
	p.away = p.now
	for _, key := range p.watchedKeys() {
		if p.told[key] != "" && p.told[key] != "-" {
			p.do("away " + key)
		}
	}
	p.cutNew()
}

// cutNew tells of what has no answer that there will be none for now.
func (p *pushes) cutNew() {
	for _, key := range p.watchedKeys() {
		if p.told[key] == "" && !p.troubled[key] {
			p.troubled[key] = true
			p.do("cut " + key)
		}
	}
	p.step1()
}

// back ends that.
func (p *pushes) back() {
	for _, key := range p.watchedKeys() {
		if p.told[key] != "" && p.told[key] != "-" {
			p.do("recovered " + key)
		}
	}
	clear(p.troubled)
	p.away, p.behind = time.Time{}, p.now
}

// checkGood sees that the newest snapshot is good, if one was.
func (p *pushes) checkGood() {
	s := p.core.snapshot
	if s == nil {
		return
	}
	bad := p.faults(s)
	p.good = p.good || len(bad) == 0 && s.Err == nil
	if p.good && len(bad) > 0 {
		p.t.Errorf("a good view became bad: %v\n%s", bad, strings.Join(show(s), "\n"))
	}
}

func (p *pushes) faults(s *Snapshot) (bad []string) {
	if s.Err != nil {
		bad = append(bad, brief(s.Err))
	}
	for _, rc := range s.Routes {
		if rc.Err != nil {
			bad = append(bad, brief(rc.Err))
		}
	}
	for c := range s.Clusters() {
		switch {
		case c.Status() == StatusWaiting && !slices.ContainsFunc(c.ReferencedBy(), func(by string) bool { return by == "route" || by == "root" }):
			// what the program alone asks for, and what that leads to
		case c.Status() != StatusOK:
			bad = append(bad, fmt.Sprint(c.Name, " ", c.Status(), " ", c.Err()))
		case c.Kind() == KindEDS && (c.Endpoints == nil || emptiness(c.Endpoints.Assignment()) != nil):
			bad = append(bad, c.Name+" has no endpoints")
		}
	}
	for r := range s.Resources() {
		if r.Err != nil {
			bad = append(bad, brief(r.Err))
		}
	}
	return bad
}
