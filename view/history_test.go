package view

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// past is a random history of everything that a server can send: lists of members, secrets,
// extension configurations, collections of endpoints, scopes, virtual hosts on demand.
type past struct {
	*life
	hosts    map[string]int
	troubled map[string]bool              // has an ambient error
	members  map[string]map[string]string // what was told of collections
}

// TestHistories runs random histories, after which a view must have, and watch, what a new view
// of the same resources does.
//
// spec: VIEW-36, VIEW-40, VIEW-41, VIEW-43, VHDS-2, WARM-k
func TestHistories(t *testing.T) {
	n := uint64(480)
	if testing.Short() {
		n = 40
	}
	roots := [][]string{{"lds", "l"}, {"lds", "l", "host=a.org"}, {"rds", "r0"}, {"cds", "c0"}, {"rds", "r0", "host=a.org"}}
	options := [][]string{{"grace=-1s", "secrets"}, {"grace=5s", "fresh=3s", "merge=1s", "secrets"}, {"secrets"}, {"names=7", "secrets"}, {"grace=-1s", "secrets", "composite"}, {"secrets", "composite"}}
	for seed := range n {
		p := newPast(t, seed, roots[seed%5], options[seed/5%6])
		for range 100 {
			p.move()
			if t.Failed() {
				t.Fatalf("seed %d: %s", seed, strings.Join(p.log[max(0, len(p.log)-60):], "\n"))
			}
		}
	}
}

func newPast(t *testing.T, seed uint64, root, options []string) *past {
	l := &life{driver: newDriver(t, root, options), r: rand.New(rand.NewPCG(seed, 2)), world: world{}, told: world{}, holds: map[string]int{}}
	l.step()
	return &past{life: l, hosts: map[string]int{}, troubled: map[string]bool{}, members: map[string]map[string]string{}}
}

func (p *past) of(prefix string, n int) func() string {
	return func() string { return fmt.Sprintf("%s%d", prefix, p.r.IntN(n)) }
}

func (p *past) address() string { return fmt.Sprintf("1.1.1.%d", p.r.IntN(4)) }

func (p *past) host() string { return p.pick("a.org", "b.org", "*") }

// change changes a resource of the server.
func (p *past) change() {
	kind := p.pick("lds", "rds", "rds", "cds", "cds", "cds", "cds", "eds", "eds", "agg", "sds", "ecds", "leds", "srds", "vhds", "vhds")
	route := p.of("r", 3)
	var name, words string
	switch kind {
	case "lds":
		name = "l"
		words = p.pick("api:"+route(), "api:"+route(), "inline:*="+p.cluster(), "rds:"+route()+","+route(), "scopes")
		if p.r.IntN(4) == 0 {
			words += " tcp:" + p.cluster()
		}
		if p.r.IntN(4) == 0 {
			words += " ecds:" + p.of("x", 2)()
		}
	case "rds":
		name = route()
		words = p.host() + "=" + p.some(3, func() string { return p.pick("", "", "~") + p.cluster() }) + " x.org=" + p.some(2, p.cluster)
		if p.r.IntN(2) == 0 {
			words += " vhds"
		}
	case "cds":
		name = p.cluster()
		words = p.pick("eds", fmt.Sprintf("eds:e%d", p.r.IntN(3)), "static:1.1.1.1", "agg:"+p.some(3, p.cluster), "list:"+p.of("L", 2)()) +
			p.pick("", "", " tls:x", " sds:"+p.of("s", 2)()) + p.pick("", "", " alt:"+p.pick("+", "?")+p.cluster(), " alt:="+p.of("x", 2)())
	case "eds":
		name = p.pick(p.of("e", 3)(), p.cluster())
		words = p.pick("", "-", p.address(), p.address()+" leds:"+p.of("k", 2)(), "leds:"+p.of("k", 2)())
	case "agg":
		name, words = p.of("L", 2)(), strings.ReplaceAll(p.some(3, p.cluster), ",", " ")
	case "sds":
		name, words = p.of("s", 2)(), "x"
	case "ecds":
		name, words = p.of("x", 2)(), p.pick("one", "+"+p.cluster(), "+"+p.cluster()+" +"+p.cluster())
	case "leds":
		name, words = p.of("k", 2)(), p.some(2, func() string { return p.of("m", 3)() + "=" + p.address() })
	case "srds":
		name, words = "*", p.some(2, func() string { return p.of("scope", 3)() + "=" + route() })
	case "vhds":
		if p.r.IntN(2) == 0 {
			name, words = "*", p.some(2, func() string { return route() + "/" + p.of("v", 2)() + "=" + p.of("v", 2)() + ".org>" + p.cluster() })
			break
		}
		name, words = route()+"/"+p.pick("c.org", "d.org"), p.pick("c.org", "d.org")+"="+p.cluster()
	}
	if p.r.IntN(6) == 0 {
		delete(p.world, kind+" "+name)
		return
	}
	p.world[kind+" "+name] = words
}

func isCollection(key string) bool {
	return strings.HasPrefix(key, "leds ") || strings.HasSuffix(key, " *")
}

// tellAll brings the core the state of a collection.
func (p *past) tellAll(key string) (news bool) {
	kind, name, _ := strings.Cut(key, " ")
	now := map[string]string{}
	for entry := range strings.SplitSeq(p.world[key], ",") {
		if k, v, ok := strings.Cut(entry, "="); ok {
			now[k] = v
		}
	}
	word := map[string]string{"leds": "member " + name, "srds": "scope", "vhds": "vhost"}[kind]
	before, known := p.members[key]
	for _, k := range slices.Sorted(maps.Keys(before)) {
		if now[k] == "" {
			p.do(word + " " + k + " gone")
			news = true
		}
	}
	for _, k := range slices.Sorted(maps.Keys(now)) {
		if before[k] != now[k] {
			p.do(word + " " + k + " " + strings.ReplaceAll(now[k], ">", "="))
			news = true
		}
	}
	if p.members[key] = now; !known {
		p.do("synced " + key)
	}
	p.told[key] = "synced"
	return news || !known
}

