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

// world is what a management server has, as the words of scripts by type and name.
type world map[string]string

// life is a random history: a core, a server's resources, and what the core was told of them.
type life struct {
	*driver
	r     *rand.Rand
	world world
	told  world // as of world, of what is watched; "-" of an absence
	holds map[string]int
	last  *Snapshot
	log   []string
}

// TestOracle runs random histories. After each step what must always hold is checked; now and then
// everything is told, and the snapshot must be what an oracle resolves from nothing.
//
// spec: VIEW-3, VIEW-4, VIEW-15, VIEW-16, VIEW-20, VIEW-22, VIEW-24, VIEW-25, VIEW-27, VIEW-31, VIEW-32, VIEW-33
func TestOracle(t *testing.T) {
	n := uint64(400)
	if testing.Short() {
		n = 30
	}
	roots := [][]string{{"lds", "l"}, {"lds", "l", "host=a.org"}, {"rds", "r0"}, {"cds", "c0"}}
	options := [][]string{{"grace=-1s"}, nil, {"grace=10s", "fresh=3s", "merge=1s"}}
	for seed := range n {
		l := newLife(t, seed, roots[seed%4], options[seed/4%3])
		for range 80 {
			l.move()
			if t.Failed() {
				t.Fatalf("seed %d: %s", seed, strings.Join(l.log[max(0, len(l.log)-40):], "\n"))
			}
		}
	}
}

func newLife(t *testing.T, seed uint64, root, options []string) *life {
	l := &life{driver: newDriver(t, root, options), r: rand.New(rand.NewPCG(seed, 1)), world: world{}, told: world{}, holds: map[string]int{}}
	l.step()
	return l
}

func (l *life) pick(all ...string) string { return all[l.r.IntN(len(all))] }
func (l *life) cluster() string           { return fmt.Sprintf("c%d", l.r.IntN(7)) }
func (l *life) some(n int, of func() string) string {
	var all []string
	for range 1 + l.r.IntN(n) {
		all = append(all, of())
	}
	return strings.Join(all, ",")
}

// change changes a resource of the server.
func (l *life) change() {
	kind := l.pick("lds", "rds", "rds", "cds", "cds", "cds", "eds", "eds")
	var name, words string
	route := func() string { return fmt.Sprintf("r%d", l.r.IntN(3)) }
	switch kind {
	case "lds":
		name = "l"
		if words = l.pick("api:", "api:", "rds:") + route(); l.r.IntN(4) == 0 {
			words += " tcp:" + l.cluster()
		}
	case "rds":
		name = route()
		words = l.pick("a.org", "*", "b.org") + "=" + l.some(3, func() string { return l.pick("", "", "~") + l.cluster() })
		words += " x.org=" + l.some(2, l.cluster)
	case "cds":
		name = l.cluster()
		words = l.pick("eds", "eds", fmt.Sprintf("eds:e%d", l.r.IntN(3)), "static:1.1.1.1", "agg:"+l.some(3, l.cluster)) + l.pick("", "", " tls:x", " alt:y")
	case "eds":
		name = l.pick(fmt.Sprintf("e%d", l.r.IntN(3)), l.cluster())
		words = l.pick("", "-", fmt.Sprintf("1.1.1.%d", l.r.IntN(4)), fmt.Sprintf("1.1.1.1*%d", 1+l.r.IntN(4)))
	}
	if l.r.IntN(6) == 0 {
		delete(l.world, kind+" "+name)
		return
	}
	l.world[kind+" "+name] = words
}

// tell brings the core news of what it watches; force says whether there must be some.
func (l *life) tell(key string, force bool) (news bool) {
	kind, name, _ := strings.Cut(key, " ")
	words, is := l.world[key]
	command := fmt.Sprintf("%s v%d %s", key, l.r.IntN(1000), words)
	now := words + "."
	if !is {
		command, now = "gone "+key, "-"
	}
	if !force && !is && l.r.IntN(3) == 0 && l.told[key] == "" {
		command, now = l.pick("down ", "bad ")+kind+" "+name, ""
	}
	if l.told[key] == now && now != "" {
		return false
	}
	l.told[key] = now
	l.do(command)
	return true
}

func (l *life) do(command string) {
	l.log = append(l.log, command)
	l.command(strings.Fields(command))
}

func (l *life) watchedKeys() []string { return slices.Sorted(maps.Keys(l.watched)) }

func (l *life) move() {
	l.out = nil
	switch n := l.r.IntN(20); {
	case n < 8:
		l.change()
		return
	case n < 15:
		if keys := l.watchedKeys(); len(keys) > 0 {
			for range 1 + l.r.IntN(3) {
				l.tell(keys[l.r.IntN(len(keys))], false)
			}
		}
	case n == 15:
		name := l.cluster()
		l.holds[name]++
		l.do("hold " + name)
	case n == 16:
		if name := l.cluster(); l.holds[name] > 0 {
			l.holds[name]--
			l.do("release " + name)
		}
	case n == 17:
		l.now = l.now.Add(time.Duration(l.r.IntN(3000)) * time.Millisecond)
	default:
		l.flush()
		return
	}
	l.stepChecked()
}

func (l *life) stepChecked() {
	l.stepLife()
	l.checkAlways()
}

// stepLife is step with checks, which also forgets what was told of what is not watched.
func (l *life) stepLife() {
	before := l.core.snapshot
	l.step()
	l.checkLinks()
	l.checkHosts()
	for _, key := range l.ended {
		delete(l.told, key)
	}
	l.log = append(l.log, l.out...)
	l.out = nil
	s := l.core.snapshot
	if before != nil && s != before && s.Serial == before.Serial+1 && slices.Equal(plain(before), plain(s)) {
		l.t.Errorf("snapshot %d is equal to the one before it: %v", s.Serial, plain(s)) // VIEW-4
	}
	l.last = s
}

// plain is a snapshot without what programs are not told of: versions, and who refers to what.
func plain(s *Snapshot) (lines []string) {
	if s.Err != nil {
		lines = append(lines, "error "+brief(s.Err))
	}
	if s.Listener != nil {
		lines = append(lines, fmt.Sprint("lds ", s.Listener.Message, noted(s.Listener.Note)))
	}
	for _, rc := range s.Routes {
		lines = append(lines, fmt.Sprint("rds ", rc.Name, rc.Message, rc.Err, noted(rc.Note), deletedAt(rc.Deleted), rc.OnDemand(), rc.Missing()))
	}
	for _, scope := range s.Scopes {
		lines = append(lines, fmt.Sprint("srds ", scope))
	}
	for r := range s.Resources() {
		lines = append(lines, fmt.Sprint(r.Type, " ", r.Name, r.Message, r.Err, noted(r.Note), deletedAt(r.Deleted)))
	}
	for c := range s.Clusters() {
		lines = append(lines, fmt.Sprint("cds ", c.Name, c.Status(), c.Message, sent(c.Endpoints), showEndpoints(c.Endpoints), c.Endpoints.Deleted(), c.Leaves(), c.Err(), c.Deleted(), noted(c.Note())))
	}
	return lines
}

func sent(e *Endpoints) any {
	if e == nil {
		return nil
	}
	return e.Message
}

// checkAlways checks what holds of each snapshot and of what is watched.
func (l *life) checkAlways() {
	s := l.core.snapshot
	if s == nil {
		return
	}
	for c := range s.Clusters() {
		if _, ok := l.watched["cds "+c.Name]; !ok { // VIEW-15
			l.t.Errorf("%s is in the snapshot and not watched", c.Name)
		}
		if c.refs&static != 0 && c.Status() == StatusWaiting { // VIEW-20
			l.t.Errorf("%s holds back a snapshot and waits", c.Name)
		}
		if len(c.ReferencedBy()) == 0 && l.holds[c.Name] == 0 {
			l.t.Errorf("nothing refers to %s", c.Name)
		}
		if c.Kind() == KindEDS && c.Endpoints != nil {
			if _, ok := l.watched["eds "+edsName(c)]; !ok {
				l.t.Errorf("the endpoints of %s are not watched", c.Name)
			}
		}
		for _, leaf := range c.Leaves() {
			if s.Cluster(leaf) == nil && c.refs != 0 {
				l.t.Errorf("the leaf %s of %s is not in the snapshot", leaf, c.Name)
			}
		}
	}
	for name, n := range l.holds {
		if n > 0 && s.Cluster(name) == nil {
			l.t.Errorf("%s is held and not in the snapshot", name)
		}
	}
	if s.Err == nil && s.Listener != nil { // VIEW-27
		read := readListener(s.Listener.Message, s.Root.Host, l.core.hooks)
		if len(read.routes) != len(s.Routes) || len(read.routes) > 0 && read.routes[0].name != s.Routes[0].Name {
			l.t.Errorf("the listener and its routes do not belong together: %v", show(s))
		}
	}
}

func edsName(c *Cluster) string {
	if n := c.Message.GetEdsClusterConfig().GetServiceName(); n != "" {
		return n
	}
	return c.Name
}

// flush tells everything, and compares with the oracle.
func (l *life) flush() {
	for more := true; more; {
		more = false
		for _, key := range l.watchedKeys() {
			more = l.tell(key, true) || more
		}
		l.stepLife()
		more = more || len(l.core.due.fresh) > 0
		for _, key := range l.watchedKeys() {
			more = more || l.told[key] == ""
		}
	}
	l.now = l.now.Add(time.Hour) // all waits end
	l.stepChecked()
	if s := l.core.snapshot; s == nil || !s.Complete {
		l.t.Errorf("the snapshot is not complete: %v", l.core.waiting())
		return
	}
	if l.core.config.grace != 0 { // else it depends on the past what is kept
		want := oracle{l}.resolve()
		if diff := cmp.Diff(want, l.resolved()); diff != "" {
			l.t.Errorf("the oracle says otherwise (-want +got):\n%s", diff)
		}
	}
}