func (p *past) tell(key string, force bool) bool {
	if isCollection(key) {
		return p.tellAll(key)
	}
	if _, is := p.world[key]; is && p.told[key] != "" && p.told[key] != "-" && !force && p.r.IntN(4) == 0 {
		p.troubled[key] = true
		p.do("ambient " + key + " trouble")
		return true
	}
	news := p.life.tell(key, force)
	if news {
		delete(p.troubled, key)
	} else if p.troubled[key] && force {
		delete(p.troubled, key)
		p.do("recovered " + key)
		return true
	}
	return news
}

func (p *past) move() {
	p.out = nil
	switch n := p.r.IntN(24); {
	case n < 10:
		p.change()
		return
	case n < 17:
		if keys := p.watchedKeys(); len(keys) > 0 {
			for range 1 + p.r.IntN(3) {
				p.tell(keys[p.r.IntN(len(keys))], false)
			}
		}
	case n == 17:
		name := p.cluster()
		p.holds[name]++
		p.do("hold " + name)
	case n == 18:
		if name := p.cluster(); p.holds[name] > 0 {
			p.holds[name]--
			p.do("release " + name)
		}
	case n == 19:
		host := p.pick("c.org", "d.org")
		p.hosts[host]++
		p.do("host " + host)
	case n == 20:
		if host := p.pick("c.org", "d.org"); p.hosts[host] > 0 {
			p.hosts[host]--
			p.do("unhost " + host)
		}
	case n == 21:
		p.now = p.now.Add(time.Duration(p.r.IntN(3000)) * time.Millisecond)
	default:
		p.flush()
		return
	}
	p.step1()
}

// step1 steps, and forgets what was told of what is not watched.
func (p *past) step1() {
	p.stepLife()
	for _, key := range p.ended {
		delete(p.members, key)
		delete(p.troubled, key)
	}
	if parts := p.parts(); parts != p.core.quota.count || parts != len(p.watched) {
		p.t.Errorf("%d parts, counted as %d, %d watched", parts, p.core.quota.count, len(p.watched))
	}
}

// parts counts what the core has.
func (p *past) parts() int {
	n := len(p.core.clusters)
	for _, f := range p.core.feeds {
		n += len(f.endpoints) + len(f.resources)
	}
	return n
}

// settle tells everything that is watched until nothing is new.
func (p *past) settle() {
	p.tellWatched(p.tell, p.step1)
	p.now = p.now.Add(time.Hour) // all waits end
	p.step1()
}

// tellWatched tells all that is watched, and what is watched because of that.
func (p *past) tellWatched(tell func(key string, force bool) bool, step func()) {
	for more := true; more; {
		more = false
		for _, key := range p.watchedKeys() {
			more = tell(key, true) || more
		}
		step()
		for _, key := range p.watchedKeys() {
			more = more || p.told[key] == ""
		}
	}
}

// flush tells everything, and compares with a view that begins now.
func (p *past) flush() {
	p.log = append(p.log, "-- flush")
	for p.settle(); len(p.told) < len(p.watched); { // what the end of a wait has brought
		p.settle()
	}
	if p.core.config.grace == 0 { // it depends on the past what is kept
		if s := p.core.snapshot; s == nil || !s.Complete {
			p.t.Errorf("the snapshot is not complete: %v", p.core.waiting())
		}
		if p.core.hungry() {
			p.t.Error("there is room for what found none")
		}
		return
	}
	fresh := newPast(p.t.(*testing.T), 0, p.rootWords(), nil)
	fresh.core.config, fresh.core.hooks, fresh.world = p.core.config, p.core.hooks, p.world
	for name, n := range p.holds {
		if n > 0 {
			fresh.do("hold " + name)
		}
	}
	for host, n := range p.hosts {
		if n > 0 {
			fresh.do("host " + host)
		}
	}
	fresh.settle()
	if diff := cmp.Diff(fresh.result(), p.result()); diff != "" {
		p.t.Errorf("a new view has other things (-new +old):\n%s", diff)
	}
}

func (p *past) rootWords() []string {
	root := p.core.root
	words := []string{map[RootType]string{RootListener: "lds", RootRoutes: "rds", RootCluster: "cds"}[root.Type], root.Name}
	if root.Host != "" {
		words = append(words, "host="+root.Host)
	}
	return words
}

// result is the snapshot, without versions, and what is watched.
func (p *past) result() []string {
	s := p.core.snapshot
	if s == nil {
		return []string{"none"}
	}
	lines := []string{fmt.Sprint("complete ", s.Complete)}
	for _, line := range show(s)[1:] {
		lines = append(lines, unversioned(line))
	}
	for _, key := range p.watchedKeys() {
		lines = append(lines, "watched "+key)
	}
	for _, w := range p.core.waiting() {
		lines = append(lines, "waits "+w.Type+" "+w.Name)
	}
	return lines
}

// unversioned is a line of show without versions, which tell gives at random.
func unversioned(line string) string {
	words := strings.Fields(line)
	return strings.Join(slices.DeleteFunc(words, func(w string) bool {
		return len(w) > 1 && w[0] == 'v' && strings.Trim(w[1:], "0123456789") == ""
	}), " ")
}