// resolved is the snapshot and what is watched as the oracle says it.
func (l *life) resolved() (lines []string) {
	s := l.core.snapshot
	if s.Err != nil {
		lines = append(lines, "error")
	}
	for c := range s.Clusters() {
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s %v %s %v", c.Name, c.Status(), showEndpoints(c.Endpoints), c.Leaves())))
	}
	for _, key := range l.watchedKeys() {
		lines = append(lines, "watched "+key)
	}
	return lines
}

// oracle resolves from nothing, without any care for speed or for what was before.
type oracle struct{ *life }

func (o oracle) resolve() (lines []string) {
	watched := map[string]bool{}
	static, mirrors, failed := o.root(watched)
	if failed {
		lines = append(lines, "error")
	}
	shown := map[string]bool{}
	var visit func(name string, depth int)
	visit = func(name string, depth int) {
		shown[name] = true
		if children, ok := o.children(name); ok && depth < maxDepth {
			for _, child := range children {
				if !shown[child] {
					visit(child, depth+1)
				}
			}
		}
	}
	all := append(slices.Clone(static), mirrors...)
	for name, n := range o.holds {
		if n > 0 {
			all = append(all, name)
		}
	}
	for _, name := range all {
		visit(name, 0)
	}
	for _, name := range slices.Sorted(maps.Keys(shown)) {
		watched["cds "+name] = true
		lines = append(lines, o.entry(name, watched))
	}
	for _, key := range slices.Sorted(maps.Keys(watched)) {
		lines = append(lines, "watched "+key)
	}
	return lines
}

func (o oracle) root(watched map[string]bool) (static, mirrors []string, failed bool) {
	root := o.core.root
	var routes []string
	switch root.Type {
	case RootCluster:
		watched["cds "+root.Name] = true
		if _, ok := o.world["cds "+root.Name]; !ok {
			return nil, nil, true
		}
		return []string{root.Name}, nil, false
	case RootRoutes:
		routes = []string{root.Name}
	case RootListener:
		watched["lds "+root.Name] = true
		words, ok := o.world["lds "+root.Name]
		if !ok {
			return nil, nil, true
		}
		for word := range strings.FieldsSeq(words) {
			key, value, _ := strings.Cut(word, ":")
			switch {
			case key == "api", key == "rds" && root.Host == "":
				routes = append(routes, value)
			case key == "tcp" && root.Host == "":
				static = append(static, value)
			}
		}
		if root.Host != "" && len(routes) == 0 {
			return nil, nil, true
		}
	}
	good := 0
	for _, name := range routes {
		watched["rds "+name] = true
		words, ok := o.world["rds "+name]
		if !ok {
			continue
		}
		s, m, ok := o.routes(words)
		if ok {
			good++
			static, mirrors = append(static, s...), append(mirrors, m...)
		}
	}
	if good < len(routes) && (root.Host != "" || good == 0 && len(static) == 0) {
		return nil, nil, true
	}
	return static, mirrors, false
}

func (o oracle) routes(words string) (static, mirrors []string, ok bool) {
	all := strings.Fields(words)
	if host := o.core.root.Host; host != "" {
		i := slices.IndexFunc(all, func(w string) bool { return strings.HasPrefix(w, host+"=") })
		if i < 0 {
			i = slices.IndexFunc(all, func(w string) bool { return strings.HasPrefix(w, "*=") })
		}
		if i < 0 {
			return nil, nil, false
		}
		all = all[i : i+1]
	}
	for _, word := range all {
		_, clusters, _ := strings.Cut(word, "=")
		for c := range strings.SplitSeq(clusters, ",") {
			if m, is := strings.CutPrefix(c, "~"); is {
				mirrors = append(mirrors, m)
			} else {
				static = append(static, c)
			}
		}
	}
	return static, mirrors, true
}

func (o oracle) children(name string) ([]string, bool) {
	first, _, _ := strings.Cut(o.world["cds "+name], " ")
	list, ok := strings.CutPrefix(first, "agg:")
	return strings.Split(list, ","), ok
}

func (o oracle) entry(name string, watched map[string]bool) string {
	words, ok := o.world["cds "+name]
	first, _, _ := strings.Cut(words, " ")
	switch {
	case !ok:
		return name + " error none []"
	case strings.HasPrefix(first, "agg:"):
		var leaves []string
		seen := map[string]bool{name: true}
		var down func(string)
		down = func(n string) {
			children, _ := o.children(n)
			for _, child := range children {
				if seen[child] {
					continue
				}
				seen[child] = true
				if _, is := o.children(child); is {
					down(child)
				} else {
					leaves = append(leaves, child)
				}
			}
		}
		if down(name); len(leaves) == 0 {
			return name + " error none []"
		}
		return fmt.Sprintf("%s ok none %v", name, leaves)
	case strings.HasPrefix(first, "static:"):
		return name + " ok [1.1.1.1] []"
	}
	service := name
	if _, s, has := strings.Cut(first, ":"); has {
		service = s
	}
	watched["eds "+service] = true
	list, ok := o.world["eds "+service]
	if !ok {
		return name + " ok none []"
	}
	return fmt.Sprintf("%s ok %s []", name, showEndpoints(&Endpoints{Message: buildEndpoints(service, strings.Fields(list))}))
}
